/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/snapshot.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int snapshot_new(const struct snapshot_limits *limits, struct snapshot **ret)
{
	const struct snapshot_limits max = SNAPSHOT_LIMITS_MAX;
	struct snapshot *s;

	if (limits->nr_jobs > max.nr_jobs || limits->nr_processes > max.nr_processes ||
	    limits->nr_threads > max.nr_threads || limits->nr_gpus > max.nr_gpus ||
	    limits->nr_hists > max.nr_hists || limits->nr_comms > max.nr_comms)
		return -E2BIG;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->limits = *limits;
	s->jobs = calloc(limits->nr_jobs, sizeof(*s->jobs));
	s->processes = calloc(limits->nr_processes, sizeof(*s->processes));
	s->threads = calloc(limits->nr_threads, sizeof(*s->threads));
	s->gpus = calloc(limits->nr_gpus, sizeof(*s->gpus));
	s->hists = calloc(limits->nr_hists, sizeof(*s->hists));
	s->comms = calloc(limits->nr_comms, sizeof(*s->comms));
	if ((!s->jobs && limits->nr_jobs) || (!s->processes && limits->nr_processes) ||
	    (!s->threads && limits->nr_threads) || (!s->gpus && limits->nr_gpus) ||
	    (!s->hists && limits->nr_hists) || (!s->comms && limits->nr_comms)) {
		snapshot_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

struct snapshot *snapshot_free(struct snapshot *s)
{
	if (!s)
		return NULL;
	free(s->jobs);
	free(s->processes);
	free(s->threads);
	free(s->gpus);
	free(s->hists);
	free(s->comms);
	free(s);
	return NULL;
}

void snapshot_keep_jobs(struct snapshot *s)
{
	free(s->processes);
	free(s->threads);
	free(s->gpus);
	free(s->hists);
	free(s->comms);
	*s = (struct snapshot){
		.time_ms = s->time_ms,
		.monotonic_ns = s->monotonic_ns,
		.limits.nr_jobs = s->limits.nr_jobs,
		.jobs = s->jobs,
		.nr_jobs = s->nr_jobs,
	};
}

void snapshot_clear(struct snapshot *s)
{
	*s = (struct snapshot){
		.limits = s->limits,
		.jobs = s->jobs,
		.processes = s->processes,
		.threads = s->threads,
		.gpus = s->gpus,
		.hists = s->hists,
		.comms = s->comms,
	};
}

/* The next free item, zeroed. NULL if there is no room; the drop is counted. */
static void *add(struct snapshot *s, void *items, size_t size, u32 *nr, u32 limit,
		 enum snapshot_drop drop)
{
	void *item;

	if (*nr >= limit) {
		s->nr_dropped[drop]++;
		return NULL;
	}
	item = (char *)items + size * (*nr)++;
	return memset(item, 0, size);
}

#define ADD(s, items, drop)                                                                        \
	add((s), (s)->items, sizeof(*(s)->items), &(s)->nr_##items, (s)->limits.nr_##items, (drop))

struct snapshot_process *snapshot_add_process(struct snapshot *s, u32 pid)
{
	struct snapshot_process *process = ADD(s, processes, DROP_SNAPSHOT_PROCESSES);

	if (process) {
		process->pid = pid;
		process->uid = SNAPSHOT_UID_UNKNOWN;
	}
	return process;
}

struct snapshot_thread *snapshot_add_thread(struct snapshot *s, u32 tid, u32 role)
{
	struct snapshot_thread *thread = ADD(s, threads, DROP_SNAPSHOT_THREADS);

	role = role < ROLE_NR ? role : ROLE_OTHER;
	s->nr_role[role]++;
	if (thread) {
		thread->tid = tid;
		thread->role = role;
	}
	return thread;
}

struct snapshot_gpu *snapshot_add_gpu(struct snapshot *s, u32 number)
{
	struct snapshot_gpu *gpu = ADD(s, gpus, DROP_SNAPSHOT_GPUS);

	if (gpu)
		gpu->gpu = number;
	return gpu;
}

struct snapshot_comm *snapshot_add_comm(struct snapshot *s, u32 pid)
{
	struct snapshot_comm *comm = ADD(s, comms, DROP_SNAPSHOT_COMMS);

	if (comm)
		comm->pid = pid;
	return comm;
}

static struct snapshot_job *find_job(struct snapshot *s, const char *cgroup)
{
	for (u32 i = 0; i < s->nr_jobs; i++)
		if (strcmp(s->jobs[i].cgroup, cgroup) == 0)
			return &s->jobs[i];
	return NULL;
}

u32 snapshot_add_job(struct snapshot *s, const char *cgroup, const char *name)
{
	char key[JOB_CGROUP_LEN];
	struct snapshot_job *job;

	snapshot_set_text(key, sizeof(key), cgroup, strlen(cgroup));
	job = find_job(s, key);
	if (!job) {
		job = ADD(s, jobs, DROP_SNAPSHOT_JOBS);
		if (!job)
			return 0;
		job->uid = SNAPSHOT_UID_UNKNOWN;
		memcpy(job->cgroup, key, sizeof(key));
		snapshot_set_text(job->name, sizeof(job->name), name, strlen(name));
	}
	return (u32)(job - s->jobs) + 1;
}

static void add_user(struct snapshot_job *job, u32 users, u32 uid)
{
	if (users == USERS_NONE)
		return;
	if (job->users == USERS_NONE) {
		job->users = users;
		job->uid = uid;
	} else if (job->uid != uid) {
		job->users = USERS_SEVERAL;
		job->uid = SNAPSHOT_UID_UNKNOWN;
	}
}

static void add_life(struct snapshot_job *job, u64 started_ms, u64 peak_bytes)
{
	if (started_ms && (!job->started_ms || started_ms < job->started_ms))
		job->started_ms = started_ms;
	if (peak_bytes > job->peak_bytes)
		job->peak_bytes = peak_bytes;
}

/* Its peaks on several GPUs may have been at different times: the sum is an upper bound. */
static u64 peak_of(const struct snapshot_process *process)
{
	u64 bytes = 0;

	for (u32 i = 0; i < process->nr_memory; i++)
		bytes += process->memory[i].book.peak_bytes;
	return bytes;
}

void snapshot_join_job(struct snapshot *s, const struct snapshot_process *process)
{
	struct snapshot_job *job = snapshot_job(s, process);

	if (!job)
		return;
	add_user(job, USERS_ONE, process->uid);
	add_life(job, process->started_ms, peak_of(process));
}

struct hist *snapshot_add_hist(struct snapshot *s, struct snapshot_hists *hists, u32 kind)
{
	u32 *at = &hists->at[kind];

	if (!*at && ADD(s, hists, DROP_SNAPSHOT_HISTS))
		*at = s->nr_hists;
	return *at ? &s->hists[*at - 1] : NULL;
}

void snapshot_set_transitions(struct snapshot *s, struct snapshot_process *process, u64 nr)
{
	s->nr_transitions += nr - process->nr_transitions;
	process->nr_transitions = nr;
}

bool snapshot_is_unproven(const struct snapshot *s, const struct snapshot_process *process)
{
	for (u32 i = 0; process->consumer_pid && i < s->nr_processes; i++)
		if (s->processes[i].pid == process->consumer_pid)
			return s->processes[i].gpu_evidence == GPU_EVIDENCE_NONE;
	return process->gpu_evidence == GPU_EVIDENCE_NONE;
}

/* The job that continues an earlier job: the same cgroup, else the same name. */
static struct snapshot_job *find_heir(struct snapshot *s, const struct snapshot_job *job)
{
	struct snapshot_job *heir = find_job(s, job->cgroup);

	for (u32 i = 0; !heir && i < s->nr_jobs; i++)
		if (strcmp(s->jobs[i].name, job->name) == 0)
			heir = &s->jobs[i];
	return heir;
}

/* Names belong to one cgroup: a job that has only the name of an earlier job does not inherit them.
 */
static void continue_job(struct snapshot_job *job, const struct snapshot_job *before)
{
	add_user(job, before->users, before->uid);
	add_life(job, before->started_ms, before->peak_bytes);
	if (strcmp(job->cgroup, before->cgroup) != 0)
		return;
	job->names = before->names;
	job->nr_names_tries = before->nr_names_tries;
	job->names_due_ns = before->names_due_ns;
}

static void take_over(struct snapshot *s, struct snapshot_hists *to, const struct snapshot *before,
		      const struct snapshot_hists *from)
{
	for (u32 kind = 0; kind < HIST_KIND_NR; kind++) {
		const struct hist *old = snapshot_hist(before, from, kind);
		struct hist *hist = old ? snapshot_add_hist(s, to, kind) : NULL;

		if (hist)
			hist_add(hist, old);
	}
}

static void count_over(struct snapshot_collectives *to, const struct snapshot_collectives *from)
{
	for (u32 op = 0; op < COLLECTIVE_NR; op++) {
		to->nr[op] += from->nr[op];
		to->bytes[op] += from->bytes[op];
	}
}

void snapshot_account_add(struct snapshot_account *to, const struct snapshot_account *from)
{
	to->nr_steps += from->nr_steps;
	to->busy_ns += from->busy_ns;
	to->open_ns += from->open_ns;
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		to->idle_ns[cause] += from->idle_ns[cause];
}

/* The last place is kept for processes without a known rank. */
static struct snapshot_account *find_rank(struct snapshot_ranks *gone, bool is_known, s32 rank)
{
	for (u32 i = 0; i < gone->nr; i++)
		if (gone->ranks[i].is_known == is_known && gone->ranks[i].rank == rank)
			return &gone->ranks[i].account;
	if (is_known && gone->nr >= SNAPSHOT_RANKS_MAX)
		return find_rank(gone, false, 0);
	gone->ranks[gone->nr] = (struct snapshot_rank){ .is_known = is_known, .rank = rank };
	return &gone->ranks[gone->nr++].account;
}

static void take_over_ranks(struct snapshot_ranks *to, const struct snapshot_ranks *from)
{
	for (u32 i = 0; i < from->nr; i++)
		snapshot_account_add(find_rank(to, from->ranks[i].is_known, from->ranks[i].rank),
				     &from->ranks[i].account);
}

void snapshot_ranks_add(struct snapshot_ranks *to, const struct snapshot_process *process)
{
	bool is_known = process->nr_ranks > 0;

	snapshot_account_add(find_rank(to, is_known, is_known ? process->rank : 0),
			     &process->counted);
}

static struct snapshot_process *find_process(struct snapshot *s,
					     const struct snapshot_process *process)
{
	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == process->pid &&
		    s->processes[i].start_ns == process->start_ns)
			return &s->processes[i];
	return NULL;
}

void snapshot_job_add(struct snapshot_job *to, const struct snapshot_job *from)
{
	add_user(to, from->users, from->uid);
	add_life(to, from->started_ms, from->peak_bytes);
	take_over_ranks(&to->gone_ranks, &from->gone_ranks);
	count_over(&to->gone_collectives, &from->gone_collectives);
	to->ended_ms = from->ended_ms > to->ended_ms ? from->ended_ms : to->ended_ms;
	to->nr_left_out += from->nr_left_out;
	if (job_names_are_missing(to->kind, &to->names))
		to->names = from->names;
}

#define ACCOUNT_LEN (sizeof(struct snapshot_account) / sizeof(u64))

void snapshot_recount(struct snapshot_process *process)
{
	struct snapshot_account account = {
		.nr_steps = process->nr_steps,
		.busy_ns = process->busy_ns,
	};
	u64 *most = (u64 *)&process->most, *counted = (u64 *)&process->counted;
	const u64 *now = (const u64 *)&account, *moved = (const u64 *)&process->moved;

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++) {
		account.open_ns += process->open_ns[cause];
		account.idle_ns[cause] = process->idle_ns[cause];
	}
	for (u32 i = 0; i < ACCOUNT_LEN; i++) {
		most[i] = now[i] > most[i] ? now[i] : most[i];
		counted[i] = most[i] - moved[i];
	}
}

/* A process that the snapshot before does not have. */
static void count_process(const struct snapshot *s, struct snapshot_process *process)
{
	process->most = process->moved = (struct snapshot_account){};
	snapshot_recount(process);
	process->stepped_ns = process->nr_steps ? s->monotonic_ns : 0;
}

static bool is_same_rank(const struct snapshot_process *a, const struct snapshot_process *b)
{
	return !a->nr_ranks == !b->nr_ranks && (!a->nr_ranks || a->rank == b->rank);
}

/* A process that the snapshot before has; `gone` is the account of its job, or NULL. */
static void continue_process(struct snapshot *s, struct snapshot_process *process,
			     const struct snapshot_process *before, struct snapshot_ranks *gone)
{
	u64 *most = (u64 *)&process->most;
	const u64 *old = (const u64 *)&before->most;

	process->moved = before->moved;
	if (!is_same_rank(process, before)) {
		process->moved = before->most;
		if (gone)
			snapshot_ranks_add(gone, before);
	}
	for (u32 i = 0; i < ACCOUNT_LEN; i++)
		most[i] = most[i] > old[i] ? most[i] : old[i];
	snapshot_recount(process);
	if (process->nr_steps == before->nr_steps)
		process->stepped_ns = before->stepped_ns;
	s->nr_transitions -= before->nr_transitions;
}

static u64 refusals(const struct snapshot_quota *quota)
{
	return quota->nr_processes + quota->nr_memory + quota->nr_scans;
}

void snapshot_add_quota(struct snapshot *s, const struct snapshot_quota *quota)
{
	struct snapshot_quota sum = *quota;
	u32 at = 0;

	while (at < s->nr_over_quota && s->over_quota[at].uid != quota->uid)
		at++;
	if (at < s->nr_over_quota) {
		sum.nr_processes += s->over_quota[at].nr_processes;
		sum.nr_memory += s->over_quota[at].nr_memory;
		sum.nr_scans += s->over_quota[at].nr_scans;
	} else if (at < SNAPSHOT_QUOTAS_MAX) {
		s->nr_over_quota++;
	} else if (refusals(&s->over_quota[--at]) >= refusals(quota)) {
		return;
	}
	for (; at > 0 && refusals(&s->over_quota[at - 1]) < refusals(&sum); at--)
		s->over_quota[at] = s->over_quota[at - 1];
	s->over_quota[at] = sum;
}

void snapshot_carry(struct snapshot *s, const struct snapshot *before)
{
	for (u32 drop = DROP_SNAPSHOT_PROCESSES; drop <= DROP_SNAPSHOT_COMMS; drop++)
		s->nr_dropped[drop] += before->nr_dropped[drop];
	s->nr_transitions += before->nr_transitions;
	for (u32 i = 0; i < s->nr_processes; i++)
		count_process(s, &s->processes[i]);
	take_over(s, &s->gone, before, &before->gone);
	count_over(&s->gone_collectives, &before->gone_collectives);
	take_over_ranks(&s->gone_ranks, &before->gone_ranks);
	for (u32 i = 0; i < before->nr_jobs; i++) {
		struct snapshot_job *job = find_heir(s, &before->jobs[i]);

		if (!job)
			continue;
		continue_job(job, &before->jobs[i]);
		take_over(s, &job->gone, before, &before->jobs[i].gone);
		count_over(&job->gone_collectives, &before->jobs[i].gone_collectives);
		take_over_ranks(&job->gone_ranks, &before->jobs[i].gone_ranks);
	}
	for (u32 i = 0; i < before->nr_processes; i++) {
		const struct snapshot_process *process = &before->processes[i];
		const struct snapshot_job *old = snapshot_job(before, process);
		struct snapshot_job *job = old ? find_heir(s, old) : NULL;
		struct snapshot_process *now = find_process(s, process);
		struct snapshot_ranks *ranks = job ? &job->gone_ranks : old ? NULL : &s->gone_ranks;

		if (now) {
			continue_process(s, now, process, ranks);
			continue;
		}
		if (ranks)
			snapshot_ranks_add(ranks, process);
		take_over(s, &s->gone, before, &process->hists);
		count_over(&s->gone_collectives, &process->collectives);
		if (!job)
			continue;
		take_over(s, &job->gone, before, &process->hists);
		count_over(&job->gone_collectives, &process->collectives);
	}
}

bool snapshot_gpu_is_unknown(const struct snapshot_process *process)
{
	return process->task.known && process->task.gpu == SNAPSHOT_GPU_UNKNOWN &&
	       (process->nr_memory || process->launcher_tid);
}
