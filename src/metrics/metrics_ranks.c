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

struct rank {
	const char *job;
	bool is_known;
	s32 rank;
	struct snapshot_account account;
};

struct ranks {
	struct rank *all;
	u32 nr;
};

static void count(struct ranks *ranks, const char *job, bool is_known, s32 number,
		  const struct snapshot_account *account)
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
	snapshot_account_add(&rank->account, account);
}

static void count_gone(struct ranks *ranks, const char *job, const struct snapshot_ranks *gone)
{
	for (u32 i = 0; i < gone->nr; i++)
		count(ranks, job, gone->ranks[i].is_known, gone->ranks[i].rank,
		      &gone->ranks[i].account);
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

	if (is_empty(account))
		return;
	m->nr_units++;
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
	size_t max = s->nr_processes + (s->nr_jobs + 1) * (SNAPSHOT_RANKS_MAX + 1);
	CLEANUP_FREE struct rank *all = calloc(max, sizeof(*all));
	struct ranks ranks = { .all = all };

	if (!all)
		return -ENOMEM;
	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_process *process = &s->processes[order[i]];
		const struct snapshot_job *job = snapshot_job(s, process);

		count(&ranks, job ? job->name : "", process->nr_ranks > 0, process->rank,
		      &process->counted);
	}
	for (u32 i = 0; i < s->nr_jobs; i++)
		count_gone(&ranks, s->jobs[i].name, &s->jobs[i].gone_ranks);
	count_gone(&ranks, "", &s->gone_ranks);
	for (u32 i = 0; i < ranks.nr; i++)
		add_rank(m, &ranks.all[i]);
	return 0;
}
