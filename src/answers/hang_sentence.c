/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer as sentences. */
#include <stdio.h>
#include <string.h>
#include "answers/choose.h"
#include "answers/hang.h"
#include "answers/sentence.h"
#include "base/units.h"
#include "core/process.h"

/* Ranks that a sentence lists by name. */
#define NAMES_MAX 4

const char *hang_verdict_label(u32 verdict)
{
	static const char *const labels[HANG_VERDICT_NR] = {
		[HANG_NONE] = "none",	    [HANG_INCOMPLETE] = "incomplete",
		[HANG_UNSEEN] = "unseen",   [HANG_FOLLOWS] = "follows",
		[HANG_MISSING] = "missing", [HANG_DISAGREE] = "disagree",
	};

	return verdict < HANG_VERDICT_NR ? labels[verdict] : "unknown";
}

/* "rank 3 (python3 4711)", or without a rank "python3 (4711)". */
static struct process_name name_of(const struct hang_member *member)
{
	struct snapshot_process process = *member->process;

	process.rank = hang_rank(member);
	process.nr_ranks = process.rank >= 0;
	return choose_name(&process);
}

/* Ranks that wait elsewhere are named only if there is no other missing rank. */
static bool is_missing(const struct hang_comm *comm, const struct hang_member *member)
{
	if (hang_has_entered(member, comm->number))
		return false;
	return comm->verdict == HANG_FOLLOWS || !member->follows;
}

/* Lists the members that `belongs` selects, and returns their number. */
static u32 add_names(struct sentence *sentence, const struct hang_comm *comm,
		     bool (*belongs)(const struct hang_comm *comm,
				     const struct hang_member *member))
{
	u32 nr = 0;

	for (u32 i = 0; i < comm->nr_members; i++) {
		if (!belongs(comm, &comm->members[i]))
			continue;
		if (nr < NAMES_MAX)
			sentence_add(sentence, "%s%s", nr ? ", " : "",
				     name_of(&comm->members[i]).text);
		nr++;
	}
	if (nr > NAMES_MAX)
		sentence_add(sentence, " and %u more ranks", nr - NAMES_MAX);
	return nr;
}

/* The call with this number, from any member that still has it. */
static const struct snapshot_call *any_call(const struct hang_comm *comm, u64 number)
{
	const struct snapshot_call *call = NULL;

	for (u32 i = 0; i < comm->nr_members && !call; i++)
		call = hang_call(&comm->members[i], number);
	return call;
}

/* "all_reduce number 813", or "number 813" if the ledger no longer has its operation. */
static void add_number(struct sentence *sentence, const struct hang_comm *comm, u64 number)
{
	const struct snapshot_call *call = any_call(comm, number);

	sentence_add(sentence, "%s%snumber %llu", call ? operation_label(call->operation) : "",
		     call ? " " : "", number);
}

static void add_call(struct sentence *sentence, const struct snapshot_call *call)
{
	sentence_add(sentence, "%s with %s (%llu bytes)", operation_label(call->operation),
		     unit_bytes(call->bytes).text, call->bytes);
}

static void add_wait(struct sentence *sentence, const struct hang_comm *comm)
{
	sentence_add(sentence, "%s%s", comm->is_at_least ? "at least " : "",
		     unit_ns(comm->waited_ns).text);
}

void hang_launcher(const struct hang_comm *comm, const struct hang_member *member,
		   char ret[static HANG_SENTENCE_LEN])
{
	static const char *const states[THREAD_DOING_NR] = {
		[THREAD_UNKNOWN] = "is in an unknown state",
		[THREAD_RUNNING] = "runs",
		[THREAD_SLEEPING] = "sleeps",
		[THREAD_UNINTERRUPTIBLE] = "is in uninterruptible sleep",
		[THREAD_STOPPED] = "is stopped by a signal or a debugger",
	};
	const struct snapshot_process *process = member->process;
	u64 now = comm->snapshot->monotonic_ns, call_ns = process->launcher_call_since_ns;
	u32 doing = process->launcher_doing;
	struct sentence sentence = { .text = ret, .size = HANG_SENTENCE_LEN };

	ret[0] = '\0';
	if (!process->launcher_tid) {
		sentence_add(&sentence, "no GPU work was launched yet");
		return;
	}
	sentence_add(&sentence, "launching thread %u %s", process->launcher_tid,
		     states[doing < THREAD_DOING_NR ? doing : THREAD_UNKNOWN]);
	if (*process->launcher_call)
		sentence_add(&sentence, ", for %s in %s",
			     unit_ns(now > call_ns ? now - call_ns : 0).text,
			     process->launcher_call);
	else
		sentence_add(&sentence, ", in no call that Zernel follows");
	sentence_add(&sentence, "; phase %s", phase_label(process->phase));
	if (process->task.known && now > process->task.phase_since_ns)
		sentence_add(&sentence, " for %s",
			     unit_ns(now - process->task.phase_since_ns).text);
}

/* What the launcher of the first missing rank does. */
static void add_launcher(struct sentence *sentence, const struct hang_comm *comm)
{
	char text[HANG_SENTENCE_LEN];

	for (u32 i = 0; i < comm->nr_members; i++) {
		if (!is_missing(comm, &comm->members[i]))
			continue;
		hang_launcher(comm, &comm->members[i], text);
		sentence_add(sentence, " In %s, %s.", name_of(&comm->members[i]).text, text);
		return;
	}
}

