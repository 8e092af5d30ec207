/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/history.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/macros.h"
#include "serve/history_ranks.h"

/* A longer time without a snapshot is a gap: it is not known how it was divided. */
#define GAP_NS (5 * NSEC_PER_SEC)

const struct rank_level_row rank_levels[RESOLUTION_NR] = {
	[RESOLUTION_FINE] = { 1, 15 * 60 },
	[RESOLUTION_COARSE] = { 10, RANK_HISTORY_SPAN_S },
};

int rank_history_new(size_t bytes_max, struct rank_history **ret)
{
	struct rank_history *history = calloc(1, sizeof(*history));

	if (!history)
		return -ENOMEM;
	history->bytes_max = bytes_max;
	*ret = history;
	return 0;
}

static void drop_first(struct rank_history *history, struct rank_lane *lane)
{
	struct rank_chunk *chunk = lane->first;

	lane->first = chunk->next;
	if (!lane->first)
		lane->last = NULL;
	lane->nr_chunks--;
	history->bytes -= sizeof(*chunk);
	free(chunk);
}

static void free_rank(struct rank_history *history, struct rank *rank)
{
	for (u32 level = 0; level < RESOLUTION_NR; level++)
		while (rank->lanes[level].first)
			drop_first(history, &rank->lanes[level]);
	history->bytes -= sizeof(*rank);
	free(rank);
}

struct rank_history *rank_history_free(struct rank_history *history)
{
	if (!history)
		return NULL;
	for (u32 i = 0; i < history->nr; i++)
		free_rank(history, history->ranks[i]);
	free(history->ranks);
	free(history);
	return NULL;
}

/* The processes of a snapshot keep their order, so the search starts behind the last find. */
static struct rank *find_rank(struct rank_history *history, u32 pid, u64 start_ns)
{
	for (u32 i = 0; i < history->nr; i++) {
		u32 at = (history->hint + i) % history->nr;
		struct rank *rank = history->ranks[at];

		if (rank->pid == pid && rank->start_ns == start_ns) {
			history->hint = at + 1;
			return rank;
		}
	}
	return NULL;
}

static u32 nr_chunks(const struct rank *rank)
{
	return rank->lanes[RESOLUTION_FINE].nr_chunks + rank->lanes[RESOLUTION_COARSE].nr_chunks;
}

/* The lane that loses its oldest chunk first, or NULL. A present rank needs its last chunk. */
static struct rank_lane *thin_lane(struct rank *rank)
{
	for (u32 level = 0; level < RESOLUTION_NR; level++)
		if (rank->lanes[level].nr_chunks > (rank->is_present ? 1 : 0))
			return &rank->lanes[level];
	return NULL;
}

/* Ranks that ended first are thinned first; among equals, those with the most data. */
static bool is_thinned_before(const struct rank *a, const struct rank *b)
{
	if (a->is_present != b->is_present)
		return b->is_present;
	if (!a->is_present && a->seen_ms != b->seen_ms)
		return a->seen_ms < b->seen_ms;
	return nr_chunks(a) > nr_chunks(b);
}

/* False: nothing can be dropped. */
static bool thin(struct rank_history *history)
{
	struct rank *victim = NULL;

	for (u32 i = 0; i < history->nr; i++) {
		struct rank *rank = history->ranks[i];

		if (thin_lane(rank) && (!victim || is_thinned_before(rank, victim)))
			victim = rank;
	}
	if (!victim)
		return false;
	drop_first(history, thin_lane(victim));
	history->nr_thinned++;
	return true;
}

static int make_room(struct rank_history *history, size_t bytes)
{
	while (history->bytes + bytes > history->bytes_max)
		if (!thin(history))
			return -ENOMEM;
	history->bytes += bytes;
	return 0;
}

static int add_rank(struct rank_history *history, const struct snapshot_process *process,
		    struct rank **ret)
{
	struct rank *rank;

	if (history->nr == history->capacity) {
		u32 capacity = history->capacity ? 2 * history->capacity : 16;
		struct rank **ranks = reallocarray(history->ranks, capacity, sizeof(*ranks));

		if (!ranks)
			return -ENOMEM;
		history->ranks = ranks;
		history->capacity = capacity;
	}
	if (make_room(history, sizeof(*rank)) < 0)
		return -ENOMEM;
	rank = calloc(1, sizeof(*rank));
	if (!rank) {
		history->bytes -= sizeof(*rank);
		return -ENOMEM;
	}
	rank->pid = process->pid;
	rank->uid = process->uid;
	rank->start_ns = process->start_ns;
	history->ranks[history->nr++] = rank;
	*ret = rank;
	return 0;
}

