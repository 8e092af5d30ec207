/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* State of the scheduler for each LLC, CPU and task, and functions to access it. */
#include "bpf/compat.bpf.h"
#include "bpf/signals/learn.bpf.h"
#include "bpf/sched/task.bpf.h"
#include "bpf/signals/state.bpf.h"
#include "core/places.h"
#include "core/policy.h"
#include "core/sched_stats.h"

const volatile u64 slice_ns = 5 * NSEC_PER_MSEC;
/* How often the waiting tasks of an LLC are looked at for those that have waited too long. */
const volatile u64 sweep_interval_ns = NSEC_PER_SEC / 4;

/* Written by user space before each attach, so that CPU hotplug needs no reload. */
struct topology topology = { .nr_cpus = 1, .nr_llcs = 1, .nr_nodes = 1 };
/* Written by user space at any time. */
struct sched_policy policy = { .reserved_percent = 30, .promotion_percent = 200 };

/* Aligned to cache lines, so that LLCs do not contend for their clocks. */
static struct llc {
	/* The first line is written at each turn. */
	u64 clock;	 /* virtual time that the running tasks have reached */
	s64 weight_kept; /* change of the weight of the machine that was not passed on */
	u32 nr_waiting[QUEUE_SLOTS];
	u64 next_sweep_ns;
	u64 victims; /* CPUs whose task may be preempted: victims.bpf.h */
	/* The second line is written rarely; other LLCs read the speed. */
	u64 spinner_due_ns; /* when its first spinner should run again; 0: no spinner waits */
	u64 has_overdue;    /* the overdue queue may contain tasks */
	u64 roles_seen_ns;  /* when no waiting task could be dispatched by a new role */
	u64 nr_roles_seen;  /* new_roles.nr_found at that time */
	struct llc_speed {
		u64 since_ns, clock; /* when it was last measured */
		u64 average;	     /* 0: not known */
	} speed;		     /* how fast the clock advances */
} __attribute__((aligned(64))) llcs[MAX_LLCS];

/* State of a CPU that other CPUs read before they preempt it, on a cache line of its own. */
static struct cpu_state {
	u64 debt_ns;	    /* CPU time that promoted tasks owe to the other tasks */
	u64 system_debt_ns; /* CPU time that tasks of the system owe to the other tasks */
	u64 rate;	    /* of the running task */
	u64 victim_bit;	    /* its place in the masks of its LLC: victims.bpf.h */
	u32 class;
	u32 group; /* slot of its cgroup */
	u16 tier;
	u8 in_turn;   /* a spinner has a short turn */
	u8 is_capped; /* the running task would be promoted, but for its group */
	u8 is_offline;
} __attribute__((aligned(64))) cpu_states[MAX_CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sched_cpu);
} sched_cpus SEC(".maps");

static struct sched_cpu *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&sched_cpus, &zero);
}

static struct cpu_state *cpu_at(u32 cpu)
{
	barrier_var(cpu);
	return &cpu_states[cpu & (MAX_CPUS - 1)];
}

static struct llc *llc_at(u32 i)
{
	barrier_var(i);
	return &llcs[i & (MAX_LLCS - 1)];
}

static u64 dsq_of(u32 queue, u32 llc)
{
	return queue * MAX_LLCS + llc;
}

static u64 local_dsq(void)
{
	return bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL);
}

/* The local DSQ of a CPU, which the kernel serves without a call of ops.dispatch. */
static u64 dsq_of_cpu(u32 cpu)
{
	return bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL_ON) | cpu;
}

static const struct class_rule *rule_of(u32 class)
{
	barrier_var(class);
	return &class_rules[class & (CLASS_SLOTS - 1)];
}

static bool is_promoted(u32 class)
{
	return rule_of(class)->rank > RANK_ORDINARY;
}

static const struct tier_rule *tier_rule_of(u32 tier)
{
	barrier_var(tier);
	return &tier_rules[tier & (TIER_SLOTS - 1)];
}

static u32 tier_of_task(const struct sched_task *task)
{
	return rule_on(policy.rules_off, RULE_TIER) ? task->tier : TIER_BATCH;
}

static void count(u32 class, u32 decision)
{
	struct sched_cpu *cpu = this_cpu();

	barrier_var(class);
	if (cpu && decision < DECISION_NR)
		cpu->stats.counters.nr[class & (CLASS_SLOTS - 1)][decision]++;
}

/* Records how long a task waited for its CPU. */
static void count_wait(u32 class, u64 waited_ns)
{
	struct sched_cpu *cpu = this_cpu();

	barrier_var(class);
	if (cpu)
		hist_record(&cpu->stats.waits[class & (CLASS_SLOTS - 1)], waited_ns);
}

/* A walk over a queue looks at so many tasks, so that a long queue does not make it slow. */
#define WALK_MAX 16
/* To judge whether a task is promoted costs as much as to pass by so many tasks. */
#define JUDGED	 4

static bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* LLC_UNKNOWN for a CPU that was offline when user space read the topology. */
static u32 llc_of_cpu(u32 cpu)
{
	barrier_var(cpu);
	return topology.cpu_llc[cpu & (MAX_CPUS - 1)];
}

static u32 queue_of_cpu(u32 cpu)
{
	u32 llc = llc_of_cpu(cpu);

	return llc < topology.nr_llcs ? llc : 0;
}

static u32 node_of_cpu(u32 cpu)
{
	barrier_var(cpu);
	return topology.cpu_node[cpu & (MAX_CPUS - 1)];
}