static void add_missing(struct sentence *sentence, const struct hang_comm *comm)
{
	u32 nr = add_names(sentence, comm, is_missing);

	sentence_add(sentence, " %s not entered ", nr == 1 ? "has" : "have");
	add_number(sentence, comm, comm->number);
	sentence_add(sentence, ". %u rank%s waited in it for ", comm->nr_entered,
		     comm->nr_entered == 1 ? " has" : "s have");
	add_wait(sentence, comm);
	sentence_add(sentence, ".");
	if (comm->verdict == HANG_FOLLOWS)
		sentence_add(sentence, " That rank waits in another communicator.");
	add_launcher(sentence, comm);
}

static void add_disagreement(struct sentence *sentence, const struct hang_comm *comm)
{
	const struct hang_member *model = &comm->members[comm->model];
	const struct hang_member *odd = NULL;
	u32 nr;

	for (u32 i = 0; i < comm->nr_members && !odd; i++)
		odd = hang_is_odd(comm, &comm->members[i]) ? &comm->members[i] : NULL;
	sentence_add(sentence, "ranks disagree at number %llu: ", comm->odd_number);
	nr = add_names(sentence, comm, hang_is_odd);
	sentence_add(sentence, " entered ");
	add_call(sentence, hang_call(odd, comm->odd_number));
	if (comm->has_majority)
		sentence_add(sentence, ", the other %u ranks ", comm->nr_members - nr);
	else
		sentence_add(sentence, ", %s ", name_of(model).text);
	add_call(sentence, hang_call(model, comm->odd_number));
	sentence_add(sentence, ".");
	if (!comm->has_majority)
		sentence_add(sentence, " It is not known which one is wrong.");
}

static void add_unseen(struct sentence *sentence, const struct hang_comm *comm)
{
	u32 at = 0, nr = hang_nr_elsewhere(comm);
	s32 rank;

	sentence_add(sentence, "all %u ranks that are seen here entered ", comm->nr_members);
	add_number(sentence, comm, comm->number);
	sentence_add(sentence, " and have waited for ");
	add_wait(sentence, comm);
	sentence_add(sentence, ".");
	while ((rank = hang_next_ended(comm, &at)) >= 0)
		sentence_add(sentence, " Rank %d has ended.", rank);
	if (nr)
		sentence_add(sentence,
			     " %u rank%s not seen here: on another node, or without probes on the "
			     "calls.",
			     nr, nr == 1 ? " is" : "s are");
	if (!comm->nr_ranks)
		sentence_add(sentence,
			     " How many ranks it has is not known: one may be missing elsewhere.");
}

static void add_late(struct sentence *sentence, const struct hang_comm *comm)
{
	const struct hang_late *late = &comm->late;

	if (!late->nr_numbers)
		return;
	if (late->is_late)
		sentence_add(sentence,
			     " %s is late: it was last in %u of %u collectives, and the others "
			     "waited %s "
			     "for it each time.",
			     name_of(&comm->members[late->at]).text, late->nr_last,
			     late->nr_numbers, unit_ns(late->mean_ns).text);
	else
		sentence_add(sentence, " No rank is late in the last %u collectives.",
			     late->nr_numbers);
}

static void add_none(struct sentence *sentence, const struct hang_comm *comm)
{
	if (!any_call(comm, comm->number)) {
		sentence_add(sentence, "no rank hangs: no collective was entered yet.");
		return;
	}
	sentence_add(sentence, "no rank hangs: %u of %u ranks that are seen here entered ",
		     comm->nr_entered, comm->nr_members);
	add_number(sentence, comm, comm->number);
	sentence_add(sentence, ", the last one ");
	add_wait(sentence, comm);
	sentence_add(sentence, " ago (a hang is %s).", unit_ns(comm->limit_ns).text);
	add_late(sentence, comm);
}

static void add_answer(struct sentence *sentence, const struct hang_comm *comm)
{
	switch (comm->verdict) {
	case HANG_DISAGREE: add_disagreement(sentence, comm); break;
	case HANG_MISSING:
	case HANG_FOLLOWS: add_missing(sentence, comm); break;
	case HANG_UNSEEN: add_unseen(sentence, comm); break;
	case HANG_INCOMPLETE:
		sentence_add(sentence, "all %u ranks entered ", comm->nr_members);
		add_number(sentence, comm, comm->number);
		sentence_add(sentence, " and have waited for ");
		add_wait(sentence, comm);
		sentence_add(sentence, ". No rank is missing: look at the GPUs and the network.");
		break;
	default: add_none(sentence, comm); break;
	}
}

void hang_comm_sentence(const struct hang_comm *comm, char ret[static HANG_SENTENCE_LEN])
{
	struct sentence sentence = { .text = ret, .size = HANG_SENTENCE_LEN };

	ret[0] = '\0';
	add_answer(&sentence, comm);
}

void hang_sentence(const struct hang_job *job, char ret[static HANG_SENTENCE_LEN])
{
	const struct hang_comm *subject = &job->comms[job->subject];
	const struct snapshot_job *named = snapshot_job(job->snapshot, subject->members->process);
	struct sentence sentence = { .text = ret, .size = HANG_SENTENCE_LEN };

	ret[0] = '\0';
	if (named)
		sentence_add(&sentence, "%s: ", named->name);
	if (job->is_cycle)
		sentence_add(
			&sentence,
			"ranks wait for each other in different communicators, so each entered its "
			"collectives in another order. In one of them, ");
	add_answer(&sentence, subject);
}