/* Differences of rounded values add up, rounded differences do not. */
static struct rank_counters count(const struct snapshot *snapshot,
				  const struct snapshot_process *process)
{
	const struct snapshot_account *account = &process->counted;
	const struct hist *steps = snapshot_hist(snapshot, &process->hists, HIST_STEP);
	struct rank_counters counters = { .monotonic_ns = snapshot->monotonic_ns };
	u64 *values = counters.values;

	values[RANK_SPAN] = snapshot->monotonic_ns / NSEC_PER_USEC;
	values[RANK_BUSY] = account->busy_ns / NSEC_PER_USEC;
	values[RANK_OPEN] = account->open_ns / NSEC_PER_USEC;
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		values[RANK_IDLE_FIRST + cause] = account->idle_ns[cause] / NSEC_PER_USEC;
	values[RANK_STEPS] = steps ? steps->count : account->nr_steps;
	values[RANK_STEP_TIME] = steps ? steps->sum / NSEC_PER_USEC : 0;
	for (u32 phase = 1; phase < PHASE_NR; phase++)
		values[RANK_PHASE_FIRST + phase - 1] = process->phase_ns[phase] / NSEC_PER_USEC;
	return counters;
}

static u32 memory_mib(const struct snapshot_process *process)
{
	u64 bytes = 0;

	for (u32 i = 0; i < process->nr_memory; i++)
		bytes += process->memory[i].book.current_bytes;
	return (u32)(bytes >> 20);
}

static int add_chunk(struct rank_history *history, struct rank_lane *lane)
{
	struct rank_chunk *chunk;

	if (make_room(history, sizeof(*chunk)) < 0)
		return -ENOMEM;
	chunk = malloc(sizeof(*chunk));
	if (!chunk) {
		history->bytes -= sizeof(*chunk);
		return -ENOMEM;
	}
	chunk->next = NULL;
	chunk->nr = 0;
	if (lane->last)
		lane->last->next = chunk;
	else
		lane->first = chunk;
	lane->last = chunk;
	lane->nr_chunks++;
	return 0;
}

/* The slot at this time, which is the last one or a new one. */
static struct rank_slot *get_slot(struct rank_history *history, struct rank_lane *lane, u32 time_s)
{
	struct rank_chunk *chunk = lane->last;

	/* If the clock of the machine was set back, time stands still until it is reached again. */
	if (chunk && chunk->nr && chunk->slots[chunk->nr - 1].time_s >= time_s)
		return &chunk->slots[chunk->nr - 1];
	if (!chunk || chunk->nr == CHUNK_SLOTS) {
		if (add_chunk(history, lane) < 0)
			return NULL;
		chunk = lane->last;
	}
	chunk->slots[chunk->nr] = (struct rank_slot){ .time_s = time_s };
	return &chunk->slots[chunk->nr++];
}

static u32 saturate(u64 value)
{
	return value < ~0U ? (u32)value : ~0U;
}

static u64 part_of(u64 all, u64 from, u64 to, u64 whole)
{
	return all * to / whole - all * from / whole;
}

/*
 * Adds the part of each difference that belongs to the time from `from` to `to` of `whole`. Steps
 * are whole numbers, so a slot gets the time of as many steps as it gets: its mean is that of the
 * steps.
 */
static void add_part(struct rank_slot *slot, const u64 differences[static RANK_VALUE_NR], u64 from,
		     u64 to, u64 whole)
{
	u64 steps = differences[RANK_STEPS];

	for (u32 i = 0; i < RANK_VALUE_NR; i++) {
		u64 part = i == RANK_STEP_TIME && steps
				   ? part_of(differences[i], steps * from / whole,
					     steps * to / whole, steps)
				   : part_of(differences[i], from, to, whole);

		slot->values[i] = saturate(slot->values[i] + part);
	}
}

/* The differences belong to the time of `span_ms` that ends at `end_ms`. */
static int spread(struct rank_history *history, struct rank_lane *lane, u32 step_s,
		  const u64 differences[static RANK_VALUE_NR], u64 end_ms, u64 span_ms, u32 memory)
{
	u64 begin_ms = end_ms - span_ms, step_ms = 1000ULL * step_s;

	for (u64 at_ms = begin_ms; at_ms < end_ms;) {
		u64 slot_ms = at_ms - at_ms % step_ms;
		u64 next_ms = slot_ms + step_ms < end_ms ? slot_ms + step_ms : end_ms;
		struct rank_slot *slot = get_slot(history, lane, (u32)(slot_ms / 1000));

		if (!slot)
			return -ENOMEM;
		add_part(slot, differences, at_ms - begin_ms, next_ms - begin_ms, span_ms);
		if (memory > slot->memory_mib)
			slot->memory_mib = memory;
		at_ms = next_ms;
	}
	return 0;
}

