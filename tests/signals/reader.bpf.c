// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures when another BPF program sees a change of a process: it reads the same map as
 * the scheduler. The test calls marker() with its own time and the phase that must be
 * visible then. The second program does nothing and serves to compare costs.
 */
#include "bpf/signals/state.bpf.h"
#include "signals/reader.h"

struct process_map processes SEC(".maps");

struct sighting sightings[MAX_SIGHTINGS];
u32 nr_sightings, nr_wrong_phase;

SEC("uprobe.multi")
int marker_seen(struct pt_regs *ctx)
{
	u64 now = bpf_ktime_get_ns(), since = PT_REGS_PARM1(ctx);
	const struct process_state *process = process_find(bpf_get_current_task_btf());
	u32 i = nr_sightings;

	if (!process || process->task.phase != (u32)PT_REGS_PARM2(ctx)) {
		nr_wrong_phase++;
		return 0;
	}
	if (i >= MAX_SIGHTINGS)
		return 0;
	sightings[i].phase = process->task.phase;
	sightings[i].seen_ns = now - since;
	sightings[i].changed_ns = (s64)(process->task.phase_since_ns - since);
	nr_sightings = i + 1;
	return 0;
}

SEC("uprobe.multi")
int empty(struct pt_regs *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
