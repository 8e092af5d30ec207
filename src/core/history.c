/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/history.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Running jobs with ended processes: a snapshot has at most this many jobs. */
#define RUNNING_MAX 256
/* A job can have more loaders, but the advice does not depend on it. */
#define LOADERS_MAX 64

/* The distributions that an answer uses. */
static const u32 hist_kinds[] = { HIST_STEP, HIST_IDLE };

struct kept {
	struct snapshot_process process;
	struct hist hists[ARRAY_SIZE(hist_kinds)];
	u32 nr_loaders;
};

struct record {
	struct snapshot_job job;
	bool has_ended;
	u32 nr_kept;
	struct kept *kept; /* of ended processes that gave work to a GPU */
};

struct history {
	/* By the time of their end, and then those that run. */
	struct record *records[HISTORY_JOBS_MAX + RUNNING_MAX];
	u32 nr;
	u32 nr_ended;
	u32 nr_kept;
	u64 nr_forgotten;
};

int history_new(struct history **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void drop_details(struct history *h, struct record *record)
{
	h->nr_kept -= record->nr_kept;
	record->job.nr_left_out += record->nr_kept;
	record->nr_kept = 0;
	free(record->kept);
	record->kept = NULL;
}

static void forget(struct history *h, u32 at)
{
	struct record *record = h->records[at];

	drop_details(h, record);
	h->nr_ended -= record->has_ended;
	free(record);
	h->nr--;
	memmove(&h->records[at], &h->records[at + 1], (h->nr - at) * sizeof(h->records[0]));
}

struct history *history_free(struct history *h)
{
	while (h && h->nr)
		forget(h, h->nr - 1);
	free(h);
	return NULL;
}

/* How much of what is scarce a record has. */
static u32 job_size(const struct record *record)
{
	return record->has_ended;
}

static u32 detail_size(const struct record *record)
{
	return record->nr_kept;
}

/* The oldest record with something, of the user with the most. There must be one. */
static u32 find_victim(const struct history *h, u32 (*size)(const struct record *record))
{
	/* Of each user, at its oldest record with something. */
	u32 sums[ARRAY_SIZE(h->records)] = {}, victim = h->nr;

	for (u32 i = 0; i < h->nr; i++) {
		u32 first = 0;

		if (!size(h->records[i]))
			continue;
		while (first < i &&
		       (!sums[first] || h->records[first]->job.uid != h->records[i]->job.uid))
			first++;
		sums[first] += size(h->records[i]);
		if (victim == h->nr || sums[first] > sums[victim])
			victim = first;
	}
	return victim;
}

/* Jobs of these kinds have unique names: a job that comes back is the same job. */
static bool comes_back(const struct snapshot_job *job)
{
	return job->kind == JOB_SLURM || job->kind == JOB_POD || job->kind == JOB_CONTAINER;
}

static struct record *find(struct history *h, const struct snapshot_job *job, bool has_ended)
{
	for (u32 i = h->nr; i-- > 0;)
		if (h->records[i]->has_ended == has_ended &&
		    strcmp(h->records[i]->job.cgroup, job->cgroup) == 0)
			return h->records[i];
	return NULL;
}

/* The record of a job that runs or ends now; NULL when out of memory. */
static struct record *record_of(struct history *h, const struct snapshot_job *job)
{
	struct record *record = find(h, job, false);

	if (record)
		return record;
	if (h->nr == ARRAY_SIZE(h->records))
		return NULL;
	record = calloc(1, sizeof(*record));
	if (!record)
		return NULL;
	record->job = *job;
	h->records[h->nr++] = record;
	return record;
}

static u32 count_loaders(const struct snapshot *s, u32 pid)
{
	u32 nr = 0;

	for (u32 i = 0; i < s->nr_threads; i++)
		nr += s->threads[i].pid == pid && s->threads[i].role == ROLE_LOADER;
	for (u32 i = 0; i < s->nr_processes; i++)
		nr += s->processes[i].consumer_pid == pid;
	return nr < LOADERS_MAX ? nr : LOADERS_MAX;
}

static void fill_kept(struct kept *kept, const struct snapshot *s,
		      const struct snapshot_process *process)
{
	kept->process = *process;
	kept->process.hists = (struct snapshot_hists){};
	kept->nr_loaders = count_loaders(s, process->pid);
	for (size_t i = 0; i < ARRAY_SIZE(hist_kinds); i++) {
		const struct hist *hist = snapshot_hist(s, &process->hists, hist_kinds[i]);

		kept->hists[i] = hist ? *hist : (struct hist){};
	}
}

static void keep(struct history *h, struct record *record, const struct snapshot *s,
		 const struct snapshot_process *process)
{
	struct kept *larger = NULL;

	/* A process can run out of memory before its first launch. */
	if (!process->launcher_tid && !process->oom.nr)
		return;
	if (h->nr_kept >= HISTORY_PROCESSES_MAX)
		drop_details(h, h->records[find_victim(h, detail_size)]);
	if (record->nr_kept < HISTORY_RANKS_MAX)
		larger = realloc(record->kept, (record->nr_kept + 1) * sizeof(*larger));
	if (!larger) {
		record->job.nr_left_out++;
		return;
	}
	record->kept = larger;
	fill_kept(&larger[record->nr_kept++], s, process);
	h->nr_kept++;
}

static bool has_process(const struct snapshot *s, const struct snapshot_process *process)
{
	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == process->pid &&
		    s->processes[i].start_ns == process->start_ns)
			return true;
	return false;
}