/* False if it is the first time, a counter decreased, or too much time passed: begin anew. */
static bool subtract(const struct rank_counters *now, const struct rank_counters *before,
		     u64 ret[static RANK_VALUE_NR])
{
	if (!before->monotonic_ns || now->monotonic_ns <= before->monotonic_ns ||
	    now->monotonic_ns - before->monotonic_ns > GAP_NS)
		return false;
	for (u32 i = 0; i < RANK_VALUE_NR; i++) {
		if (now->values[i] < before->values[i])
			return false;
		ret[i] = now->values[i] - before->values[i];
	}
	return true;
}

/* A process can get its rank and its job later than its first launch. */
static void describe(struct rank *rank, const struct snapshot *snapshot,
		     const struct snapshot_process *process)
{
	const struct snapshot_job *job = snapshot_job(snapshot, process);

	rank->nr_ranks = process->nr_ranks;
	rank->rank = process->rank;
	rank->gpu = process->task.known ? process->task.gpu : SNAPSHOT_GPU_UNKNOWN;
	memcpy(rank->comm, process->comm, sizeof(rank->comm));
	memcpy(rank->job, job ? job->cgroup : "", job ? sizeof(rank->job) : 1);
	memcpy(rank->name, job ? job->name : "", job ? sizeof(rank->name) : 1);
}

/* Whether one more rank gets a history. A user leaves a quarter of the places to others. */
static bool has_place(const struct rank_history *history, u32 uid, u64 since_ms)
{
	u32 nr = 0, nr_own = 0;

	for (u32 i = 0; i < history->nr; i++) {
		const struct rank *rank = history->ranks[i];

		nr += rank->seen_ms >= since_ms;
		nr_own += rank->seen_ms >= since_ms && rank->uid == uid;
	}
	return nr < RANK_HISTORY_RANKS_MAX && nr_own < RANK_HISTORY_RANKS_MAX * 3 / 4;
}

/* `since_ms`: the time of the snapshot before. */
static int add_process(struct rank_history *history, const struct snapshot *snapshot,
		       const struct snapshot_process *process, u64 since_ms)
{
	struct rank *rank = find_rank(history, process->pid, process->start_ns);
	struct rank_counters now = count(snapshot, process);
	u64 differences[RANK_VALUE_NR], span_ms;
	int err = 0;

	if (!rank)
		err = has_place(history, process->uid, since_ms) ? add_rank(history, process, &rank)
								 : -E2BIG;
	if (err < 0)
		return err;
	describe(rank, snapshot, process);
	rank->is_present = true;
	rank->seen_ms = snapshot->time_ms;
	span_ms = (now.monotonic_ns - rank->last.monotonic_ns) / NSEC_PER_MSEC;
	if (subtract(&now, &rank->last, differences) && span_ms && span_ms < snapshot->time_ms)
		for (u32 level = 0; level < RESOLUTION_NR && err == 0; level++)
			err = spread(history, &rank->lanes[level], rank_levels[level].step_s,
				     differences, snapshot->time_ms, span_ms, memory_mib(process));
	rank->last = now;
	return err;
}

/* Drops what is older than its span, and ranks that have nothing left. */
static void expire(struct rank_history *history)
{
	u64 now_s = history->now_ms / 1000;
	u32 kept = 0;

	for (u32 i = 0; i < history->nr; i++) {
		struct rank *rank = history->ranks[i];

		for (u32 level = 0; level < RESOLUTION_NR; level++) {
			struct rank_lane *lane = &rank->lanes[level];

			while (lane->first && lane->first->nr &&
			       lane->first->slots[lane->first->nr - 1].time_s +
					       rank_levels[level].span_s <
				       now_s)
				drop_first(history, lane);
		}
		if (rank->is_present || nr_chunks(rank))
			history->ranks[kept++] = rank;
		else
			free_rank(history, rank);
	}
	history->nr = kept;
	history->hint = 0;
}

int rank_history_add(struct rank_history *history, const struct snapshot *snapshot)
{
	u64 since_ms = history->now_ms;
	int err = 0;

	history->now_ms = snapshot->time_ms;
	for (u32 i = 0; i < history->nr; i++)
		history->ranks[i]->is_present = false;
	for (u32 i = 0; i < snapshot->nr_processes; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		int one;

		/* Only a process that launches has an account. */
		one = process->launcher_tid ? add_process(history, snapshot, process, since_ms) : 0;
		if (one < 0)
			err = one;
	}
	expire(history);
	return err;
}

size_t rank_history_bytes(const struct rank_history *history)
{
	return history->bytes;
}

u32 rank_history_nr_ranks(const struct rank_history *history)
{
	return history->nr;
}

u64 rank_history_nr_thinned(const struct rank_history *history)
{
	return history->nr_thinned;
}
