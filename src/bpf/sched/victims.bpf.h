/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds a CPU that an ordinary task may preempt, without a look at each CPU: an LLC has a bit for
 * each of its CPUs that runs a task of the idle class, and one for each that runs an ordinary task
 * of the lowest tier. On most machines nearly all searches end at a mask that is 0.
 *
 * A CPU sets its bits when a task begins to run or keeps its CPU. They are wrong from then on if
 * the class or the tier changes, so the state of the CPU decides.
 */
#include "bpf/sched/groups.bpf.h"

/* A search looks at the masks of so many other LLCs, and at so many CPUs of each LLC. */
#define VICTIM_LLCS 2
#define VICTIM_CPUS 2

/* The first bit of each kind of victims in the mask of an LLC. */
enum victims {
	VICTIMS_IDLE = 0,   /* tasks of the idle class */
	VICTIMS_BATCH = 32, /* ordinary tasks of the lowest tier */
};

/* More than 32 CPUs share an LLC only if there was no room for its shards. */
#define VICTIM_PLACES 32

static u64 victims_of(u32 llc, enum victims kind)
{
	return llc_at(llc)->victims >> kind & ((1ULL << VICTIM_PLACES) - 1);
}

/* The bit of a CPU in a mask of its LLC. */
static u64 make_victim_bit(u32 cpu)
{
	u32 place;

	barrier_var(cpu);
	place = topology.cpu_place[cpu & (MAX_CPUS - 1)] - llc_place(queue_of_cpu(cpu));
	return place < VICTIM_PLACES ? 1ULL << place : 0;
}

/* Called when the state of the CPU was set to that of the task that runs there. */
static void victims_note(u32 cpu)
{
	const struct cpu_state *state = cpu_at(cpu);
	u64 *victims = &llc_at(queue_of_cpu(cpu))->victims;
	u64 idle = state->victim_bit << VICTIMS_IDLE, batch = state->victim_bit << VICTIMS_BATCH;
	u64 known = *victims & (idle | batch), now = 0;

	if (state->class == CLASS_IDLE)
		now = idle;
	else if (state->class == CLASS_ORDINARY && state->tier == TIER_BATCH)
		now = batch;
	if (now == known)
		return;
	__sync_fetch_and_and(victims, ~known);
	__sync_fetch_and_or(victims, now);
}

/*
 * A batch task is no victim of its waker, which often goes to sleep soon, and no victim of a task
 * with a smaller share.
 */
static bool is_victim(u32 cpu, enum victims kind, u32 waker_cpu, u64 rate)
{
	const struct cpu_state *state = cpu_at(cpu);

	if (state->is_offline)
		return false;
	if (kind == VICTIMS_IDLE)
		return state->class == CLASS_IDLE;
	return cpu != waker_cpu && state->class == CLASS_ORDINARY && state->tier == TIER_BATCH &&
	       state->rate >= rate;
}

/* The CPU of the task comes first. Not static: see may_run_on(). */
__noinline s32 victim_in(struct task_struct *p __arg_trusted, u32 llc, u32 kind, u64 rate)
{
	u32 own = scx_bpf_task_cpu(p), waker_cpu = MAX_CPUS, i;
	u64 own_bit = queue_of_cpu(own) == llc ? cpu_at(own)->victim_bit : 0;
	u64 victims = victims_of(llc, kind);
	u64 from = own_bit ?: 1ULL << (own % VICTIM_PLACES);

	if (is_bound(p))
		victims &= own_bit;
	if (!victims)
		return -1;
	if (compat_syscall(bpf_get_current_task_btf()) >= 0)
		waker_cpu = bpf_get_smp_processor_id();
	bpf_for(i, 0, VICTIM_CPUS) {
		u64 bit = place_bit_from(victims, from);
		u32 cpu;

		if (!bit)
			break;
		victims &= ~bit;
		cpu = cpu_in_place(llc_place(llc) + hist_log2(bit));
		if (!is_victim(cpu, kind, waker_cpu, rate) || !may_run_on(p, cpu))
			continue;
		__sync_fetch_and_and(&llc_at(llc)->victims, ~(bit << kind));
		return cpu;
	}
	return -1;
}

/* Looks at some LLCs other than `own`, from a random one on. Not static: see may_run_on(). */
__noinline s32 victim_elsewhere(struct task_struct *p __arg_trusted, u32 own, u32 kind, u64 rate)
{
	u32 nr_others = topology.nr_llcs - 1, nr, random, i;
	s32 cpu;

	if (!nr_others)
		return -1;
	random = bpf_get_prandom_u32() % nr_others;
	nr = nr_others < VICTIM_LLCS ? nr_others : VICTIM_LLCS;
	bpf_for(i, 0, nr) {
		u32 llc = (own + 1 + (random + i) % nr_others) % topology.nr_llcs;

		if (!victims_of(llc, kind))
			continue;
		cpu = victim_in(p, llc, kind, rate);
		if (cpu >= 0)
			return cpu;
	}
	return -1;
}

/* The CPU to preempt, in the LLC of the task or in another one, or -1. The next search skips it. */
static s32 victim_of(struct task_struct *p, enum victims kind, u64 rate)
{
	u32 own = queue_of_cpu(scx_bpf_task_cpu(p));
	s32 cpu;

	cpu = victims_of(own, kind) ? victim_in(p, own, kind, rate) : -1;
	if (cpu >= 0 || topology.nr_llcs <= 1 || is_bound(p))
		return cpu;
	return victim_elsewhere(p, own, kind, rate);
}
