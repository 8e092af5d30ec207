/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tasks that had each CPU recently. A task that waits for a CPU usually waits for several
 * others, one after another. Each of them has a part in the wait: the time that it ran.
 *
 * Trusts what the kernel reports of a task that leaves its CPU. The CPU is the one on which the
 * wait ended. A task that moved between CPUs while it waited is told about this CPU only.
 */
#include "bpf/compat.bpf.h"

#define TURNS	    16 /* a power of two: more than a task usually waits for */
#define TURN_MIN_NS (100ULL * 1000)

struct turn {
	u64 ended_ns;
	char name[COMM_LEN]; /* of the task; empty: the CPU was idle */
};

struct turns {
	struct turn turn[TURNS];
	u32 nr; /* the last one is at this index, modulo TURNS */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct turns);
} cpu_turns SEC(".maps");

static const char nobody[COMM_LEN] = "(idle)";

/* A walk over the turns of this CPU, from the last one back, for a wait that ends now. */
struct turn_walk {
	struct turns *turns;
	u64 until_ns; /* turns from here on have been told */
	u64 left_ns;  /* of the wait */
};

static struct turns *turns_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpu_turns, &zero);
}

static struct turn *turn_at(struct turns *turns, u32 i)
{
	barrier_var(i);
	return &turns->turn[i & (TURNS - 1)];
}

/* A task leaves this CPU. The time of a short turn counts as part of the turn beside it. */
static void turn_ends(struct task_struct *p, u64 now)
{
	struct turns *turns = turns_of_cpu();
	struct turn *turn;

	if (!turns || now - turn_at(turns, turns->nr)->ended_ns < TURN_MIN_NS)
		return;
	turns->nr++;
	turn = turn_at(turns, turns->nr);
	turn->ended_ns = now;
	turn->name[0] = 0;
	if (p->pid)
		bpf_probe_read_kernel(turn->name, sizeof(turn->name), p->comm);
}

/* The name of the task whose turn was the i-th before the last one; NULL: not known. */
static const char *turn_name(const struct turn_walk *walk, u32 i)
{
	const struct turn *turn = turn_at(walk->turns, walk->turns->nr - i);

	if (!turn->ended_ns)
		return NULL;
	return turn->name[0] ? turn->name : nobody;
}

/* The part of this turn in the wait. The oldest turn has the rest. */
static u64 turn_part(struct turn_walk *walk, u32 i)
{
	u64 began = i < TURNS - 1 ? turn_at(walk->turns, walk->turns->nr - i - 1)->ended_ns : 0;
	u64 part = walk->until_ns - began;

	if (part > walk->left_ns)
		part = walk->left_ns;
	walk->until_ns = began;
	walk->left_ns -= part;
	return part;
}