/*
 * Whether a CPU of the LLC called ops.dispatch within the interval of sweeps. Otherwise its CPUs
 * are idle, offline or taken by tasks of other schedulers.
 */
static bool is_served_lately(u32 llc, u64 now)
{
	return before(now, llc_at(llc)->next_sweep_ns);
}

static u32 llc_size(u32 llc)
{
	barrier_var(llc);
	return topology.llc_size[llc & (MAX_LLCS - 1)];
}

static u32 llc_place(u32 llc)
{
	barrier_var(llc);
	return topology.llc_place[llc & (MAX_LLCS - 1)];
}

/* The CPUs to look at for a task that ran on this CPU. */
static struct search search_from(u32 cpu)
{
	u32 llc = queue_of_cpu(cpu), nr = topology.nr_placed, size = llc_size(llc);

	barrier_var(cpu);
	return search_around(llc_place(llc), size, topology.cpu_place[cpu & (MAX_CPUS - 1)], nr,
			     size < nr ? bpf_get_prandom_u32() : 0);
}

static u32 cpu_in_place(u32 place)
{
	barrier_var(place);
	return topology.cpus[place & (MAX_CPUS - 1)];
}

static u32 search_cpu(const struct search *search, u32 i)
{
	return cpu_in_place(search_place(search, i));
}

/*
 * A lookup of a DSQ costs more than the rest of a dispatch, and most DSQs are
 * empty most of the time. So the tasks in each queue are counted. The kernel
 * inserts a task into its DSQ only after the count was incremented. A task counts
 * from before it is in the DSQ until it runs or leaves this scheduler.
 */
static u32 *nr_waiting(u32 queue, u32 llc)
{
	barrier_var(queue);
	return &llc_at(llc)->nr_waiting[queue & (QUEUE_SLOTS - 1)];
}

static bool may_wait(u32 queue, u32 llc)
{
	return *nr_waiting(queue, llc) > 0;
}

/* A timer that moved the task may count it at the same time: see limit_release(). */
static void waits_in(struct sched_task *task, u64 dsq)
{
	u64 was = __sync_lock_test_and_set(&task->waits_in, dsq);

	if (was != WAITS_NOWHERE)
		__sync_fetch_and_add(nr_waiting(was / MAX_LLCS, was % MAX_LLCS), -1);
}

static void queue_entered(struct sched_task *task, u32 queue, u32 llc)
{
	__sync_fetch_and_add(nr_waiting(queue, llc), 1);
	waits_in(task, dsq_of(queue, llc));
}

static void queue_left(struct sched_task *task)
{
	if (task->waits_in != WAITS_NOWHERE)
		waits_in(task, WAITS_NOWHERE);
}

static bool serve_queue(u32 queue, u32 llc)
{
	return may_wait(queue, llc) && compat_dsq_move_to_local(dsq_of(queue, llc));
}

/*
 * A task that was preempted while it must not migrate. Its cpus_ptr shows that only after its
 * enqueue, and excludes its CPU if its affinity was changed meanwhile. A BPF program that runs in a
 * task counts as 1 itself.
 */
static bool must_stay(struct task_struct *p)
{
	if (!bpf_core_field_exists(p->migration_disabled) || !p->migration_disabled)
		return false;
	return p->migration_disabled > 1 || bpf_get_current_task_btf() != p;
}

/* No other CPU may run the task. Its cpus_ptr does not always show that: see must_stay(). */
static bool is_bound(struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 || must_stay(p);
}

/* Not static, so that the verifier checks the function once, not once per caller. */
__noinline int may_run_on(struct task_struct *p __arg_trusted, u32 cpu)
{
	return must_stay(p) ? cpu == (u32)scx_bpf_task_cpu(p)
			    : bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/*
 * An idle CPU of the mask, or -1. A CPU that went offline remains in the kernel's mask of idle CPUs
 * until it is picked, which this function does.
 *
 * Callers read the mask of a task once: the verifier searches all types at each such read.
 */
static s32 idle_cpu_in(const struct cpumask *allowed)
{
	s32 cpu = scx_bpf_pick_idle_cpu(allowed, 0);

	if (cpu >= 0 && cpu_at(cpu)->is_offline)
		cpu = scx_bpf_pick_idle_cpu(allowed, 0);
	return cpu >= 0 && !cpu_at(cpu)->is_offline ? cpu : -1;
}

/* The first CPU of the mask. It looks at all CPUs only if that one is offline. */
static __noinline u32 first_cpu_in(const struct cpumask *allowed)
{
	u32 first = bpf_cpumask_first(allowed), nr_cpus = topology.nr_cpus, cpu;

	if (!cpu_at(first)->is_offline)
		return first;
	bpf_for(cpu, 0, nr_cpus) {
		if (!cpu_at(cpu)->is_offline && bpf_cpumask_test_cpu(cpu, allowed))
			return cpu;
	}
	return first;
}

/*
 * The LLC of the CPU of the task. If that CPU goes offline, or the affinity has just changed and
 * excludes it, the LLC of the first allowed CPU.
 */
static u32 llc_of_task(struct task_struct *p, const struct cpumask *allowed)
{
	u32 cpu = scx_bpf_task_cpu(p);

	/* Not may_run_on(): a timer of a sleepable program calls this under RCU. */
	if (cpu_at(cpu)->is_offline || (!must_stay(p) && !bpf_cpumask_test_cpu(cpu, allowed)))
		cpu = first_cpu_in(allowed);
	return queue_of_cpu(cpu);
}