static bool has_job(const struct snapshot *s, const struct snapshot_job *job)
{
	for (u32 i = 0; i < s->nr_jobs; i++)
		if (strcmp(s->jobs[i].cgroup, job->cgroup) == 0)
			return true;
	return false;
}

/* The job with the accounts of all its processes, which have ended. */
static void sum_up(struct snapshot_job *to, const struct snapshot *before, u32 job,
		   const struct snapshot *now)
{
	u64 nr_left_out = to->nr_left_out;

	*to = before->jobs[job];
	to->nr_left_out = nr_left_out;
	to->gone = (struct snapshot_hists){};
	for (u32 i = 0; i < before->nr_processes; i++) {
		const struct snapshot_process *process = &before->processes[i];
		u64 ended_ms = process->ended_ms ? process->ended_ms : now->time_ms;

		if (process->job != job + 1)
			continue;
		snapshot_ranks_add(&to->gone_ranks, process);
		if (ended_ms > to->ended_ms)
			to->ended_ms = ended_ms;
	}
	if (!to->ended_ms)
		to->ended_ms = now->time_ms;
}

/* Adds the last run of a job to its earlier ones, which then are as old as the last one. */
static void join_earlier(struct history *h, struct record *record)
{
	struct record *earlier = comes_back(&record->job) ? find(h, &record->job, true) : NULL;
	u32 nr, at = 0;

	if (!earlier)
		return;
	snapshot_job_add(&record->job, &earlier->job);
	nr = HISTORY_RANKS_MAX - record->nr_kept;
	nr = earlier->nr_kept < nr ? earlier->nr_kept : nr;
	if (nr) {
		struct kept *larger =
			realloc(record->kept, (record->nr_kept + nr) * sizeof(*larger));

		nr = larger ? nr : 0;
		record->kept = larger ? larger : record->kept;
	}
	/* The latest processes of the earlier runs. */
	for (u32 i = 0; i < nr; i++)
		record->kept[record->nr_kept++] = earlier->kept[earlier->nr_kept - nr + i];
	h->nr_kept += nr;
	record->job.nr_left_out += earlier->nr_kept - nr;
	while (h->records[at] != earlier)
		at++;
	forget(h, at);
}

static void make_newest(struct history *h, struct record *record)
{
	u32 at = 0;

	while (h->records[at] != record)
		at++;
	memmove(&h->records[at], &h->records[at + 1], (h->nr - 1 - at) * sizeof(h->records[0]));
	h->records[h->nr - 1] = record;
}

