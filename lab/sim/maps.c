// SPDX-License-Identifier: GPL-2.0-or-later
/* The maps, task storage, timers and helpers of BPF. */
#include <string.h>
#include "sim/count.h"
#include "sim/load.h"
#include "sim/model.h"

#define MAPS_MAX    32
#define TIMERS_MAX  8192
#define RECORD_SIZE 65536

static struct map {
	const void *map;
	struct map_shape shape;
	char *values, *keys;
	u32 nr;
	size_t stride; /* each CPU has its own values in a map per CPU */
} maps[MAPS_MAX];

static struct map *map_of(const void *address, const struct map_shape *shape)
{
	struct map *map = maps;

	while (map < maps + MAPS_MAX && map->map && map->map != address)
		map++;
	if (map == maps + MAPS_MAX)
		die("more than %d maps", MAPS_MAX);
	if (map->map)
		return map;
	*map = (struct map){ .map = address, .shape = *shape };
	if (shape->type == BPF_MAP_TYPE_PERCPU_ARRAY) {
		map->stride = (shape->value_size * (size_t)shape->max_entries + 63) / 64 * 64;
		map->values = allocate(map->stride * machine.nr_cpus);
	} else if (shape->type != BPF_MAP_TYPE_PERCPU_HASH) {
		map->values = allocate((size_t)shape->value_size * shape->max_entries);
		map->keys = allocate((size_t)shape->key_size * shape->max_entries);
	}
	return map;
}

