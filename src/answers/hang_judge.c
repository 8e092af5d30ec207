/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares the ranks of a communicator. */
#include <string.h>
#include "answers/hang_internal.h"

/* Ranks that wait for so many usual steps, or gaps between collectives, hang. */
#define STEPS_MIN 10
#define GAPS_MIN  2

/*
 * A rank stands out as late if it was last in three of four collectives, and if the others waited
 * for it for a tenth of the time between two collectives, and for longer than what noise explains.
 */
#define LATE_NUMBERS_MIN 4
#define LATE_PARTS	 10
#define LATE_MIN_NS	 NSEC_PER_MSEC

const struct snapshot_call *hang_call(const struct hang_member *member, u64 number)
{
	u64 back = member->comm->nr - number;

	return back < member->comm->nr_calls ? &member->comm->calls[back] : NULL;
}

s32 hang_rank(const struct hang_member *member)
{
	if (member->comm->is_world)
		return (s32)member->comm->rank;
	return member->process->nr_ranks ? member->process->rank : -1;
}

static u64 max(u64 a, u64 b)
{
	return a > b ? a : b;
}

static u64 since(const struct hang_comm *comm, u64 time_ns)
{
	return comm->snapshot->monotonic_ns > time_ns ? comm->snapshot->monotonic_ns - time_ns : 0;
}

static void find_number(struct hang_comm *comm)
{
	u64 least = comm->members->comm->nr, most = least;

	for (u32 i = 1; i < comm->nr_members; i++) {
		u64 nr = comm->members[i].comm->nr;

		least = (s64)(nr - least) < 0 ? nr : least;
		most = (s64)(nr - most) > 0 ? nr : most;
	}
	comm->first = least;
	comm->number = least == most ? most : least + 1;
}

/* The wait of all ranks that entered the number begins when the last of them enters it. */
static void find_wait(struct hang_comm *comm)
{
	u64 entered_ns = 0;

	for (u32 i = 0; i < comm->nr_members; i++) {
		const struct hang_member *member = &comm->members[i];
		const struct snapshot_call *call = hang_call(member, comm->number);
		u32 nr_calls = member->comm->nr_calls;

		if (!hang_has_entered(member, comm->number))
			continue;
		comm->nr_entered++;
		if (!call)
			comm->is_at_least = true;
		/* The oldest call that the ledger still has is a later one. */
		if (!call && nr_calls)
			call = &member->comm->calls[nr_calls - 1];
		entered_ns =
			max(entered_ns, call ? call->entered_ns : comm->snapshot->monotonic_ns);
	}
	comm->waited_ns = entered_ns ? since(comm, entered_ns) : 0;
}

static u64 longest_gap(const struct snapshot_comm *comm)
{
	u64 gap_ns = 0;

	for (u32 i = 1; i < comm->nr_calls; i++)
		if (comm->calls[i - 1].entered_ns > comm->calls[i].entered_ns)
			gap_ns = max(gap_ns,
				     comm->calls[i - 1].entered_ns - comm->calls[i].entered_ns);
	return gap_ns;
}

static void find_limit(struct hang_comm *comm)
{
	comm->limit_ns = HANG_MIN_NS;
	for (u32 i = 0; i < comm->nr_members; i++) {
		const struct hang_member *member = &comm->members[i];
		const struct hist *steps =
			snapshot_hist(comm->snapshot, &member->process->hists, HIST_STEP);

		comm->limit_ns = max(comm->limit_ns, GAPS_MIN * longest_gap(member->comm));
		if (steps && steps->count)
			comm->limit_ns = max(comm->limit_ns, STEPS_MIN * hist_quantile(steps, 500));
	}
}

static bool is_same_call(const struct snapshot_call *a, const struct snapshot_call *b)
{
	return a->operation == b->operation && a->bytes == b->bytes;
}