static void end_job(struct history *h, const struct snapshot *before, u32 job,
		    const struct snapshot *now)
{
	struct record *record = record_of(h, &before->jobs[job]);

	if (!record) {
		h->nr_forgotten++;
		return;
	}
	sum_up(&record->job, before, job, now);
	join_earlier(h, record);
	make_newest(h, record);
	record->has_ended = true;
	h->nr_ended++;
	if (h->nr_ended > HISTORY_JOBS_MAX) {
		forget(h, find_victim(h, job_size));
		h->nr_forgotten++;
	}
}

void history_fold(struct history *h, const struct snapshot *before, const struct snapshot *now)
{
	for (u32 i = 0; i < before->nr_processes; i++) {
		const struct snapshot_process *process = &before->processes[i];
		const struct snapshot_job *job = snapshot_job(before, process);
		struct record *record =
			job && !has_process(now, process) ? record_of(h, job) : NULL;

		if (record)
			keep(h, record, before, process);
	}
	for (u32 i = 0; i < before->nr_jobs; i++)
		if (!has_job(now, &before->jobs[i]))
			end_job(h, before, i, now);
}

static bool is_shown(const struct record *record, u32 uid, const char *who)
{
	return record->has_ended && (uid == SNAPSHOT_UID_UNKNOWN || record->job.uid == uid) &&
	       (!who || strcmp(record->job.name, who) == 0 || strcmp(record->job.cgroup, who) == 0);
}

static void show_kept(struct snapshot *s, const struct kept *kept, bool is_own)
{
	struct snapshot_process *process = snapshot_add_process(s, kept->process.pid);

	*process = kept->process;
	process->job = s->nr_jobs;
	if (is_own)
		snapshot_oom_hide_others(process);
	/* Their order in the snapshot, which its reader restores. */
	for (size_t i = 0; i < ARRAY_SIZE(hist_kinds); i++)
		if (kept->hists[i].count)
			*snapshot_add_hist(s, &process->hists, hist_kinds[i]) = kept->hists[i];
	for (u32 i = 0; i < kept->nr_loaders; i++)
		snapshot_add_thread(s, 0, ROLE_LOADER)->pid = process->pid;
}

static struct snapshot_limits room_for(const struct history *h, u32 uid, const char *who)
{
	struct snapshot_limits limits = {};

	for (u32 i = h->nr; i-- > 0 && !(who && limits.nr_jobs);) {
		const struct record *record = h->records[i];

		if (!is_shown(record, uid, who))
			continue;
		limits.nr_jobs++;
		for (u32 k = 0; who && k < record->nr_kept; k++) {
			limits.nr_processes++;
			limits.nr_threads += record->kept[k].nr_loaders;
			limits.nr_hists += ARRAY_SIZE(hist_kinds);
		}
	}
	return limits;
}

int history_show(const struct history *h, const struct snapshot *now, u32 uid, const char *who,
		 struct snapshot **ret)
{
	struct snapshot_limits limits = room_for(h, uid, who);
	struct snapshot *s = NULL;
	int err = who && !limits.nr_jobs ? -ENOENT : snapshot_new(&limits, &s);

	if (err < 0)
		return err;
	s->time_ms = now->time_ms;
	s->monotonic_ns = now->monotonic_ns;
	memcpy(s->host, now->host, sizeof(s->host));
	memcpy(s->version, now->version, sizeof(s->version));
	memcpy(s->kernel, now->kernel, sizeof(s->kernel));
	for (u32 i = h->nr; i-- > 0 && s->nr_jobs < limits.nr_jobs;) {
		const struct record *record = h->records[i];

		if (!is_shown(record, uid, who))
			continue;
		s->jobs[s->nr_jobs++] = record->job;
		for (u32 k = 0; who && k < record->nr_kept; k++)
			show_kept(s, &record->kept[k], uid != SNAPSHOT_UID_UNKNOWN);
	}
	if (uid == SNAPSHOT_UID_UNKNOWN)
		s->nr_dropped[DROP_SNAPSHOT_JOBS] = h->nr_forgotten;
	*ret = s;
	return 0;
}
