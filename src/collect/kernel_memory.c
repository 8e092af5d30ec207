/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The BPF maps with data of processes outside of task storage: counts their entries, and deletes
 * the entries of exited processes.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "base/time.h"
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
	ret[4] = kernel->skel->maps.oom_frames;
	ret[5] = kernel->skel->maps.sequences;
	ret[6] = kernel->skel->maps.gpu_kernels;
}

static struct listed_process *list_find(const struct process_list *list,
					const struct process_key *key)
{
	/* Keys of one process often follow each other, so the search starts at the end. */
	for (u32 i = list->nr; i > 0; i--)
		if (list->items[i - 1].key.start_ns == key->start_ns &&
		    list->items[i - 1].key.tgid == key->tgid)
			return &list->items[i - 1];
	return NULL;
}

static int compare_listed(const void *a, const void *b)
{
	const struct process_key *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* A walk visits up to hundreds of thousands of keys, and a thousand processes can end together. */
static void list_sort(struct process_list *list)
{
	_Static_assert(offsetof(struct listed_process, key) == 0, "compared as keys");

	if (list->nr)
		qsort(list->items, list->nr, sizeof(*list->items), compare_listed);
}

/* In a list that was sorted. */
static struct listed_process *list_search(const struct process_list *list,
					  const struct process_key *key)
{
	return list->nr ? bsearch(key, list->items, list->nr, sizeof(*list->items), compare_listed)
			: NULL;
}

static int list_add(struct process_list *list, const struct listed_process *process)
{
	if (list->nr == list->capacity) {
		u32 capacity = list->capacity ? 2 * list->capacity : 64;
		void *larger = realloc(list->items, capacity * sizeof(*list->items));

		if (!larger)
			return -ENOMEM;
		list->items = larger;
		list->capacity = capacity;
	}
	list->items[list->nr++] = *process;
	return 0;
}

/* What is done with every key of every map. */
struct walk {
	/* A negative result ends the walk. */
	int (*fn)(struct walk *walk, struct bpf_map *map, const void *key);
	const struct bpf_map *counted[TENANT_TABLE_NR]; /* maps in which tenants have a part */
	struct process_list *list;
	const struct bpf_map *left_out; /* a map that is not visited, or NULL */
	u64 nr;
	u64 nr_stacks; /* of out-of-memory errors, which nobody has taken */
};

/*
 * The kernel begins again at the first key if the current one was deleted meanwhile, which the
 * processes can do all the time. Therefore the number of steps has a bound. A key that the walk
 * does not reach is found by the next sweep.
 */
static int for_each_key(const struct kernel *kernel, struct walk *walk)
{
	struct bpf_map *maps[PROCESS_MAPS_NR];
	int err = 0;

	walk->counted[TENANT_MEMORY] = kernel->skel->maps.memories;
	walk->counted[TENANT_STACKS] = kernel->skel->maps.oom_frames;
	walk->counted[TENANT_SEQUENCES] = kernel->skel->maps.sequences;
	walk->counted[TENANT_KERNELS] = kernel->skel->maps.gpu_kernels;
	process_maps(kernel, maps);
	for (u32 i = 0; i < PROCESS_MAPS_NR; i++) {
		char at[KEY_BYTES_MAX], next[KEY_BYTES_MAX];
		size_t size = bpf_map__key_size(maps[i]);
		u64 left = 2ULL * bpf_map__max_entries(maps[i]);
		int more = -ENOENT;

		if (maps[i] != walk->left_out)
			more = bpf_map__get_next_key(maps[i], NULL, next, size);

		/* The next key is read first, because `fn` may delete the current key. */
		while (more == 0 && err == 0 && left-- > 0) {
			memcpy(at, next, size);
			more = bpf_map__get_next_key(maps[i], at, next, size);
			err = walk->fn(walk, maps[i], at);
		}
	}
	return err;
}

static void count_entry(const struct walk *walk, const struct bpf_map *map,
			struct listed_process *process)
{
	for (u32 table = 0; table < TENANT_TABLE_NR; table++)
		process->nr[table] += map == walk->counted[table];
}

static int note_process(struct walk *walk, struct bpf_map *map, const void *key)
{
	struct listed_process process = {}, *known;
	int err;

	memcpy(&process.key, key, sizeof(process.key));
	known = list_find(walk->list, &process.key);
	if (!known) {
		err = list_add(walk->list, &process);
		if (err < 0)
			return err;
		known = &walk->list->items[walk->list->nr - 1];
	}
	count_entry(walk, map, known);
	return 0;
}

static int delete_dead(struct walk *walk, struct bpf_map *map, const void *key)
{
	struct listed_process *process;
	struct process_key wanted;

	memcpy(&wanted, key, sizeof(wanted));
	process = list_search(walk->list, &wanted);
	if (!process || process->lives ||
	    bpf_map__delete_elem(map, key, bpf_map__key_size(map), 0) < 0)
		return 0;
	count_entry(walk, map, process);
	walk->nr_stacks += map == walk->counted[TENANT_STACKS] &&
			   ((const struct oom_frame_key *)key)->index == 0;
	return 0;
}

static void count_lost_stacks(struct kernel *kernel, const struct walk *walk)
{
	__atomic_fetch_add(&kernel->skel->bss->nr_dropped_stacks, walk->nr_stacks,
			   __ATOMIC_RELAXED);
}

static int count_key(struct walk *walk, struct bpf_map *map, const void *key)
{
	walk->nr++;
	return 0;
}

int kernel_note_gone(struct kernel *kernel, const struct process_state *process)
{
	struct listed_process gone = {
		.key = { .start_ns = process->start_ns, .tgid = process->task.pid },
		.uid = process->uid,
		.group = process->group,
	};

	return list_add(&kernel->gone, &gone);
}

void kernel_forget_gone(struct kernel *kernel)
{
	/* The sequences of a process were deleted by their keys. */
	struct walk walk = { .fn = delete_dead,
			     .list = &kernel->gone,
			     .left_out = kernel->skel->maps.sequences };

	list_sort(&kernel->gone);
	if (kernel->gone.nr)
		for_each_key(kernel, &walk);
	count_lost_stacks(kernel, &walk);
	for (u32 i = 0; i < kernel->gone.nr; i++)
		kernel_release_entries(kernel, &kernel->gone.items[i]);
	kernel->gone.nr = 0;
}

/* Marks the processes of a sorted list that live. Returns the number of the others. */
static u32 mark_live(struct process_list *list, const struct kernel_snapshot *snapshot)
{
	u32 nr_dead = list->nr;

	for (u32 i = 0; i < snapshot->nr_processes; i++) {
		const struct process_state *process = &snapshot->processes[i];
		struct process_key key = { .start_ns = process->start_ns,
					   .tgid = process->task.pid };
		struct listed_process *known = list_search(list, &key);

		if (!known)
			continue;
		known->lives = true;
		known->uid = process->uid;
		known->group = process->group;
		nr_dead--;
	}
	return nr_dead;
}

/* Rows of launchers, sorted. */
struct launchers {
	struct consumer_key *rows;
	u32 nr;
};

static int compare_launchers(const void *a, const void *b)
{
	const struct consumer_key *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int list_launchers(const struct kernel *kernel, struct launchers *ret)
{
	const struct bpf_map *map = kernel->skel->maps.consumers;
	u32 max = bpf_map__max_entries(map);
	struct consumer_key at, next;
	int more = bpf_map__get_next_key(map, NULL, &next, sizeof(next));

	ret->rows = calloc(max, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	while (more == 0 && ret->nr < max) {
		at = ret->rows[ret->nr++] = next;
		more = bpf_map__get_next_key(map, &at, &next, sizeof(next));
	}
	qsort(ret->rows, ret->nr, sizeof(*ret->rows), compare_launchers);
	return 0;
}

/*
 * Deletes the rows of threads that are gone. The end of a thread deletes its row, but the kernel
 * does not report each end.
 */
static void delete_launchers(const struct kernel *kernel, struct launchers *launchers,
			     const struct kernel_snapshot *snapshot)
{
	for (u32 i = 0; i < snapshot->nr_threads; i++) {
		const struct thread_record *thread = &snapshot->threads[i];
		const struct consumer_key key = { .tid = thread->tid,
						  .start_ns = thread->start_ns };
		struct consumer_key *row = bsearch(&key, launchers->rows, launchers->nr,
						   sizeof(key), compare_launchers);

		if (row)
			row->tgid = 0;
	}
	for (u32 i = 0; i < launchers->nr; i++)
		if (launchers->rows[i].tgid)
			bpf_map__delete_elem(kernel->skel->maps.consumers, &launchers->rows[i],
					     sizeof(*launchers->rows), 0);
}

/* Lists the entries before the running processes: a process is known before it has entries. */
int kernel_sweep(struct kernel *kernel)
{
	struct process_list list = {};
	struct launchers launchers = {};
	struct kernel_snapshot snapshot = {};
	struct walk note = { .fn = note_process, .list = &list };
	struct walk delete = { .fn = delete_dead, .list = &list };
	int err;

	kernel->swept_ns = time_now_ns();
	kernel->swept_drops = kernel->skel->bss->nr_dropped_events;
	err = for_each_key(kernel, &note);
	if (err == 0)
		err = list_launchers(kernel, &launchers);
	if (err == 0)
		err = kernel_snapshot_take(kernel, &snapshot);
	if (err == 0) {
		list_sort(&list);
		if (mark_live(&list, &snapshot))
			for_each_key(kernel, &delete);
		count_lost_stacks(kernel, &delete);
		delete_launchers(kernel, &launchers, &snapshot);
		kernel_recount_tenants(kernel, &snapshot, &list);
	}
	kernel_snapshot_done(&snapshot);
	free(launchers.rows);
	free(list.items);
	return err < 0 ? err : kernel_sweep_groups(kernel);
}

bool kernel_sweep_is_due(const struct kernel *kernel)
{
	return kernel->skel->bss->nr_dropped_events != kernel->swept_drops ||
	       time_now_ns() - kernel->swept_ns >= SWEEP_NS;
}

u64 kernel_nr_entries(const struct kernel *kernel)
{
	struct walk walk = { .fn = count_key };
	struct launchers launchers = {};

	for_each_key(kernel, &walk);
	list_launchers(kernel, &launchers);
	free(launchers.rows);
	return walk.nr + launchers.nr + kernel_nr_groups(kernel);
}
