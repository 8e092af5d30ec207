/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cause that the answer names. */
#include "answers/why.h"

/* A server waits for requests in spans that are this many times as long as the GPU works for one.
 */
#define LONG_SPAN_FACTOR   10
/* The share of the idle time in long spans, and the idle share of a server without any step. */
#define LONG_SPAN_PERMILLE 800
#define STEPLESS_PERMILLE  950

u32 why_nr_loaders(const struct snapshot *s, u32 pid)
{
	u32 nr = 0;

	for (u32 i = 0; i < s->nr_threads; i++)
		nr += s->threads[i].pid == pid && s->threads[i].role == ROLE_LOADER;
	for (u32 i = 0; i < s->nr_processes; i++)
		nr += s->processes[i].consumer_pid == pid;
	return nr;
}

/* True if most of the idle time lies in spans longer than this. */
static bool mostly_longer(const struct hist *spans, u64 limit_ns)
{
	double all_ns = 0, long_ns = 0;

	for (u32 slot = 0; slot < HIST_OVERFLOW; slot++) {
		u64 middle_ns = hist_middle(slot);
		double ns = (double)middle_ns * (double)spans->buckets[slot];

		all_ns += ns;
		long_ns += middle_ns > limit_ns ? ns : 0;
	}
	return all_ns > 0 && long_ns * 1000 >= all_ns * LONG_SPAN_PERMILLE;
}

/*
 * Whether the launcher may have waited for requests: by sleeping, by polling, or in another thread.
 * A process that it forked counts as a loader, but may bring requests. If it neither worked nor
 * waited for a CPU or a disk before it brought something, and the process brings results to the
 * host, these were requests. A launcher with loaders that computes is not assumed to poll.
 */
static bool may_await_requests(const struct snapshot *after, const struct blame *blame, u32 cause)
{
	bool is_inference = blame->process->step_basis == STEP_BASIS_ITERATION;

	switch (cause) {
	case IDLE_LOADER_OTHER: return is_inference;
	case IDLE_OTHER:
	case IDLE_LOCK: return is_inference || !why_nr_loaders(after, blame->process->pid);
	case IDLE_CPU: return !why_nr_loaders(after, blame->process->pid);
	default: return false;
	}
}

/*
 * The GPU of a server is idle when there is nothing to do. A job that trains has optimizer steps
 * or loaders, and its idle spans are shorter.
 */
static bool has_no_requests(const struct snapshot *after, const struct blame *blame, u32 cause)
{
	if (!may_await_requests(after, blame, cause) ||
	    blame->process->step_basis == STEP_BASIS_OPTIMIZER)
		return false;
	if (blame->nr_steps == 0)
		return why_share(blame, blame->idle_min_ns) >= STEPLESS_PERMILLE;
	return mostly_longer(&blame->idle_spans,
			     blame->busy_ns / blame->nr_steps * LONG_SPAN_FACTOR);
}

u32 why_cause(const struct snapshot *after, const struct blame *blame)
{
	u32 cause = blame_largest_cause(blame);

	if (blame->disagrees || cause == IDLE_CAUSE_NR)
		return WHY_NO_CAUSE;
	return has_no_requests(after, blame, cause) ? WHY_NO_REQUESTS : cause;
}

const char *why_cause_label(u32 cause)
{
	return cause == WHY_NO_REQUESTS ? "no_requests" : idle_cause_label(cause);
}
