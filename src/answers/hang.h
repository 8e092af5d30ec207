/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The answer to "which rank hangs". It depends only on one snapshot. Collectives of a communicator
 * are numbered on each rank (core/sequence.h). A rank that has not entered a number is missing to
 * the ranks that have entered it.
 *
 * Times are those of calls. A call of NCCL only queues its work; when the GPU finishes it is not
 * known. All ranks that are compared are on this node. The rule of packaging compares nodes.
 */
#include <stddef.h>
#include "base/cleanup.h"
#include "answers/lines.h"
#include "core/snapshot.h"

/* Ranks that wait for less time do not hang. See also hang_comm.limit_ns. */
#define HANG_MIN_NS (5 * NSEC_PER_SEC)

/* By importance: the answer about a job is that about its communicator with the largest one. */
enum hang_verdict {
	HANG_NONE,	 /* no rank waits, or not for long */
	HANG_INCOMPLETE, /* all ranks entered it and wait: no rank is missing */
	HANG_UNSEEN,   /* all ranks that are seen wait, and some ranks are not seen on this node */
	HANG_FOLLOWS,  /* a rank is missing, because it waits in another communicator */
	HANG_MISSING,  /* a rank is missing */
	HANG_DISAGREE, /* ranks differ in operation or bytes at one number */
	HANG_VERDICT_NR,
};

/* A rank of a communicator on this node. */
struct hang_member {
	const struct snapshot_comm *comm;
	const struct snapshot_process *process;
	bool follows; /* it is missing, because it waits in another communicator */
	const struct lines_stack *stack; /* of the launcher of a missing rank; NULL: not known */
};

/* How late a rank enters collectives: the last one, and how long all other ranks waited for it. */
struct hang_late {
	u32 at;		/* the member that was last most often */
	u32 nr_last;	/* how often it was last */
	u32 nr_numbers; /* of so many collectives that all members have entered; 0: none is known */
	u64 mean_ns;	/* for how long the others waited for it, each time */
	bool is_late;	/* it stands out */
};

struct hang_comm {
	const struct snapshot *snapshot;
	const struct hang_member *members; /* by rank */
	u32 nr_members;
	u32 nr_ranks; /* 0: not known */
	u32 verdict;
	u64 first;	  /* the number that the last member has entered */
	u64 number;	  /* the first one that not all members have entered, else the latest one */
	u32 nr_entered;	  /* members that have entered it */
	u64 waited_ns;	  /* the time since the last one of these entered it */
	bool is_at_least; /* it was longer: the ledger no longer has the time */
	/* At least HANG_MIN_NS, and longer than collectives of this job usually are apart. */
	u64 limit_ns;
	/* HANG_DISAGREE */
	u64 odd_number;
	u32 model;	   /* a member that entered what most members entered */
	bool has_majority; /* else it is not known which members are wrong */
	struct hang_late late;
};

struct hang {
	const struct snapshot *snapshot;
	struct hang_member *members;		 /* by job, communicator, rank */
	struct hang_comm *comms;		 /* by job; at least two ranks each */
	const struct snapshot_process **unknown; /* processes with ranks, but without a ledger */
	u32 nr_members;
	u32 nr_comms;
	u32 nr_unknown;
};

/* The communicators of one job. */
struct hang_job {
	const struct snapshot *snapshot;
	const struct hang_comm *comms;
	u32 nr;
	u32 subject;   /* the answer is about this one */
	bool is_cycle; /* the missing ranks wait for each other in different communicators */
};

/* `who` is an operand as in choose.h, or NULL. The snapshot must outlive the answer. */
int hang_new(const struct snapshot *snapshot, const char *who, struct hang **ret);
struct hang *hang_free(struct hang *hang);
DEFINE_CLEANUP(struct hang, hang_free);

/* The job whose communicators start at index `first`. The next one starts at `first` + `nr`. */
struct hang_job hang_job(const struct hang *hang, u32 first);

/* A member has entered a number. Numbers may wrap. */
static inline bool hang_has_entered(const struct hang_member *member, u64 number)
{
	return (s64)(member->comm->nr - number) >= 0;
}

/* A rank that the others wait for. */
static inline bool hang_is_missing(const struct hang_comm *comm, const struct hang_member *member)
{
	return comm->verdict >= HANG_FOLLOWS && !hang_has_entered(member, comm->number);
}

/* Whether the frames of the launcher of a member are known. */
bool hang_has_stack(const struct hang_member *member);

/* The call with this number; NULL if the ledger does not have it (any more). */
const struct snapshot_call *hang_call(const struct hang_member *member, u64 number);

/* Whether the call of a member differs from that of most members at `odd_number`. */
bool hang_is_odd(const struct hang_comm *comm, const struct hang_member *member);

/*
 * The next rank of the communicator whose processes on this node have ended; -1: there is no other
 * one. *at is the place to search from. Known only of the ranks of the world.
 */
s32 hang_next_ended(const struct hang_comm *comm, u32 *at);
/* Ranks that are not on this node, or whose calls have no probes. */
u32 hang_nr_elsewhere(const struct hang_comm *comm);

/* The rank in the world, or -1. */
s32 hang_rank(const struct hang_member *member);

#define HANG_SENTENCE_LEN 1024

/* The answer about one communicator, and that about a job. */
void hang_comm_sentence(const struct hang_comm *comm, char ret[static HANG_SENTENCE_LEN]);
void hang_sentence(const struct hang_job *job, char ret[static HANG_SENTENCE_LEN]);
/* What the launcher of a member does: thread, state, call, phase. */
void hang_launcher(const struct hang_comm *comm, const struct hang_member *member,
		   char ret[static HANG_SENTENCE_LEN]);
const char *hang_verdict_label(u32 verdict);

/* The whole answer on one line. */
int hang_to_json(const struct hang *hang, char **ret, size_t *ret_length);