static u32 nr_alike(const struct hang_comm *comm, const struct snapshot_call *model, u64 number)
{
	u32 nr = 0;

	for (u32 i = 0; i < comm->nr_members; i++) {
		const struct snapshot_call *call = hang_call(&comm->members[i], number);

		nr += call && is_same_call(call, model);
	}
	return nr;
}

/* Whether members differ at this number. */
static bool disagrees(struct hang_comm *comm, u64 number)
{
	u32 nr_known = 0, nr_most = 0;

	for (u32 i = 0; i < comm->nr_members; i++) {
		const struct snapshot_call *call = hang_call(&comm->members[i], number);
		u32 nr = call ? nr_alike(comm, call, number) : 0;

		nr_known += call != NULL;
		if (nr > nr_most) {
			nr_most = nr;
			comm->model = i;
		}
	}
	comm->odd_number = number;
	comm->has_majority = 2 * nr_most > nr_known;
	return nr_most < nr_known;
}

/*
 * Finds the first number at which members differ. Members that are ahead have forgotten older
 * numbers, so one at which most members agree is preferred: it shows who is wrong.
 */
static bool find_disagreement(struct hang_comm *comm)
{
	for (u64 back = SEQUENCE_KEPT; back-- > 0;)
		if (disagrees(comm, comm->number - back) && comm->has_majority)
			return true;
	for (u64 back = SEQUENCE_KEPT; back-- > 0;)
		if (disagrees(comm, comm->number - back))
			return true;
	return false;
}

bool hang_is_odd(const struct hang_comm *comm, const struct hang_member *member)
{
	const struct snapshot_call *call = hang_call(member, comm->odd_number);

	return call &&
	       !is_same_call(call, hang_call(&comm->members[comm->model], comm->odd_number));
}

/* The member that entered the number last, and for how long all others had waited; or nr_members.
 */
static u32 find_last(const struct hang_comm *comm, u64 number, u64 *ret_lead_ns)
{
	u64 last_ns = 0, before_ns = 0;
	u32 last = comm->nr_members;

	for (u32 i = 0; i < comm->nr_members; i++) {
		const struct snapshot_call *call = hang_call(&comm->members[i], number);

		if (!call)
			return comm->nr_members;
		if (call->entered_ns > last_ns) {
			before_ns = last_ns;
			last_ns = call->entered_ns;
			last = i;
		} else {
			before_ns = max(before_ns, call->entered_ns);
		}
	}
	*ret_lead_ns = last_ns - before_ns;
	return last;
}

/* How often a member was last, and the sum of what the others waited for it. */
static u32 count_last(const struct hang_comm *comm, u32 member, u64 *ret_sum_ns, u32 *ret_nr)
{
	u32 nr_last = 0;

	*ret_sum_ns = *ret_nr = 0;
	for (u64 back = 0; back < SEQUENCE_KEPT; back++) {
		u64 lead_ns = 0;
		u32 last = find_last(comm, comm->first - back, &lead_ns);

		*ret_nr += last < comm->nr_members;
		if (last != member)
			continue;
		nr_last++;
		*ret_sum_ns += lead_ns;
	}
	return nr_last;
}

static void find_late(struct hang_comm *comm)
{
	struct hang_late *late = &comm->late;
	const struct snapshot_call *first, *last;
	u64 period_ns = 0, sum_ns;
	u32 nr;

	if (comm->nr_members < 2)
		return;
	for (u32 i = 0; i < comm->nr_members; i++) {
		u32 nr_last = count_last(comm, i, &sum_ns, &nr);

		late->nr_numbers = nr;
		if (nr_last <= late->nr_last)
			continue;
		late->at = i;
		late->nr_last = nr_last;
		late->mean_ns = sum_ns / nr_last;
	}
	if (late->nr_numbers < LATE_NUMBERS_MIN)
		return;
	last = hang_call(&comm->members[late->at], comm->first);
	first = hang_call(&comm->members[late->at], comm->first - late->nr_numbers + 1);
	if (first && last && last->entered_ns > first->entered_ns)
		period_ns = (last->entered_ns - first->entered_ns) / (late->nr_numbers - 1);
	late->is_late = 4 * late->nr_last >= 3 * late->nr_numbers && late->mean_ns >= LATE_MIN_NS &&
			late->mean_ns * LATE_PARTS >= period_ns;
}

