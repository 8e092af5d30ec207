/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything else is compared with the truth, so it must be complete: no record is
 * lost, every instant of a thread's life is in exactly one span, every launch has
 * exactly one span of GPU time, and every step follows the previous step.
 */
#include "truth/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"

struct check {
	const struct truth_dir *dir;
	s64 nr_faults;
};

__attribute__((format(printf, 3, 4))) static void fault(struct check *check, const char *where,
							const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", where);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	check->nr_faults++;
}

/* The CPU time and delay of a launcher or loader cannot exceed the span they belong to. */
static bool is_too_long(const struct truth_record *rec)
{
	u64 length = rec->end_ns - rec->start_ns;

	return ((rec->kind == TRUTH_IDLE || rec->kind == TRUTH_DID) && rec->a + rec->b > length) ||
	       (rec->kind == TRUTH_LOAD && rec->b + rec->c > length);
}

static void check_whole(struct check *check, u64 i)
{
	const struct truth_file *file = &check->dir->files[i];
	const char *name = check->dir->names[i];

	if (file->cut)
		fault(check, name, "the file is truncated");
	if (file->header.nr_dropped)
		fault(check, name, "%" PRIu64 " records dropped",
		      (uint64_t)file->header.nr_dropped);
	for (u64 j = 0; j < file->nr_records; j++) {
		const struct truth_record *rec = &file->records[j];

		if (rec->kind >= TRUTH_NR)
			fault(check, name, "unknown record kind %u", rec->kind);
		if (rec->end_ns < rec->start_ns)
			fault(check, name, "a record of kind %u of thread %u ends before it starts",
			      rec->kind, rec->tid);
		else if (is_too_long(rec))
			fault(check, name,
			      "thread %u: CPU time and delay exceed the span at %" PRIu64, rec->tid,
			      (uint64_t)rec->start_ns);
	}
}

/* The records that cover the life of a thread; a log has phases or activities. */
static const struct tiles {
	enum truth_kind kind;
	const char *name;
	bool optional; /* a launcher or loader may have none */
} all_tiles[] = {
	{ TRUTH_PHASE, "phase", false },
	{ TRUTH_DID, "activity", false },
	{ TRUTH_ROLE, "role", true },
};

/* Orders records by thread; the life of a thread comes before its tiles, tiles by time. */
static int life_cmp(const void *left, const void *right)
{
	const struct truth_record *l = left, *r = right;

	if (l->tid != r->tid)
		return l->tid < r->tid ? -1 : 1;
	if (l->kind != r->kind)
		return (int)l->kind - (int)r->kind;
	if (l->start_ns != r->start_ns)
		return l->start_ns < r->start_ns ? -1 : 1;
	return (l->end_ns > r->end_ns) - (l->end_ns < r->end_ns);
}

/* `recs` are all records of one thread, in the order of life_cmp(). */
static void check_tiles(struct check *check, const char *name, const struct tiles *tiles,
			const struct truth_record *recs, u64 nr)
{
	const struct truth_record *life = &recs[0];
	u64 at = life->start_ns;

	if (life->kind != TRUTH_THREAD) {
		fault(check, name, "thread %u has a span of %s but no thread record", life->tid,
		      tiles->name);
		return;
	}
	if (nr > 1 && recs[1].kind == TRUTH_THREAD) {
		fault(check, name, "thread %u has two thread records", life->tid);
		return;
	}
	if (nr == 1) {
		if (!tiles->optional &&
		    (life->sub == TRUTH_ROLE_LAUNCHER || life->sub == TRUTH_ROLE_LOADER))
			fault(check, name, "thread %u has no span of %s", life->tid, tiles->name);
		return;
	}
	for (u64 i = 1; i < nr; i++) {
		if (recs[i].start_ns != at)
			fault(check, name,
			      "thread %u: %s of %" PRId64 " ns before %s %u at %" PRIu64, life->tid,
			      recs[i].start_ns > at ? "gap" : "overlap",
			      (int64_t)(recs[i].start_ns - at), tiles->name, recs[i].sub,
			      (uint64_t)recs[i].start_ns);
		at = recs[i].end_ns;
	}
	if (at != life->end_ns)
		fault(check, name,
		      "thread %u: its last %s ends %" PRId64 " ns from the end of the thread",
		      life->tid, tiles->name, (int64_t)(life->end_ns - at));
}

