/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The BPF maps with data of processes outside of task storage: counts their entries, maps
 * device numbers, and deletes the entries of exited processes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "collect/gpu_visible.h"
#include "collect/kernel_internal.h"

/* A process that executes another program leaves its entries without an event. */
#define SWEEP_NS (60 * NSEC_PER_SEC)

#define KEY_BYTES_MAX 64

/* All keys begin with struct process_key; they may use its padding. */
static void process_maps(const struct kernel *kernel, struct bpf_map *ret[PROCESS_MAPS_NR])
{
	ret[0] = kernel->skel->maps.memories;
	ret[1] = kernel->skel->maps.gpu_numbers;
	ret[2] = kernel->skel->maps.hists;
	ret[3] = kernel->skel->maps.culprits;
}

static bool list_has(const struct process_list *list, const struct process_key *key)
{
	/* Keys of one process often follow each other, so the search starts at the end. */
	for (u32 i = list->nr; i > 0; i--)
		if (list->keys[i - 1].start_ns == key->start_ns &&
		    list->keys[i - 1].tgid == key->tgid)
			return true;
	return false;
}

static int list_add(struct process_list *list, const struct process_key *key)
{
	if (list->nr == list->capacity) {
		u32 capacity = list->capacity ? 2 * list->capacity : 64;
		void *larger = realloc(list->keys, capacity * sizeof(*list->keys));

		if (!larger)
			return -ENOMEM;
		list->keys = larger;
		list->capacity = capacity;
	}
	list->keys[list->nr++] = *key;
	return 0;
}

/* Called for every key of every map. A negative result ends the walk. */
typedef int (*key_fn)(void *ctx, struct bpf_map *map, const void *key);

static int for_each_key(const struct kernel *kernel, key_fn fn, void *ctx)
{
	struct bpf_map *maps[PROCESS_MAPS_NR];
	int err = 0;

	process_maps(kernel, maps);
	for (u32 i = 0; i < PROCESS_MAPS_NR; i++) {
		char at[KEY_BYTES_MAX], next[KEY_BYTES_MAX];
		size_t size = bpf_map__key_size(maps[i]);
		int more = bpf_map__get_next_key(maps[i], NULL, next, size);

		/* The next key is read first, because `fn` may delete the current key. */
		while (more == 0 && err == 0) {
			memcpy(at, next, size);
			more = bpf_map__get_next_key(maps[i], at, next, size);
			err = fn(ctx, maps[i], at);
		}
	}
	return err;
}

static int note_process(void *ctx, struct bpf_map *map, const void *key)
{
	struct process_list *list = ctx;
	struct process_key process;

	memcpy(&process, key, sizeof(process));
	return list_has(list, &process) ? 0 : list_add(list, &process);
}

static int delete_listed(void *ctx, struct bpf_map *map, const void *key)
{
	struct process_key process;

	memcpy(&process, key, sizeof(process));
	if (list_has(ctx, &process))
		bpf_map__delete_elem(map, key, bpf_map__key_size(map), 0);
	return 0;
}

static int count_key(void *ctx, struct bpf_map *map, const void *key)
{
	++*(u64 *)ctx;
	return 0;
}

int kernel_note_gone(struct kernel *kernel, const struct process_state *process)
{
	struct process_key key = { .start_ns = process->start_ns, .tgid = process->task.pid };

	return list_add(&kernel->gone, &key);
}

void kernel_forget_gone(struct kernel *kernel)
{
	if (kernel->gone.nr)
		for_each_key(kernel, delete_listed, &kernel->gone);
	kernel->gone.nr = 0;
}

static void keep_the_dead(struct process_list *list, const struct kernel_snapshot *snapshot)
{
	u32 nr = 0;

	for (u32 i = 0; i < list->nr; i++) {
		bool lives = false;

		for (u32 p = 0; p < snapshot->nr_processes && !lives; p++)
			lives = snapshot->processes[p].start_ns == list->keys[i].start_ns &&
				snapshot->processes[p].task.pid == list->keys[i].tgid;
		if (!lives)
			list->keys[nr++] = list->keys[i];
	}
	list->nr = nr;
}

/* Lists the entries before the running processes: a process is known before it has entries. */
int kernel_sweep(struct kernel *kernel)
{
	struct process_list list = {};
	struct kernel_snapshot snapshot = {};
	int err;

	kernel->swept_ns = time_now_ns();
	kernel->swept_drops = kernel->skel->bss->nr_dropped_events;
	err = for_each_key(kernel, note_process, &list);
	if (err == 0)
		err = kernel_snapshot_take(kernel, &snapshot);
	if (err == 0) {
		kernel_recount_tenants(kernel, &snapshot);
		keep_the_dead(&list, &snapshot);
		if (list.nr)
			for_each_key(kernel, delete_listed, &list);
	}
	kernel_snapshot_done(&snapshot);
	free(list.keys);
	return err < 0 ? err : kernel_sweep_groups(kernel);
}

bool kernel_sweep_is_due(const struct kernel *kernel)
{
	return kernel->skel->bss->nr_dropped_events != kernel->swept_drops ||
	       time_now_ns() - kernel->swept_ns >= SWEEP_NS;
}

u64 kernel_nr_entries(const struct kernel *kernel)
{
	u64 nr = kernel_nr_groups(kernel);

	for_each_key(kernel, count_key, &nr);
	return nr;
}

void kernel_learn_gpus(struct kernel *kernel, const struct gpu_event *event)
{
	struct process_key key = { .start_ns = event->start_ns, .tgid = event->event.tgid };
	struct gpu_numbers numbers;

	if (event->event.value < RUNTIME_NR &&
	    gpu_visible_read("/proc", (pid_t)key.tgid, event->event.value, &numbers) == 0)
		bpf_map__update_elem(kernel->skel->maps.gpu_numbers, &key, sizeof(key), &numbers,
				     sizeof(numbers), BPF_ANY);
}

int kernel_gpu_number(const struct kernel *kernel, const struct process_state *process, u32 device,
		      u32 *ret)
{
	struct process_key key = { .start_ns = process->start_ns, .tgid = process->task.pid };
	struct gpu_numbers numbers;
	int err = bpf_map__lookup_elem(kernel->skel->maps.gpu_numbers, &key, sizeof(key), &numbers,
				       sizeof(numbers), 0);

	if (err < 0)
		return err;
	if (device >= GPU_MAX || !numbers.of[device])
		return -ENOENT;
	*ret = numbers.of[device] - 1U;
	return 0;
}

/* The storage of a process begins with its state, and has parts that only BPF needs. */
int kernel_read_process(const struct kernel *kernel, int pidfd, struct process_state *ret)
{
	const struct bpf_map *map = kernel->skel->maps.processes;
	size_t size = bpf_map__value_size(map);
	CLEANUP_FREE void *storage = malloc(size);
	int err;

	if (!storage)
		return -ENOMEM;
	err = bpf_map__lookup_elem(map, &pidfd, sizeof(pidfd), storage, size, 0);
	if (err == 0)
		memcpy(ret, storage, sizeof(*ret));
	return err;
}