/* All members have entered the latest number. They wait if each launcher is in a call that long. */
static bool all_wait(struct hang_comm *comm)
{
	u64 since_ns = 0;

	for (u32 i = 0; i < comm->nr_members; i++) {
		u64 call_ns = comm->members[i].process->launcher_call_since_ns;

		if (!call_ns)
			return false;
		since_ns = max(since_ns, call_ns);
	}
	return comm->number != 0 && since(comm, since_ns) >= comm->limit_ns;
}

static u32 judge(struct hang_comm *comm)
{
	if (find_disagreement(comm))
		return HANG_DISAGREE;
	if (comm->nr_entered < comm->nr_members)
		return comm->waited_ns >= comm->limit_ns ? HANG_MISSING : HANG_NONE;
	if (!all_wait(comm))
		return HANG_NONE;
	return comm->nr_members == comm->nr_ranks ? HANG_INCOMPLETE : HANG_UNSEEN;
}

void hang_judge(struct hang_comm *comm)
{
	find_number(comm);
	find_wait(comm);
	find_limit(comm);
	find_late(comm);
	comm->verdict = judge(comm);
}

/* A process waits in a communicator if it has entered a number that another rank has not. */
static bool waits_in_another(const struct hang *hang, const struct hang_comm *but,
			     const struct snapshot_process *process)
{
	for (u32 i = 0; i < hang->nr_comms; i++) {
		const struct hang_comm *comm = &hang->comms[i];

		if (comm == but || comm->nr_entered == comm->nr_members)
			continue;
		for (u32 k = 0; k < comm->nr_members; k++)
			if (comm->members[k].process == process &&
			    hang_has_entered(&comm->members[k], comm->number))
				return true;
	}
	return false;
}

void hang_find_followers(struct hang *hang)
{
	struct hang_member *member = hang->members;

	for (u32 i = 0; i < hang->nr_comms; i++) {
		struct hang_comm *comm = &hang->comms[i];
		bool all_follow = true;

		for (u32 k = 0; k < comm->nr_members; k++, member++) {
			if (hang_has_entered(member, comm->number))
				continue;
			member->follows = waits_in_another(hang, comm, member->process);
			all_follow &= member->follows;
		}
		if (comm->verdict == HANG_MISSING && all_follow)
			comm->verdict = HANG_FOLLOWS;
	}
}

static bool has_rank(const struct hang_comm *comm, s32 rank)
{
	for (u32 i = 0; i < comm->nr_members; i++)
		if (hang_rank(&comm->members[i]) == rank)
			return true;
	return false;
}

s32 hang_next_ended(const struct hang_comm *comm, u32 *at)
{
	const struct snapshot_job *job = snapshot_job(comm->snapshot, comm->members->process);
	const struct snapshot_ranks *gone = job ? &job->gone_ranks : &comm->snapshot->gone_ranks;

	while (comm->members->comm->is_world && *at < gone->nr) {
		const struct snapshot_rank *rank = &gone->ranks[(*at)++];

		if (rank->is_known && rank->rank >= 0 && (u32)rank->rank < comm->nr_ranks &&
		    !has_rank(comm, rank->rank))
			return rank->rank;
	}
	return -1;
}

u32 hang_nr_elsewhere(const struct hang_comm *comm)
{
	u32 nr = comm->nr_members, at = 0;

	while (hang_next_ended(comm, &at) >= 0)
		nr++;
	return comm->nr_ranks > nr ? comm->nr_ranks - nr : 0;
}