/* A log without such spans, as the virtual GPU writes it, needs no check of them. */
static int check_lives(struct check *check, u64 file_nr, const struct tiles *tiles)
{
	const struct truth_file *file = &check->dir->files[file_nr];
	struct truth_record *recs = malloc((file->nr_records + 1) * sizeof(*recs));
	u64 nr = 0, nr_tiles = 0;

	if (!recs)
		return -ENOMEM;
	for (u64 i = 0; i < file->nr_records; i++) {
		u16 kind = file->records[i].kind;

		if (kind == TRUTH_THREAD || kind == tiles->kind)
			recs[nr++] = file->records[i];
		nr_tiles += kind == tiles->kind;
	}
	qsort(recs, nr, sizeof(*recs), life_cmp);
	for (u64 first = 0, end; nr_tiles && first < nr; first = end) {
		for (end = first + 1; end < nr && recs[end].tid == recs[first].tid;)
			end++;
		check_tiles(check, check->dir->names[file_nr], tiles, &recs[first], end - first);
	}
	free(recs);
	return 0;
}

static void check_steps(struct check *check, u64 file_nr)
{
	const struct truth_file *file = &check->dir->files[file_nr];
	const char *name = check->dir->names[file_nr];
	const struct truth_record *before = NULL;

	for (u64 i = 0; i < file->nr_records; i++) {
		const struct truth_record *rec = &file->records[i];

		if (rec->kind == TRUTH_REQUEST && rec->b < rec->end_ns)
			fault(check, name, "request %" PRIu64 " completes before its first token",
			      (uint64_t)rec->a);
		if (rec->kind != TRUTH_STEP)
			continue;
		if (rec->a != (before ? before->a + 1 : 0))
			fault(check, name, "step %" PRIu64 " is out of order", (uint64_t)rec->a);
		if (before && rec->start_ns != before->end_ns)
			fault(check, name,
			      "step %" PRIu64 " does not start at the end of the previous step",
			      (uint64_t)rec->a);
		before = rec;
	}
}

static int work_cmp(const void *left, const void *right)
{
	const struct truth_event *l = left, *r = right;

	if (l->pid != r->pid)
		return l->pid < r->pid ? -1 : 1;
	if (l->rec.a != r->rec.a)
		return l->rec.a < r->rec.a ? -1 : 1;
	return (l->rec.c > r->rec.c) - (l->rec.c < r->rec.c);
}

static void fault_work(struct check *check, const struct truth_event *event, const char *what)
{
	char where[32];

	snprintf(where, sizeof(where), "pid %u", event->pid);
	fault(check, where, "device %" PRIu64 ", sequence %" PRIu64 ": %s", (uint64_t)event->rec.a,
	      (uint64_t)event->rec.c, what);
}

static void check_pair(struct check *check, const struct truth_event *launch,
		       const struct truth_event *busy)
{
	bool other = launch->rec.sub != busy->rec.sub && launch->rec.sub != TRUTH_WORK_GRAPH;

	if (other || launch->rec.b != busy->rec.b)
		fault_work(check, busy, "the device did other work than the launch requested");
	if (busy->rec.start_ns < launch->rec.start_ns)
		fault_work(check, busy, "the device was busy before the launch");
}

