/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The code that the BPF program and the test both run: each case goes through
 * functions that src/core shares with the kernel. All results are in memory that
 * the test can read, and are compared byte for byte.
 */
#include "core/book.h"
#include "core/boundary.h"
#include "core/comm.h"
#include "core/hist.h"
#include "core/idle.h"
#include "core/learner.h"
#include "core/ledger.h"
#include "core/mpi.h"
#include "core/phase.h"
#include "core/process.h"
#include "core/scope.h"
#include "core/sequence.h"
#include "core/step.h"
#include "core/task.h"
#include "core/tier.h"

#define PARITY_BATCH 512

struct parity_case {
	struct phase_config config;
	struct task_state task;
	u64 now;
	u64 value;
	u64 average;
	u64 handle;
	struct mpi_world world;
	struct memory_book book;
	u32 observed;
	u32 nr_observations;
	u32 next_phase;
	u32 rank;
	struct comm_group group;
	struct learner learner;
	struct learner waker;
	struct procdb_record prediction;
	struct idle_account idle;
	struct wait_share share;
	struct step_state step;
	char scope[SCOPE_NAME_BYTES];
};

struct parity_result {
	struct task_state transitioned;
	struct task_state detected;
	struct task_state crossed;
	struct phase_candidate candidate;
	struct mpi_world ranked;
	struct mpi_world sized;
	u64 datatype_bytes;
	struct memory_book allocated;
	struct memory_book freed;
	u64 average;
	u32 raw;
	u32 settled;
	u32 slot;
	u32 has_crossed;
	u32 handle_kind;
	u32 is_held;
	u32 scope;
	u32 covers;
	u32 is_whole;
	struct comm_place place;
	u64 identity;
	struct sequence sequence; /* goes on from batch to batch */
	struct learner learner;
	struct learner waker;
	struct learner begun;
	struct procdb_record told;
	u64 news;
	struct idle_account booked;
	struct idle_account decided;
	struct wait_share part;
	struct step_state step;
	struct step_state results;
	struct step_end ended;
	u64 has_ended;
	struct ledger ledger; /* filled by the test, as the next member */
	struct ledger_mark mark;
	struct ledger_positions positions;
	u32 mark_is_done;
	u32 ledger_is_done;
	struct process_state process; /* filled by the test: too large for a BPF program to copy */
	u64 waited;
	u64 takes_back;
	u64 nr_transitions[4]; /* after each event */
};

struct parity_batch {
	u32 nr_cases;
	u32 pad;
	struct parity_case cases[PARITY_BATCH];
	struct parity_result results[PARITY_BATCH];
	struct hist hist; /* distribution of the values of this batch */
	struct shared_hist shared;
};

static inline void parity_phase(const struct parity_case *in, struct parity_result *out)
{
	out->raw = phase_raw(&in->config, &in->task.signals);
	out->candidate = in->task.candidate;
	out->settled = phase_settle(&in->config, &out->candidate, in->task.phase, out->raw);
}

static inline void parity_task(const struct parity_case *in, struct parity_result *out)
{
	out->transitioned = in->task;
	task_transition(&out->transitioned, in->next_phase, in->now);
	out->detected = in->task;
	task_detect(&in->config, &out->detected, &in->task.signals, in->now);
}

static inline void parity_boundary(const struct parity_case *in, struct parity_result *out)
{
	out->crossed = in->task;
	out->has_crossed = boundary_cross(&in->config, &out->crossed, in->next_phase, in->now);
}

/* A burst, a check of the inferred evidence, and a sleep of the launcher, for data or not. */
static inline void parity_process(const struct parity_case *in, struct parity_result *out)
{
	struct process_state *process = &out->process;

	out->nr_transitions[0] = process->task.nr_transitions;
	if (in->observed & 1)
		process_burst(process, in->value);
	process_infer(&in->config, process, in->rank, in->observed & 2, in->now);
	out->nr_transitions[1] = process->task.nr_transitions;
	process_data_wait(&in->config, process, in->now + 1);
	out->nr_transitions[2] = process->task.nr_transitions;
	process->woken_with_data = in->handle & 1;
	out->takes_back = process_may_take_back(process);
	out->waited = process_data_ready(&in->config, process, in->now + 1 + in->nr_observations);
	out->nr_transitions[3] = process->task.nr_transitions;
}

static inline void parity_book(const struct parity_case *in, struct parity_result *out)
{
	out->allocated = in->book;
	book_alloc(&out->allocated, in->value);
	out->freed = in->book;
	book_free(&out->freed, in->value);
}

static inline void parity_hist(const struct parity_case *in, struct parity_result *out)
{
	out->slot = hist_index(in->value);
}

static inline void parity_tier(const struct parity_case *in, struct parity_result *out)
{
	out->average = tier_average(in->average, in->value);
}

