// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's idle CPUs: masks, the default selection, kicks, and what a task may run on. */
#include "sim/count.h"
#include "sim/model.h"

#define NONE 0xffffffff

/* An idle CPU of both masks, from the one after the last pick; NONE if there is none. */
static u32 pick(const struct mask *among, const struct mask *allowed)
{
	struct cpu *here = &machine.cpus[machine.here];
	u32 words = (machine.nr_cpus + 63) / 64, start = (here->last_picked + 1) % machine.nr_cpus;

	count_add(COUNT_WORK, words);
	for (u32 i = 0; i <= words; i++) {
		u32 word = (start / 64 + i) % words;
		unsigned long bits =
			machine.idle.bits[word] & among->bits[word] & allowed->bits[word];

		if (i == 0)
			bits &= ~0UL << start % 64;
		if (!bits)
			continue;
		here->last_picked = word * 64 + (u32)__builtin_ctzl(bits);
		mask_set(&machine.idle, here->last_picked, false);
		return here->last_picked;
	}
	return NONE;
}

static const struct mask *mask_of(const struct cpumask *mask)
{
	return (const struct mask *)mask;
}

s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags)
{
	u32 cpu;

	count_add(COUNT_WORK, 1);
	cpu = pick(&machine.all, mask_of(allowed));
	return cpu == NONE ? -16 : (s32)cpu; /* EBUSY */
}

bool scx_bpf_test_and_clear_cpu_idle(s32 cpu)
{
	bool was_idle = mask_has(&machine.idle, (u32)cpu);

	count_add(COUNT_WORK, 1);
	mask_set(&machine.idle, (u32)cpu, false);
	return was_idle;
}

/* The previous CPU, one of its cache, one of its node, or any, that is idle. */
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle)
{
	const struct mask *allowed = mask_of(p->cpus_ptr);
	const struct mask *rings[] = {
		&machine.llcs[machine.cpus[prev_cpu].llc],
		&machine.nodes[topology.cpu_node[prev_cpu] - 1],
		&machine.all,
	};
	u32 cpu = NONE;

	*is_idle = true;
	if (mask_has(allowed, (u32)prev_cpu) && scx_bpf_test_and_clear_cpu_idle(prev_cpu))
		return prev_cpu;
	for (u32 i = 0; i < 3 && cpu == NONE; i++)
		cpu = pick(rings[i], allowed);
	*is_idle = cpu != NONE;
	return *is_idle ? (s32)cpu : prev_cpu;
}

void scx_bpf_kick_cpu(s32 id, u64 flags)
{
	struct cpu *cpu = &machine.cpus[id];

	count_add(COUNT_WORK, 1);
	count_add(COUNT_KICKS, 1);
	if (flags & SCX_KICK_PREEMPT)
		cpu_preempt(cpu);
	else if (!(flags & SCX_KICK_IDLE) || !cpu->curr)
		cpu_kick(cpu);
}

s32 scx_bpf_task_cpu(const struct task_struct *p)
{
	count_add(COUNT_WORK, 1);
	return (s32)task_of(p)->cpu;
}

bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	count_add(COUNT_WORK, 1);
	p->scx.slice = slice;
	return true;
}

bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask)
{
	count_add(COUNT_WORK, 1);
	return mask_has(mask_of(mask), cpu);
}

u32 bpf_cpumask_first(const struct cpumask *mask)
{
	u32 cpu = 0;

	while (cpu < machine.nr_cpus && !mask_has(mask_of(mask), cpu))
		cpu++;
	return cpu;
}
