/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/hang.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "answers/choose.h"
#include "answers/hang_internal.h"

static const struct snapshot_process *find_process(const struct snapshot *s, u32 pid)
{
	const struct snapshot_process *found = NULL;

	/* An older process with this pid has ended. */
	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == pid &&
		    (!found || s->processes[i].start_ns > found->start_ns))
			found = &s->processes[i];
	return found;
}

/* True for a selected process and all processes of its job. */
static bool belongs(const struct snapshot *s, const struct snapshot_process *process,
		    const char *who)
{
	for (u32 i = 0; i < s->nr_processes; i++)
		if (choose_is_meant(s, &s->processes[i], who) &&
		    (&s->processes[i] == process ||
		     (process->job && s->processes[i].job == process->job)))
			return true;
	return false;
}

static int compare_members(const void *a, const void *b)
{
	const struct hang_member *x = a, *y = b;
	int order = strcmp(x->comm->identity, y->comm->identity);

	if (x->process->job != y->process->job)
		return x->process->job < y->process->job ? -1 : 1;
	if (order)
		return order;
	if (hang_rank(x) != hang_rank(y))
		return hang_rank(x) < hang_rank(y) ? -1 : 1;
	return x->process->pid < y->process->pid ? -1 : x->process->pid > y->process->pid;
}

/* A communicator whose identity is unknown, or that has one rank, cannot be compared. */
static void collect_members(struct hang *hang, const char *who)
{
	const struct snapshot *s = hang->snapshot;

	for (u32 i = 0; i < s->nr_comms; i++) {
		const struct snapshot_comm *comm = &s->comms[i];
		const struct snapshot_process *process = find_process(s, comm->pid);

		if (process && *comm->identity && comm->nr_ranks != 1 && belongs(s, process, who))
			hang->members[hang->nr_members++] =
				(struct hang_member){ .comm = comm, .process = process };
	}
	qsort(hang->members, hang->nr_members, sizeof(*hang->members), compare_members);
}

static bool is_member(const struct hang *hang, const struct snapshot_process *process)
{
	for (u32 i = 0; i < hang->nr_members; i++)
		if (hang->members[i].process == process)
			return true;
	return false;
}

/* A process may have ranks or collectives, and yet no communicator whose creation was seen. */
static void collect_unknown(struct hang *hang, const char *who)
{
	const struct snapshot *s = hang->snapshot;

	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_process *process = &s->processes[i];
		u64 nr = process->nr_ranks > 1 || process->task.collective_mapped;

		for (u32 op = 0; op < COLLECTIVE_NR; op++)
			nr += process->collectives.nr[op];
		if (nr && process->nr_ranks != 1 && !process->consumer_pid &&
		    !is_member(hang, process) && belongs(s, process, who))
			hang->unknown[hang->nr_unknown++] = process;
	}
}

static bool same_comm(const struct hang_member *a, const struct hang_member *b)
{
	return a->process->job == b->process->job &&
	       strcmp(a->comm->identity, b->comm->identity) == 0;
}

static void collect_comms(struct hang *hang)
{
	for (u32 first = 0, nr; first < hang->nr_members; first += nr) {
		struct hang_comm *comm = &hang->comms[hang->nr_comms++];

		for (nr = 1; first + nr < hang->nr_members &&
			     same_comm(&hang->members[first], &hang->members[first + nr]);)
			nr++;
		*comm = (struct hang_comm){
			.snapshot = hang->snapshot,
			.members = &hang->members[first],
			.nr_members = nr,
			.nr_ranks = hang->members[first].comm->nr_ranks,
		};
		hang_judge(comm);
	}
}

struct hang *hang_free(struct hang *hang)
{
	if (hang) {
		free(hang->members);
		free(hang->comms);
		free(hang->unknown);
	}
	free(hang);
	return NULL;
}

int hang_new(const struct snapshot *s, const char *who, struct hang **ret)
{
	CLEANUP(hang_free_cleanup) struct hang *hang = calloc(1, sizeof(*hang));

	if (!hang)
		return -ENOMEM;
	hang->snapshot = s;
	hang->members = calloc(s->nr_comms + 1, sizeof(*hang->members));
	hang->comms = calloc(s->nr_comms + 1, sizeof(*hang->comms));
	hang->unknown = calloc(s->nr_processes + 1, sizeof(*hang->unknown));
	if (!hang->members || !hang->comms || !hang->unknown)
		return -ENOMEM;
	collect_members(hang, who);
	collect_unknown(hang, who);
	collect_comms(hang);
	hang_find_followers(hang);
	*ret = TAKE_PTR(hang);
	return 0;
}

bool hang_has_stack(const struct hang_member *member)
{
	return member->stack && lines_has_frames(member->stack);
}

struct hang_job hang_job(const struct hang *hang, u32 first)
{
	const struct hang_comm *comms = &hang->comms[first];
	struct hang_job job = { .snapshot = hang->snapshot, .comms = comms };
	u32 nr_missing = 0;

	while (first + job.nr < hang->nr_comms &&
	       comms[job.nr].members->process->job == comms->members->process->job) {
		const struct hang_comm *comm = &comms[job.nr], *most = &comms[job.subject];

		nr_missing += comm->verdict >= HANG_MISSING;
		if (comm->verdict > most->verdict ||
		    (comm->verdict == most->verdict && comm->nr_members > most->nr_members))
			job.subject = job.nr;
		job.nr++;
	}
	job.is_cycle = !nr_missing && comms[job.subject].verdict == HANG_FOLLOWS;
	return job;
}