static inline void parity_calls(const struct parity_case *in, struct parity_result *out)
{
	out->handle_kind = mpi_datatype_kind(in->handle);
	out->datatype_bytes = mpich_datatype_bytes(in->handle);
	out->ranked = in->world;
	mpi_rank_told(&out->ranked, in->handle & 1, (s32)in->observed);
	out->sized = in->world;
	mpi_size_told(&out->sized, in->handle & 1, in->nr_observations);
	out->is_held = scope_holds(in->world.comm, in->handle);
	out->scope = scope_of(in->scope);
}

static inline void parity_comm(const struct parity_case *in, struct parity_result *out)
{
	out->is_whole = comm_group_is_whole(&in->group, in->rank);
	out->place = comm_split(&in->group, in->rank);
	out->identity = comm_mix(in->value, in->average);
	if (sequence_has(in->rank & (COLLECTIVE_NR - 1)))
		sequence_enter(&out->sequence, in->rank & (COLLECTIVE_NR - 1), in->value, in->now);
	sequence_return(&out->sequence, in->now - (in->observed & 1), in->observed & 2,
			in->average);
}

static inline void parity_learner(const struct parity_case *in, struct parity_result *out)
{
	out->learner = in->learner;
	out->waker = in->waker;
	learn_woken(&out->learner, in->now);
	learn_wakes(&out->waker, &out->learner, in->now);
	out->news = learn_ran(&out->learner, in->value, in->observed & 1, in->now);
	out->news |= (u64)learn_ended(&out->waker, in->now) << 1;
	out->told = learn_tell(&out->learner, in->now);
	learn_begin(&out->begun, in->handle, in->rank, in->next_phase,
		    in->observed & 1 ? &in->prediction : NULL);
	out->news |= (u64)learn_ran(&out->begun, in->average, in->observed & 2, in->now) << 2;
}

static inline void parity_idle(const struct parity_case *in, struct parity_result *out)
{
	u64 wait = in->share.wait_ns + (in->observed & 1);

	out->part = in->share;
	share_book(&out->part, wait, in->observed, in->value, in->now);
	out->decided = in->idle;
	idle_decide_data(&out->decided, &out->part, wait, in->now);
	out->booked = in->idle;
	idle_doing(&out->booked, in->observed & 7, in->now);
	idle_sleeps(&out->booked, in->rank & 1, in->value);
	if (in->rank & 2)
		idle_set_gpu(&out->booked, in->observed & 1 ? IDLE_GPU_DONE : IDLE_GPU_BUSY,
			     in->average);
	else
		idle_ends(&out->booked, in->average);
	if (in->rank & 4)
		idle_blocked(&out->booked, in->value, in->average);
}

/* Handles are few, so that streams are found again. */
static inline void parity_ledger(const struct parity_case *in, struct parity_result *out)
{
	struct ledger *ledger = &out->ledger;
	u32 slot = ledger_slot(ledger, ledger_handle(in->value & 31, in->rank & 1, in->rank & 7));
	u32 other = ledger_slot(ledger, in->average & 31);

	ledger_queue(ledger, slot);
	out->mark = ledger_mark(ledger, slot);
	ledger_wait(ledger, other, &out->mark);
	ledger_queue(ledger, other);
	if (in->observed & 1)
		out->mark = ledger_mark(ledger, other);
	if (in->observed & 2)
		ledger_complete(ledger, &out->mark);
	ledger_positions(ledger, &out->positions);
	if (in->rank & 8)
		ledger_capture(ledger, other);
	if (in->rank & 16)
		ledger_capture_end(ledger);
	if (in->rank & 32)
		ledger_complete_all(ledger, &out->positions);
	out->mark_is_done = ledger_mark_is_done(ledger, &out->mark);
	out->ledger_is_done = ledger_is_done(ledger);
}

static inline void parity_step(const struct parity_case *in, struct parity_result *out)
{
	out->step = in->step;
	out->ended = (struct step_end){};
	if (in->rank & 1)
		step_cleared(&out->step);
	step_sync(&out->step, in->value, in->average, in->observed & 1, in->now);
	out->has_ended = step_judge(&out->step, &out->ended);
	if (in->rank & 2)
		step_named(&out->step);
	if (in->rank & 4)
		out->ended = step_optimized(&out->step, in->now);
}

static inline void parity_results(const struct parity_case *in, struct parity_result *out)
{
	struct ledger *ledger = &out->ledger;
	u32 slot = ledger_slot(ledger, in->value & 31);

	out->results = in->step;
	step_result(&out->results, slot, ledger_queue(ledger, slot));
	if (in->observed & 2)
		ledger_complete(ledger, &(struct ledger_mark){ in->average & 63, slot, 0 });
	out->covers = step_covers(&out->results, ledger);
}
