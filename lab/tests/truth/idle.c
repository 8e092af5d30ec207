/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int start_cmp(const void *left, const void *right)
{
	const struct truth_event *l = left, *r = right;

	return (l->rec.start_ns > r->rec.start_ns) - (l->rec.start_ns < r->rec.start_ns);
}

/* The logs of a run that the cause of idle time follows from. */
struct logs {
	struct events busy, did, load, launch;
	u64 *idle_ns; /* by the index in `did`: the device was idle, and the thread ended that */
};

struct events events_of(const struct truth_dir *dir, enum truth_kind kind)
{
	struct events events;

	assert_int_equal(truth_dir_collect(dir, kind, &events.all, &events.nr), 0);
	qsort(events.all, events.nr, sizeof(*events.all), start_cmp);
	return events;
}

static u64 overlap(const struct truth_record *rec, u64 start, u64 end)
{
	u64 from = rec->start_ns > start ? rec->start_ns : start;
	u64 to = rec->end_ns < end ? rec->end_ns : end;

	return to > from ? to - from : 0;
}

/* The share of `ns`, which belong to the record, that lies in the span. */
static u64 share(const struct truth_record *rec, u64 ns, u64 start, u64 end)
{
	u64 length = rec->end_ns - rec->start_ns;

	return length ? (u64)((double)ns * (double)overlap(rec, start, end) / (double)length) : 0;
}

/* A thread that computes never sleeps: it had no CPU for the rest of the time. */
static u64 own_delay(const struct truth_record *did)
{
	return did->sub == TRUTH_DID_COMPUTE ? did->end_ns - did->start_ns - did->a : did->b;
}

/* The loaders of these jobs only compute, so a launcher waits for the rest of the time in vain. */
static u64 data_delay(const struct logs *logs, const struct truth_record *did)
{
	u64 length = did->end_ns - did->start_ns, cpu = 0;

	for (u64 i = 0; i < logs->load.nr; i++)
		cpu += share(&logs->load.all[i].rec, logs->load.all[i].rec.b, did->start_ns,
			     did->end_ns);
	return cpu < length ? length - cpu : 0;
}

/* Delays of other threads that launch, on which the work of this thread depends. */
static u64 peer_delay(const struct logs *logs, const struct truth_event *did)
{
	u64 delay = 0;

	for (u64 i = 0; i < logs->did.nr; i++) {
		const struct truth_event *other = &logs->did.all[i];
		bool is_rank = other->pid != did->pid;

		if (other->rec.tid != did->rec.tid && (is_rank || did->rec.sub == TRUTH_DID_PEER))
			delay += share(&other->rec, own_delay(&other->rec), did->rec.start_ns,
				       did->rec.end_ns);
	}
	return delay;
}

static u64 delay_of(const struct logs *logs, const struct truth_event *did)
{
	return did->rec.sub == TRUTH_DID_DATA ? data_delay(logs, &did->rec)
					      : own_delay(&did->rec) + peer_delay(logs, did);
}

/*
 * A delay is longer than the work that is queued when it begins, except where the device
 * is never idle. So the idle time of a span contains its delays.
 */
static void add_causes(struct idle *idle, const struct logs *logs)
{
	for (u64 i = 0; i < logs->did.nr; i++) {
		const struct truth_event *did = &logs->did.all[i];
		u64 inside = logs->idle_ns[i], delay;

		if (inside == 0)
			continue;
		delay = delay_of(logs, did);
		delay = delay < inside ? delay : inside;
		idle->delay_ns += delay;
		idle->did_ns[did->rec.sub] += inside - delay;
	}
}

/* The device was idle until thread `tid` launched. */
static void add_gap(struct idle *idle, const struct logs *logs, u32 tid, u64 start, u64 end)
{
	if (end <= start)
		return;
	idle->idle_ns += end - start;
	for (u64 i = 0; i < logs->did.nr && logs->did.all[i].rec.start_ns < end; i++)
		if (logs->did.all[i].rec.tid == tid)
			logs->idle_ns[i] += overlap(&logs->did.all[i].rec, start, end);
}

static u32 launcher_of(const struct events *launch, const struct truth_event *busy)
{
	for (u64 i = 0; i < launch->nr; i++)
		if (launch->all[i].pid == busy->pid && launch->all[i].rec.c == busy->rec.c)
			return launch->all[i].rec.tid;
	fail_msg("no launch for sequence %llu", busy->rec.c);
	return 0;
}

static void add_gaps(struct idle *idle, const struct logs *logs)
{
	u64 at = idle->start_ns;

	for (u64 i = 0; i < logs->busy.nr && at < idle->end_ns; i++) {
		const struct truth_event *busy = &logs->busy.all[i];
		u64 end = busy->rec.start_ns < idle->end_ns ? busy->rec.start_ns : idle->end_ns;

		if (busy->pid != idle->pid || busy->rec.end_ns <= at)
			continue;
		if (end > at)
			add_gap(idle, logs, launcher_of(&logs->launch, busy), at, end);
		at = busy->rec.end_ns;
	}
	/* No launch followed. */
	add_gap(idle, logs, idle->pid, at, idle->end_ns);
}

struct idle idle_of_rank0(const struct truth_dir *dir)
{
	struct logs logs = { events_of(dir, TRUTH_BUSY), events_of(dir, TRUTH_DID),
			     events_of(dir, TRUTH_LOAD), events_of(dir, TRUTH_LAUNCH), NULL };
	struct events steps = events_of(dir, TRUTH_STEP);
	struct idle idle = {};

	for (u64 i = 0; i < steps.nr; i++) {
		const struct truth_record *rec = &steps.all[i].rec;

		if (rec->b != 0)
			continue;
		idle.pid = steps.all[i].pid;
		if (idle.nr_steps++ == 0)
			idle.start_ns = rec->start_ns;
		idle.end_ns = rec->end_ns;
	}
	assert_true(idle.nr_steps > 0);
	logs.idle_ns = calloc(logs.did.nr + 1, sizeof(u64));
	assert_non_null(logs.idle_ns);
	add_gaps(&idle, &logs);
	add_causes(&idle, &logs);
	free(logs.idle_ns);
	free(steps.all);
	free(logs.busy.all);
	free(logs.did.all);
	free(logs.load.all);
	free(logs.launch.all);
	return idle;
}

double idle_percent(const struct idle *idle)
{
	return (double)(idle->idle_ns - idle->delay_ns) * 100 /
	       (double)(idle->end_ns - idle->start_ns - idle->delay_ns);
}