static void check_pairs(struct check *check, const struct truth_event *launches, u64 nr_launches,
			const struct truth_event *busy, u64 nr_busy)
{
	u64 l = 0, b = 0;

	while (l < nr_launches || b < nr_busy) {
		int order = l == nr_launches ? 1
			    : b == nr_busy   ? -1
					     : work_cmp(&launches[l], &busy[b]);

		if (order == 0) {
			const struct truth_event *launch = &launches[l++];

			do
				check_pair(check, launch, &busy[b++]);
			while (launch->rec.sub == TRUTH_WORK_GRAPH && b < nr_busy &&
			       work_cmp(launch, &busy[b]) == 0);
		} else if (order < 0)
			fault_work(check, &launches[l++],
				   "the device was never busy with this launch");
		else
			fault_work(check, &busy[b++], "the device was busy without a launch");
	}
}

static void check_blocked(struct check *check, const struct truth_event *launches, u64 nr_launches,
			  const struct truth_event *blocked, u64 nr_blocked)
{
	for (u64 i = 0; i < nr_blocked; i++) {
		const struct truth_event *launch =
			bsearch(&blocked[i], launches, nr_launches, sizeof(*launches), work_cmp);

		if (!launch || blocked[i].rec.b != launch->rec.b ||
		    blocked[i].rec.start_ns < launch->rec.start_ns ||
		    blocked[i].rec.end_ns > launch->rec.end_ns)
			fault_work(check, &blocked[i], "blocked outside of a launch");
	}
}

static int check_work(struct check *check)
{
	struct truth_event *launches = NULL, *busy = NULL, *blocked = NULL;
	u64 nr_launches, nr_busy, nr_blocked;
	int r = truth_dir_collect(check->dir, TRUTH_LAUNCH, &launches, &nr_launches);

	if (r == 0)
		r = truth_dir_collect(check->dir, TRUTH_BUSY, &busy, &nr_busy);
	if (r == 0)
		r = truth_dir_collect(check->dir, TRUTH_BLOCKED, &blocked, &nr_blocked);
	if (r == 0) {
		qsort(launches, nr_launches, sizeof(*launches), work_cmp);
		qsort(busy, nr_busy, sizeof(*busy), work_cmp);
		check_pairs(check, launches, nr_launches, busy, nr_busy);
		check_blocked(check, launches, nr_launches, blocked, nr_blocked);
	}
	free(launches);
	free(busy);
	free(blocked);
	return r;
}

static int tid_cmp(const void *left, const void *right)
{
	const struct truth_event *l = left, *r = right;

	return (l->rec.tid > r->rec.tid) - (l->rec.tid < r->rec.tid);
}

static int check_waits(struct check *check)
{
	struct truth_event *waits = NULL, *threads = NULL;
	u64 nr_waits, nr_threads;
	int r = truth_dir_collect(check->dir, TRUTH_WAIT, &waits, &nr_waits);

	if (r == 0)
		r = truth_dir_collect(check->dir, TRUTH_THREAD, &threads, &nr_threads);
	if (r == 0) {
		qsort(threads, nr_threads, sizeof(*threads), tid_cmp);
		for (u64 i = 0; i < nr_waits; i++) {
			const struct truth_event ender = { .rec.tid = (u32)waits[i].rec.a };
			char where[32];

			if (bsearch(&ender, threads, nr_threads, sizeof(ender), tid_cmp))
				continue;
			snprintf(where, sizeof(where), "pid %u", waits[i].pid);
			fault(check, where,
			      "thread %u waited for thread %u, which has no thread record",
			      waits[i].rec.tid, ender.rec.tid);
		}
	}
	free(waits);
	free(threads);
	return r;
}

s64 truth_check(const struct truth_dir *dir)
{
	struct check check = { .dir = dir, .nr_faults = (s64)dir->nr_unreadable };
	int r = 0;

	if (dir->nr_files == 0)
		fault(&check, "truth", "no truth log found");
	for (u64 i = 0; i < dir->nr_files && r == 0; i++) {
		check_whole(&check, i);
		check_steps(&check, i);
		for (size_t j = 0; j < ARRAY_SIZE(all_tiles) && r == 0; j++)
			r = check_lives(&check, i, &all_tiles[j]);
	}
	if (r == 0)
		r = check_work(&check);
	if (r == 0)
		r = check_waits(&check);
	return r < 0 ? r : check.nr_faults;
}
