/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of ranks. Processes of one rank, also those that ended, are one series: it does
 * not decrease when a process ends, and continues when another process takes its rank.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "metrics/metrics_internal.h"

/* A rank that has not entered a collective or ended a step for so long has stopped. */
#define STOPPED_NS (10 * NSEC_PER_SEC)

struct rank {
	const char *job;
	bool is_known;
	s32 rank;
	struct snapshot_account account;
	const struct snapshot_comm *world; /* NULL: it runs, or nothing is known of it */
};

struct ranks {
	struct rank *all;
	u32 nr;
};

static struct rank *find(struct ranks *ranks, const char *job, bool is_known, s32 number)
{
	struct rank *rank = ranks->all;

	for (; rank < ranks->all + ranks->nr; rank++)
		if (rank->is_known == is_known && (!is_known || rank->rank == number) &&
		    strcmp(rank->job, job) == 0)
			break;
	if (rank == ranks->all + ranks->nr) {
		*rank = (struct rank){ .job = job, .is_known = is_known, .rank = number };
		ranks->nr++;
	}
	return rank;
}

static void count(struct ranks *ranks, const char *job, bool is_known, s32 number,
		  const struct snapshot_account *account)
{
	snapshot_account_add(&find(ranks, job, is_known, number)->account, account);
}

static void count_gone(struct ranks *ranks, const char *job, const struct snapshot_ranks *gone)
{
	for (u32 i = 0; i < gone->nr; i++)
		count(ranks, job, gone->ranks[i].is_known, gone->ranks[i].rank,
		      &gone->ranks[i].account);
}

static bool is_older(const struct snapshot *s, u64 time_ns)
{
	return s->monotonic_ns > time_ns && s->monotonic_ns - time_ns >= STOPPED_NS;
}

/*
 * The sequence of a rank that has stopped. A running job has no such series, because the other
 * series of eight ranks use up the default limit. If jobs share a name, the latest one counts.
 */
static void note_world(struct ranks *ranks, const struct snapshot *s,
		       const struct snapshot_process *process)
{
	const struct snapshot_job *job = snapshot_job(s, process);

	for (u32 i = 0; i < s->nr_comms; i++) {
		const struct snapshot_comm *comm = &s->comms[i];
		u64 last_ns = comm->nr_calls ? comm->calls[0].entered_ns : comm->made_ns;
		struct rank *rank;

		if (comm->pid != process->pid || !comm->is_world || comm->nr_ranks < 2 ||
		    !is_older(s, last_ns) || !is_older(s, process->stepped_ns))
			continue;
		rank = find(ranks, job ? job->name : "", true, (s32)comm->rank);
		if (!rank->world || rank->world->made_ns < comm->made_ns)
			rank->world = comm;
	}
}

static bool is_empty(const struct snapshot_account *account)
{
	u64 sum = account->nr_steps | account->busy_ns | account->open_ns;

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		sum |= account->idle_ns[cause];
	return !sum;
}

/* A process that never used a GPU has no series, and a cause without idle time has none either. */
static void add_rank(struct metrics *m, const struct rank *rank)
{
	const struct snapshot_account *account = &rank->account;
	struct metric_labels labels = {
		.job = rank->job,
		.has_rank = rank->is_known,
		.rank = rank->rank,
	};

	m->nr_units++;
	if (rank->world)
		metrics_add_value(m, METRIC_COLLECTIVE_SEQUENCE, &labels, rank->world->nr);
	if (rank->world && rank->world->nr_calls)
		metrics_add_value(m, METRIC_COLLECTIVE_OPERATION, &labels,
				  rank->world->calls[0].operation);
	if (is_empty(account))
		return;
	metrics_add_value(m, METRIC_STEPS, &labels, account->nr_steps);
	metrics_add_value(m, METRIC_GPU_BUSY_TIME, &labels, account->busy_ns);
	metrics_add_value(m, METRIC_GPU_OPEN_TIME, &labels, account->open_ns);
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++) {
		labels.kind = idle_cause_label(cause);
		if (account->idle_ns[cause])
			metrics_add_value(m, METRIC_GPU_IDLE_TIME, &labels,
					  account->idle_ns[cause]);
	}
}

int metrics_add_ranks(struct metrics *m, const struct snapshot *s, const u32 *order)
{
	size_t max = s->nr_processes + s->nr_comms + (s->nr_jobs + 1) * (SNAPSHOT_RANKS_MAX + 1);
	CLEANUP_FREE struct rank *all = calloc(max, sizeof(*all));
	struct ranks ranks = { .all = all };

	if (!all)
		return -ENOMEM;
	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_process *process = &s->processes[order[i]];
		const struct snapshot_job *job = snapshot_job(s, process);

		count(&ranks, job ? job->name : "", process->nr_ranks > 0, process->rank,
		      &process->counted);
		note_world(&ranks, s, process);
	}
	for (u32 i = 0; i < s->nr_jobs; i++)
		count_gone(&ranks, s->jobs[i].name, &s->jobs[i].gone_ranks);
	count_gone(&ranks, "", &s->gone_ranks);
	for (u32 i = 0; i < ranks.nr; i++)
		add_rank(m, &ranks.all[i]);
	return 0;
}
