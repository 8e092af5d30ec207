/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tables of lines.bpf.c. Each entry belongs to the process that is sampled, which has a share
 * of every table. A process whose share is used up loses its own samples only, and they are counted
 * in its own row. User space deletes the entries of a process when its sampling ends.
 */
#include "abi/lines.h"
#include "bpf/signals/launches.bpf.h"
#include "bpf/signals/roles.bpf.h"
#include "core/gap.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_PROCESSES);
	__type(key, u32);
	__type(value, struct lines_process);
} lines_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_PROCESSES *LINES_STACKS);
	__type(key, struct lines_stack_key);
	__type(value, struct lines_stack_value);
} lines_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_PROCESSES *LINES_SUMS);
	__type(key, struct lines_sum_key);
	__type(value, struct lines_sum);
} lines_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_PROCESSES *LINES_CODES);
	__type(key, struct lines_code_key);
	__type(value, struct python_code);
} lines_codes SEC(".maps");

/* A thread that was sampled. */
struct away {
	u64 state; /* address of its state in the interpreter, which is checked before each use */
	u64 since_ns;	 /* when it left its CPU; 0: its time is not wanted */
	u64 nr_switches; /* so that another absence is not taken for this one */
	u64 nr_launches; /* of its process, when it left */
	struct python_budget budget;
	u64 wait_ns;	/* loader: the wait of its consumer */
	u64 is_dropped; /* its last sample was counted as dropped */
	struct lines_sum_key key;
	struct idle_sums done, open; /* of its process, when it left */
};

/* Threads end without notice. Their entries stay until the end of the sampling. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_PROCESSES *LINES_THREADS);
	__type(key, struct lines_thread_key);
	__type(value, struct away);
} lines_threads SEC(".maps");

static const struct away away_new;

static inline struct lines_process *wanted(u32 tgid)
{
	return bpf_map_lookup_elem(&lines_processes, &tgid);
}

/* A sample counts once, however much of it does not fit. */
static inline void sample_dropped(struct lines_process *owner, struct away *away)
{
	if (!away->is_dropped)
		__sync_fetch_and_add(&owner->counts.nr_dropped, 1);
	away->is_dropped = 1;
}

/* Adds an entry to a table, unless the share of the process is used up or memory is short. */
static __always_inline bool share_add(void *map, const void *key, const void *value, u64 *nr,
				      u64 max)
{
	if (*nr >= max)
		return false;
	if (__sync_fetch_and_add(nr, 1) < max && !bpf_map_update_elem(map, key, value, BPF_NOEXIST))
		return true;
	__sync_fetch_and_add(nr, -1);
	return false;
}

static inline struct away *away_find(u32 owner, u32 tid)
{
	struct lines_thread_key key = { .owner = owner, .tid = tid };

	return bpf_map_lookup_elem(&lines_threads, &key);
}

static inline struct away *away_get(struct lines_process *process, u32 owner, u32 tid)
{
	struct lines_thread_key key = { .owner = owner, .tid = tid };
	struct away *away = away_find(owner, tid);

	if (away)
		return away;
	if (!share_add(&lines_threads, &key, &away_new, &process->used.nr_threads, LINES_THREADS))
		__sync_fetch_and_add(&process->counts.nr_dropped, 1);
	return away_find(owner, tid);
}

static inline bool sum_add(const struct lines_sum_key *key, const struct lines_sum *sum)
{
	struct lines_sum *known = bpf_map_lookup_elem(&lines_sums, key);

	if (!known)
		return false;
	__sync_fetch_and_add(&known->done_ns, sum->done_ns);
	__sync_fetch_and_add(&known->open_ns, sum->open_ns);
	__sync_fetch_and_add(&known->nr_samples, sum->nr_samples);
	return true;
}

static inline bool sum_put(struct lines_process *owner, struct lines_sum_key *key,
			   const struct lines_sum *sum)
{
	if (sum_add(key, sum))
		return true;
	if (owner->used.nr_sums >= LINES_KERNEL_SUMS) {
		key->after = key->before = GAP_UNKNOWN;
		if (sum_add(key, sum))
			return true;
	}
	return share_add(&lines_sums, key, sum, &owner->used.nr_sums, LINES_SUMS);
}

/* The next launch is known, or it is known that it will not be known. */
static void gap_flush(struct lines_process *owner, u64 before)
{
	struct lines_gap *gap = &owner->gap;

	for (u32 i = 0; i < LINES_WAITING && i < gap->nr_waiting; i++) {
		struct lines_waiting *waiting = gap_at(gap, i);

		waiting->key.before = before;
		if (!sum_put(owner, &waiting->key, &waiting->sum))
			__sync_fetch_and_add(&owner->counts.nr_dropped, 1);
	}
	gap->nr_waiting = 0;
}

/* Lets the sum wait for the next launch. It takes no room that others in the table have. */
static bool gap_charge(struct lines_process *owner, struct lines_sum_key *key,
		       const struct lines_sum *sum)
{
	struct lines_gap *gap = &owner->gap;
	bool is_kept;

	if (!gap_take(gap))
		return false;
	if (gap_is_over(gap, false))
		gap_flush(owner, GAP_UNKNOWN);
	key->after = gap->after;
	is_kept = owner->used.nr_sums + gap->nr_waiting < LINES_SUMS && gap_wait(gap, key, sum);
	gap_release(gap);
	return is_kept;
}

/*
 * `is_one_gap`: there was no launch in this time. Not static, so that the verifier checks the
 * function once, not for each path of its callers. The verifier of 6.1 does not accept what an
 * argument points to as a key or a value of a map.
 */
__noinline int lines_charge(struct away *away, const struct lines_sum_key *key,
			    const struct lines_sum *sum, bool is_one_gap)
{
	struct lines_process *owner;
	struct lines_sum_key own_key;
	struct lines_sum own_sum;

	if (!away || !key || !sum)
		return 0;
	own_key = *key;
	own_sum = *sum;
	owner = wanted(own_key.tgid);
	if (!owner || (is_one_gap && gap_charge(owner, &own_key, &own_sum)))
		return 0;
	own_key.after = own_key.before = GAP_UNKNOWN;
	if (!sum_put(owner, &own_key, &own_sum))
		sample_dropped(owner, away);
	return 0;
}
