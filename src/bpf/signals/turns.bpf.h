/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tasks that ran while another one waited for its CPU: core/turns.h.
 *
 * Trusts what the kernel reports of a task that leaves its CPU. The CPU is the one on which the
 * wait ended: of a wait that began on another CPU, the tasks of that one are not known.
 */
#include "bpf/compat.bpf.h"
#include "core/turns.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct turns);
} cpu_turns SEC(".maps");

static const char nobody[COMM_LEN] = "(idle)";

static struct turns *turns_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpu_turns, &zero);
}

static void turn_name_of(struct task_struct *p, struct turn_name *ret)
{
	const char *name = p->pid ? p->comm : nobody;

	bpf_probe_read_kernel(ret, sizeof(*ret), name);
}

static void turn_ends(struct task_struct *p, u64 now)
{
	struct turns *turns = turns_of_cpu();
	struct turn_name name = {};

	if (!turns || turns_is_short(turns, now))
		return;
	turn_name_of(p, &name);
	turns_end(turns, &name, now);
}