static bool is_array(const struct map *map)
{
	return map->shape.type == BPF_MAP_TYPE_ARRAY ||
	       map->shape.type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static char *hash_find(struct map *map, const void *key)
{
	for (u32 i = 0; i < map->nr; i++)
		if (!memcmp(map->keys + i * map->shape.key_size, key, map->shape.key_size))
			return map->values + (size_t)i * map->shape.value_size;
	return NULL;
}

void *sim_lookup(void *address, const struct map_shape *shape, const void *key)
{
	struct map *map = map_of(address, shape);
	u32 i;

	count_add(COUNT_WORK, 1);
	if (!is_array(map))
		return hash_find(map, key);
	memcpy(&i, key, sizeof(i));
	if (i >= shape->max_entries)
		return NULL;
	return map->values + map->stride * machine.here + (size_t)i * shape->value_size;
}

/* Distributions per process (a hash per CPU) are not kept: no decision depends on them. */
long sim_update(void *address, const struct map_shape *shape, const void *key, const void *value)
{
	struct map *map = map_of(address, shape);
	char *found;

	count_add(COUNT_WORK, 1);
	if (shape->type != BPF_MAP_TYPE_HASH)
		return -1;
	found = hash_find(map, key);
	if (!found) {
		if (map->nr >= shape->max_entries)
			return -1;
		memcpy(map->keys + map->nr * shape->key_size, key, shape->key_size);
		found = map->values + (size_t)map->nr++ * shape->value_size;
	}
	memcpy(found, value, shape->value_size);
	return 0;
}

long sim_delete(void *address, const struct map_shape *shape, const void *key)
{
	struct map *map = map_of(address, shape);
	char *found = hash_find(map, key);
	size_t i;

	count_add(COUNT_WORK, 1);
	if (!found)
		return -1;
	i = (size_t)(found - map->values) / shape->value_size;
	map->nr--;
	memmove(map->keys + i * shape->key_size, map->keys + map->nr * shape->key_size,
		shape->key_size);
	memmove(found, map->values + (size_t)map->nr * shape->value_size, shape->value_size);
	return 0;
}

long sim_push(void *address, const struct map_shape *shape, const void *value)
{
	struct map *map = map_of(address, shape);

	if (map->nr >= shape->max_entries)
		return -1;
	memcpy(map->values + (size_t)map->nr++ * shape->value_size, value, shape->value_size);
	return 0;
}

long sim_pop(void *address, const struct map_shape *shape, void *value)
{
	struct map *map = map_of(address, shape);

	if (!map->nr)
		return -1;
	memcpy(value, map->values + (size_t)--map->nr * shape->value_size, shape->value_size);
	return 0;
}

void *sim_storage(void *map, u32 size, struct task_struct *p, u64 flags)
{
	static const void *known[STORAGES_MAX];
	u32 i = 0;

	count_add(COUNT_WORK, 1);
	while (i < STORAGES_MAX && known[i] && known[i] != map)
		i++;
	if (i == STORAGES_MAX)
		die("more than %d maps of task storage", STORAGES_MAX);
	known[i] = map;
	if (!task_of(p)->storage[i] && (flags & BPF_LOCAL_STORAGE_GET_F_CREATE))
		task_of(p)->storage[i] = allocate_for_task(size);
	return task_of(p)->storage[i];
}

static struct timer {
	void *timer, *map;
	int (*callback)(void *map, u32 *key, void *value);
	u32 key, cpu;
	u64 turn;
} timers[TIMERS_MAX];
static u32 nr_timers;

static struct timer *timer_of(void *timer)
{
	static struct timer *last = timers;

	if (last->timer == timer)
		return last;
	for (last = timers; last < timers + nr_timers; last++)
		if (last->timer == timer)
			return last;
	die("a timer was not initialized");
}

/* A timer is the first member of its value. */
void sim_timer_init(void *timer, void *map, const struct map_shape *shape)
{
	if (nr_timers == TIMERS_MAX)
		die("more than %d timers", TIMERS_MAX);
	timers[nr_timers++] = (struct timer){
		.timer = timer,
		.map = map,
		.key = (u32)(((char *)timer - map_of(map, shape)->values) / shape->value_size),
	};
}

void sim_timer_set(void *timer, void *callback)
{
	count_add(COUNT_WORK, 1);
	timer_of(timer)->callback = (int (*)(void *, u32 *, void *))callback;
}

static void timer_fires(void *arg, u64 turn)
{
	struct timer *timer = arg;

	if (timer->turn != turn)
		return;
	machine.here = timer->cpu;
	count_begin(OP_TIMER, timer->cpu);
	timer->callback(timer->map, &timer->key, timer->timer);
	count_end();
}

void sim_timer_start(void *address, u64 delay_ns)
{
	struct timer *timer = timer_of(address);

	count_add(COUNT_WORK, 1);
	timer->cpu = machine.here;
	event_at(machine.now + delay_ns, timer_fires, timer, ++timer->turn);
}

/* A loop up to the number of CPUs scans CPUs, or as many caches. */
void sim_step(const struct sim_loop *loop)
{
	bool scans = loop->end == machine.nr_cpus;

	count_add(COUNT_WORK, 1);
	count_add(COUNT_CPU_SCANS, scans && loop->at == loop->from);
	count_add(COUNT_CPU_STEPS, scans);
}

u64 bpf_ktime_get_ns(void)
{
	count_add(COUNT_WORK, 1);
	return machine.now;
}

u64 bpf_ktime_get_boot_ns(void)
{
	return machine.now;
}

u32 bpf_get_smp_processor_id(void)
{
	return machine.here;
}

u32 bpf_get_prandom_u32(void)
{
	count_add(COUNT_WORK, 1);
	return (u32)load_random(1ULL << 32);
}

struct task_struct *bpf_get_current_task_btf(void)
{
	struct cpu *cpu = &machine.cpus[machine.here];

	return cpu->curr ? &cpu->curr->p : &cpu->idle.p;
}

struct pt_regs *bpf_task_pt_regs(struct task_struct *p)
{
	count_add(COUNT_WORK, 1);
	return (struct pt_regs *)&task_of(p)->regs;
}

long bpf_probe_read_kernel(void *to, u32 size, const void *from)
{
	memset(to, 0, size);
	if (!from)
		return -14; /* EFAULT */
	memcpy(to, from, size);
	return 0;
}

long bpf_probe_read_kernel_str(void *to, u32 size, const void *from)
{
	size_t length = from ? strnlen(from, size - 1) : 0;

	memset(to, 0, size);
	if (!from)
		return -14;
	memcpy(to, from, length);
	return (long)length + 1;
}

/* Nothing reads the ring buffers. */
void *bpf_ringbuf_reserve(void *map, u64 size, u64 flags)
{
	static char record[RECORD_SIZE];

	count_add(COUNT_WORK, 1);
	return size <= sizeof(record) ? record : NULL;
}

void bpf_ringbuf_submit(void *record, u64 flags)
{
	count_add(COUNT_WORK, 1);
}

void bpf_rcu_read_lock(void)
{
}

void bpf_rcu_read_unlock(void)
{
}

struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgroup, int level)
{
	return level <= cgroup->level ? cgroup->ancestors[level] : NULL;
}

void bpf_cgroup_release(struct cgroup *cgroup)
{
}

void scx_bpf_exit_bstr(s64 exit_code, char *format, unsigned long long *data, u32 size)
{
	die("the scheduler exited: %s", format);
}

void scx_bpf_dump_bstr(char *format, unsigned long long *data, u32 size)
{
}
