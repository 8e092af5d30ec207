// SPDX-License-Identifier: GPL-2.0-only
/*
 * The `zernel` scheduler.
 *
 * Decides which task runs next and where. A task that wakes up while a CPU is
 * idle goes straight to that CPU; everybody else waits in a queue of a last-level
 * cache, ordered by virtual time: CPU time received, divided by the task's
 * weight. A CPU serves the queues of its own cache first and helps the others
 * when those are empty.
 *
 * What is known of ML processes makes a task's class (core/policy.h), anew each
 * time it is queued. Whoever feeds a GPU goes first and takes a CPU if need be;
 * so does a loader whose consumer waits for data. A loader that works ahead is
 * ordinary, but waits where it can be found when that changes. Who spins in a
 * sync steps back until the device should nearly be done. What the promoted take
 * is a debt to the others, who keep a share of each CPU that way.
 *
 * Trusts the loader for the topology (which CPU is behind which cache) and the
 * kernel for weights and affinity. A queue is only a place to wait: any CPU can
 * take from any queue, so a topology that is wrong costs locality and never a
 * stall. A task is put into a queue that one of its own CPUs serves first,
 * otherwise a busy machine could leave it waiting for a helper for ever.
 *
 * Fair by weight can still mean never: on a busy machine the lightest tasks are
 * due so late that the kernel would take us for dead. So each queue is looked
 * through now and then, and whoever has waited too long moves to a second queue
 * of that cache, first come first served, which gets every other turn.
 *
 * There is no cpu_online and no cpu_offline on purpose: without them the kernel
 * takes us down before a CPU comes or goes and asks for a fresh start, which the
 * loader gives it with the new topology. With them, whoever is bound to a CPU
 * that goes away would be ours to find, in every queue, and the kernel asks us
 * for nothing on behalf of such a CPU any more.
 *
 * Time is bpf_ktime_get_ns() everywhere, as the signals have it: scx_bpf_now() is
 * the run queue's clock, milliseconds and more away from that.
 *
 * Races that are accepted: a cache's clock is advanced without a lock, so it
 * may lag by one slice; a task counted against the old clock while it moves
 * between caches is off by the same.
 */
#include "bpf/compat.bpf.h"
#include "bpf/learn.bpf.h"
#include "bpf/state.bpf.h"
#include "core/policy.h"

const volatile u32 nr_cpus = 1;

#include "bpf/place.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define CLOCK_MONOTONIC 1 /* linux/time.h */

const volatile u64 slice_ns = 5 * NSEC_PER_MSEC;
const volatile u64 patience_ns = NSEC_PER_SEC;
const volatile u64 sweep_interval_ns = NSEC_PER_SEC / 4;
/* The share of each CPU that is kept for those who are not promoted. */
const volatile u32 others_permille = 300;
const volatile u32 rules_off;
const volatile u32 nr_llcs = 1;
const volatile u16 cpu_llc[MAX_CPUS];

struct sched_exit sched_exit;

/* One line of memory each, so that caches do not fight over their clocks. */
static struct llc {
	u64 clock; /* virtual time that those who run have reached */
	u64 next_sweep_ns;
	u64 spinner_due_ns; /* when the first of its spinners should run again */
} __attribute__((aligned(64))) llcs[MAX_LLCS];

struct sched_task {
	u64 running_since_ns;
	u64 queued_since_ns;
	u64 tier_credit_ns; /* what its virtual time is short of until it runs */
	u32 llc;	    /* whose clock the task's virtual time is measured by */
	u32 class;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_task);
} sched_tasks SEC(".maps");

struct sched_cpu {
	u64 nr_turns;
	struct sched_counters counters;
};

/* Of each CPU what others look at who want to take it. */
static struct cpu_state {
	u64 debt_ns; /* of the promoted to the others */
	u32 class;   /* of whoever runs there */
	u32 tier;
} cpu_states[MAX_CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sched_cpu);
} sched_cpus SEC(".maps");

/* Ends somebody's turn when a spinner of that cache should run again: slices end at ticks only. */
struct spinner_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LLCS);
	__type(key, u32);
	__type(value, struct spinner_timer);
} spinner_timers SEC(".maps");

static struct sched_task *sched_task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&sched_tasks, p, NULL, 0);
}

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

static u64 dsq_of(u32 queue, u32 llc)
{
	return queue * MAX_LLCS + llc;
}

static const struct class_rule *rule_of(u32 class)
{
	barrier_var(class);
	return &class_rules[class & (CLASS_SLOTS - 1)];
}

static const struct tier_rule *tier_rule_of(u32 tier)
{
	barrier_var(tier);
	return &tier_rules[tier & (TIER_SLOTS - 1)];
}

static u32 tier_of_task(struct task_struct *p)
{
	return rule_on(rules_off, RULE_TIER) ? learn_task_tier(p) : TIER_BATCH;
}

static void count(u32 class, u32 decision)
{
	struct sched_cpu *cpu = this_cpu();

	barrier_var(class);
	if (cpu && decision < DECISION_NR)
		cpu->counters.nr[class & (CLASS_SLOTS - 1)][decision]++;
}

static u64 local_dsq(void)
{
	return bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL);
}

static bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static struct llc *llc_at(u32 i)
{
	barrier_var(i);
	return &llcs[i & (MAX_LLCS - 1)];
}

static u32 queue_of_cpu(u32 cpu)
{
	u32 llc;

	barrier_var(cpu);
	llc = cpu_llc[cpu & (MAX_CPUS - 1)];
	return llc < nr_llcs ? llc : 0;
}

/* A cache that serves the task: its CPU's, unless affinity has just moved away. */
static u32 llc_of_task(struct task_struct *p)
{
	u32 cpu = scx_bpf_task_cpu(p);

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		cpu = bpf_cpumask_first(p->cpus_ptr);
	return queue_of_cpu(cpu);
}

/*
 * What running for so long costs a task: the heavier it is, the less. A kernel
 * thread counts as ordinary at least, however nice it is: preempted while all of
 * RCU waits for it, as the nicest of them are, it would hold up the machine.
 */
static u64 vtime_charge(const struct task_struct *p, u64 ran_ns)
{
	u32 weight = p->scx.weight, least = p->flags & PF_KTHREAD ? 100 : 1;

	return ran_ns * 100 / (weight > least ? weight : least);
}

/*
 * The task's virtual time by the clock of `llc`. Moving to another cache keeps
 * the distance to the clock. Sleeping earns a credit of one slice at most, and
 * running alone, while nobody wanted the CPU, a debt of two slices at most: less
 * would forgive what everybody runs beyond a slice, until the next tick.
 */
static u64 vtime_at(struct task_struct *p, struct sched_task *task, u32 llc)
{
	u64 clock = llc_at(llc)->clock, vtime = p->scx.dsq_vtime + task->tier_credit_ns;
	u64 debt_limit = clock + vtime_charge(p, 2 * slice_ns);

	if (task->llc != llc) {
		vtime += clock - llc_at(task->llc)->clock;
		task->llc = llc;
	}
	if (before(vtime, clock - slice_ns))
		vtime = clock - slice_ns;
	else if (before(debt_limit, vtime))
		vtime = debt_limit;
	return vtime;
}

/* Whom a task may feed: its own process, or the one it was forked from. */
static struct process_state *consumer_of(struct task_struct *p, struct process_state *process)
{
	struct task_struct *parent = p->real_parent;

	if (process && process->launcher_tid)
		return process;
	return parent ? process_find(parent) : NULL;
}

static u32 classify(struct task_struct *p, bool woken, u64 now)
{
	struct thread_state *thread = thread_find(p);
	struct class_view view = { .now = now, .woken = woken };
	struct process_state *process = process_find(p), *consumer;

	view.role = thread ? thread->role : ROLE_OTHER;
	if (process && thread) {
		view.last_sync_ns = process->task.signals.last_sync_ns;
		view.device_busy = phase_is_busy(process->task.phase);
		view.in_collective = process->task.phase == PHASE_COLLECTIVE;
		view.in_sync = thread_call_kind(thread) == CALL_KIND_SYNC;
		view.expected_end_ns = busy_expected_end(&process->busy);
	}
	if (view.role == ROLE_LOADER || view.role == ROLE_OTHER) {
		consumer = consumer_of(p, process);
		view.consumer_waits = consumer && consumer->launcher_asleep;
		view.consumer_waited = consumer && consumer->data_waited_ns &&
				       now < consumer->data_waited_ns + LATE_MAX_NS;
	}
	return class_of(&view, rules_off);
}

SEC("struct_ops/zernel_select_cpu")
s32 BPF_PROG(zernel_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct sched_task *task = sched_task_of(p);
	s32 cpu = pick_idle_near(p, prev_cpu);
	bool is_idle = cpu >= 0;

	if (!is_idle)
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	if (!is_idle || !task)
		return cpu;
	task->class = classify(p, true, bpf_ktime_get_ns());
	count(task->class, DECISION_IDLE_CPU);
	compat_dsq_insert(p, local_dsq(), rule_of(task->class)->slice_ns, 0);
	return cpu;
}

static bool is_promoted(u32 class)
{
	return rule_of(class)->rank > 0;
}

/* Whether a task of this class may take the CPU from whoever has it. */
static bool can_take(u32 cpu, u32 class)
{
	return rule_of(cpu_at(cpu)->class)->rank < rule_of(class)->rank &&
	       cpu_at(cpu)->debt_ns <= DEBT_LIMIT_NS;
}

static void take(u32 cpu, u32 class)
{
	/* Whoever looks next looks elsewhere. */
	cpu_at(cpu)->class = class;
	count(class, DECISION_PREEMPTED);
	scx_bpf_kick_cpu(cpu, bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT));
}

/* Takes the CPU of somebody of lower rank, preferably the task's own. */
static void preempt_for(struct task_struct *p, struct sched_task *task)
{
	u32 start = scx_bpf_task_cpu(p), i;

	bpf_for(i, 0, nr_cpus) {
		u32 cpu = (start + i) % nr_cpus;

		if (!can_take(cpu, task->class) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		take(cpu, task->class);
		return;
	}
}

/* Whoever wakes up and had less than its share need not wait for one of the lowest tier. */
static void preempt_by_tier(struct task_struct *p, u32 tier)
{
	u32 start = scx_bpf_task_cpu(p), i;

	bpf_for(i, 0, nr_cpus) {
		u32 cpu = (start + i) % nr_cpus;

		if (cpu_at(cpu)->class != CLASS_ORDINARY ||
		    cpu_at(cpu)->tier >= tier_rule_of(tier)->takes_below ||
		    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		cpu_at(cpu)->tier = tier;
		take(cpu, CLASS_ORDINARY);
		return;
	}
}

/* When a task that waits for its device should run again; 0 when that is not known. */
static u64 spinner_due(struct task_struct *p)
{
	struct process_state *process = process_find(p);
	u64 end = process ? busy_expected_end(&process->busy) : 0;

	return end > SPIN_MARGIN_NS ? end - SPIN_MARGIN_NS : end;
}

/* The first of a cache's spinners is due then. */
static void expect_spinner(u32 llc, u64 due, u64 now)
{
	struct spinner_timer *timer = bpf_map_lookup_elem(&spinner_timers, &llc);

	llc_at(llc)->spinner_due_ns = due;
	if (timer && due)
		bpf_timer_start(&timer->timer, before(now, due) ? due - now : 0, 0);
}

static void spinner_queued(struct task_struct *p, u32 llc, u64 now)
{
	u64 due = spinner_due(p), first = llc_at(llc)->spinner_due_ns;

	if (due && (!first || before(due, first)))
		expect_spinner(llc, due, now);
}

static int spinner_timer_fired(void *map, u32 *llc, struct spinner_timer *timer)
{
	u32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		if (queue_of_cpu(cpu) == *llc && can_take(cpu, CLASS_FEEDER)) {
			take(cpu, CLASS_FEEDER);
			break;
		}
	}
	return 0;
}

SEC("struct_ops/zernel_enqueue")
void BPF_PROG(zernel_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool woken = enq_flags & bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_WAKEUP);
	struct sched_task *task = sched_task_of(p);
	const struct class_rule *rule;
	u64 now = bpf_ktime_get_ns(), vtime;
	u32 llc, tier;
	s32 cpu;

	/* Per-CPU kernel threads are part of the CPU they serve: never behind users. */
	if (!task || ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)) {
		compat_dsq_insert(p, local_dsq(), slice_ns, enq_flags);
		return;
	}
	llc = llc_of_task(p);
	task->queued_since_ns = now;
	task->class = classify(p, woken, now);
	rule = rule_of(task->class);
	if (task->class == CLASS_SPINNER)
		spinner_queued(p, llc, now);
	count(task->class, DECISION_QUEUED);
	vtime = vtime_at(p, task, llc);
	tier = tier_of_task(p);
	task->tier_credit_ns = task->class == CLASS_ORDINARY ? tier_rule_of(tier)->credit_ns : 0;
	compat_dsq_insert_vtime(p, dsq_of(rule->queue, llc), rule->slice_ns,
				vtime - rule->credit_ns - task->tier_credit_ns, enq_flags);

	/* A CPU may have gone idle since select_cpu looked, or was never asked. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_IDLE));
	else if (rule->preempts && rule_on(rules_off, RULE_PREEMPT))
		preempt_for(p, task);
	else if (woken && task->class == CLASS_ORDINARY && before(vtime, llc_at(llc)->clock))
		preempt_by_tier(p, tier);
}

static void sweep_queue(u32 queue, u32 llc, u64 now)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(queue, llc), 0) {
		struct sched_task *task = sched_task_of(p);

		if (task && before(task->queued_since_ns + patience_ns, now))
			compat_dsq_move(&___it, p, dsq_of(QUEUE_OVERDUE, llc), 0);
	}
}

/* Not static, as others below: verified once and not again for each caller. */
__noinline int sweep(u32 llc_id)
{
	struct llc *llc = llc_at(llc_id);
	u64 now = bpf_ktime_get_ns(), next = llc->next_sweep_ns;

	/* Of the CPUs that come by at the same time, one does it. */
	if (before(now, next) ||
	    !__sync_bool_compare_and_swap(&llc->next_sweep_ns, next, now + sweep_interval_ns))
		return 0;
	sweep_queue(QUEUE_ORDINARY, llc_id, now);
	sweep_queue(QUEUE_LOADERS, llc_id, now);
	sweep_queue(QUEUE_SPINNERS, llc_id, now);
	return 0;
}

/* Takes the first loader that was not promoted when it came, and would be now. */
__noinline int serve_loader(u32 llc, u32 cpu, u64 now)
{
	struct task_struct *p;
	bool found = false;

	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_LOADERS, llc), 0) {
		struct sched_task *task = sched_task_of(p);
		u32 class;

		if (found || !task || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		class = classify(p, false, now);
		if (!is_promoted(class) || !compat_dsq_move(&___it, p, local_dsq(), 0))
			continue;
		task->class = class;
		count(class, DECISION_PROMOTED);
		found = true;
	}
	return found;
}

/* Takes a spinner whose device should be done, and looks when the next one's is. */
__noinline int serve_spinner(u32 llc, u32 cpu, u64 now)
{
	struct task_struct *p;
	bool found = false;
	u64 next = 0;

	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_SPINNERS, llc), 0) {
		struct sched_task *task = sched_task_of(p);
		u64 due = spinner_due(p);

		if (!task)
			continue;
		if (!found && !before(now, due) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
		    compat_dsq_move(&___it, p, local_dsq(), 0)) {
			task->class = CLASS_FEEDER;
			compat_set_slice(p, rule_of(CLASS_FEEDER)->slice_ns);
			count(CLASS_FEEDER, DECISION_PROMOTED);
			found = true;
		} else if (!next || before(due, next)) {
			next = due;
		}
	}
	expect_spinner(llc, next, now);
	return found;
}

/* When the first task of a queue is due; false when it is empty. */
static bool head_of(u64 dsq, u64 *vtime)
{
	struct task_struct *p;
	bool found = false;

	bpf_for_each(scx_dsq, p, dsq, 0) {
		if (!found)
			*vtime = p->scx.dsq_vtime;
		found = true;
		break;
	}
	return found;
}

static bool spinner_is_due(u32 llc, u64 now)
{
	u64 due = llc_at(llc)->spinner_due_ns;

	return due && !before(now, due);
}

__noinline int serve_promoted(u32 llc, u32 cpu, u64 now)
{
	if (spinner_is_due(llc, now) && serve_spinner(llc, cpu, now))
		return true;
	return compat_dsq_move_to_local(dsq_of(QUEUE_FIRST, llc)) ||
	       (scx_bpf_dsq_nr_queued(dsq_of(QUEUE_LOADERS, llc)) > 0 &&
		serve_loader(llc, cpu, now));
}

/* Loaders that work ahead are ordinary: whoever of the two kinds is due first. */
__noinline int serve_others(u32 llc)
{
	u64 ordinary = dsq_of(QUEUE_ORDINARY, llc), loaders = dsq_of(QUEUE_LOADERS, llc);
	u64 ordinary_due = 0, loader_due = 0;
	bool loaders_first = head_of(loaders, &loader_due) && (!head_of(ordinary, &ordinary_due) ||
							       before(loader_due, ordinary_due));

	if (loaders_first && compat_dsq_move_to_local(loaders))
		return true;
	return compat_dsq_move_to_local(ordinary) ||
	       (!loaders_first && compat_dsq_move_to_local(loaders));
}

static bool serve_overdue(u32 llc)
{
	return compat_dsq_move_to_local(dsq_of(QUEUE_OVERDUE, llc));
}

/* Takes one task for this CPU out of what waits at a cache. */
static bool serve(u32 llc, u32 cpu, bool others_first, u64 now)
{
	if (others_first ? serve_others(llc) || serve_promoted(llc, cpu, now)
			 : serve_promoted(llc, cpu, now) || serve_others(llc))
		return true;
	return serve_overdue(llc) || compat_dsq_move_to_local(dsq_of(QUEUE_SPINNERS, llc));
}

/* Of the first of those who go first: its rank, 0 when there is nobody. */
static u32 rank_waiting(u32 llc)
{
	struct sched_task *task = NULL;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_FIRST, llc), 0) {
		task = sched_task_of(p);
		break;
	}
	return task ? rule_of(task->class)->rank : 0;
}

/* Whoever is promoted goes on, unless somebody like it waits or the others are owed. */
static bool goes_on(struct task_struct *prev, u32 llc, u64 now)
{
	struct sched_task *task;

	if (!prev || !(prev->scx.flags & bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED)))
		return false;
	task = sched_task_of(prev);
	if (!task)
		return false;
	task->class = classify(prev, false, now);
	if (!is_promoted(task->class) || spinner_is_due(llc, now) ||
	    rank_waiting(llc) >= rule_of(task->class)->rank)
		return false;
	compat_set_slice(prev, rule_of(task->class)->slice_ns);
	return true;
}

/*
 * By one slice at most: a task far ahead that got an overdue turn must not take the
 * clock along, or all who wake up from then on queue up behind those who already
 * wait.
 */
static void advance_clock(struct llc *llc, u64 vtime)
{
	if (before(llc->clock + slice_ns, vtime))
		llc->clock += slice_ns;
	else if (before(llc->clock, vtime))
		llc->clock = vtime;
}

/* Puts what a task has run since it was last asked on its own account and its CPU's. */
static void charge(struct task_struct *p, struct sched_task *task, struct sched_cpu *here,
		   bool sleeps, u64 now)
{
	struct cpu_state *cpu = cpu_at(scx_bpf_task_cpu(p));
	u64 ran_ns = now - task->running_since_ns;
	u32 class = task->class;

	task->running_since_ns = now;
	cpu->debt_ns = debt_after(cpu->debt_ns, is_promoted(class), ran_ns, others_permille);
	barrier_var(class);
	here->counters.ran_ns[class & (CLASS_SLOTS - 1)] += ran_ns;
	compat_set_dsq_vtime(p, p->scx.dsq_vtime + vtime_charge(p, ran_ns));
	learn_task_stops(p, ran_ns, sleeps);
	/* Who goes on may have become something else. */
	cpu->tier = tier_of_task(p);
}

/*
 * The kernel asks for the next task before it puts the last one back into a queue,
 * so a heavy task would get every other turn at most. Whoever used its slice up and
 * is due before all who wait goes on; whoever yielded, or was told to go, does not.
 */
static bool is_due_again(struct task_struct *prev, struct sched_cpu *here, u32 llc, u64 now)
{
	struct sched_task *task;
	u64 due;

	if (!prev || !(prev->scx.flags & bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED)))
		return false;
	task = sched_task_of(prev);
	if (!task || task->class != CLASS_ORDINARY || task->llc != llc ||
	    before(now, task->running_since_ns + slice_ns / 2))
		return false;
	if (scx_bpf_dsq_nr_queued(dsq_of(QUEUE_FIRST, llc)) > 0 ||
	    scx_bpf_dsq_nr_queued(dsq_of(QUEUE_LOADERS, llc)) > 0 || spinner_is_due(llc, now) ||
	    !head_of(dsq_of(QUEUE_ORDINARY, llc), &due))
		return false;
	charge(prev, task, here, false, now);
	if (!before(prev->scx.dsq_vtime, due))
		return false;
	advance_clock(llc_at(llc), prev->scx.dsq_vtime);
	compat_set_slice(prev, slice_ns);
	return true;
}

SEC("struct_ops/zernel_dispatch")
void BPF_PROG(zernel_dispatch, s32 cpu, struct task_struct *prev)
{
	struct sched_cpu *here = this_cpu();
	u32 own = queue_of_cpu(cpu), i;
	bool others_first = cpu_at(cpu)->debt_ns > DEBT_LIMIT_NS;
	u64 now = bpf_ktime_get_ns();

	if (!here)
		return;
	sweep(own);
	/*
	 * The overdue have every other turn. Each CPU counts its own: of one count for
	 * all, a CPU could see the even numbers only, and whoever is bound to it would
	 * starve.
	 */
	if ((here->nr_turns++ & 1) && serve_overdue(own))
		return;
	if (!others_first && goes_on(prev, own, now))
		return;
	if (is_due_again(prev, here, own, now))
		return;
	bpf_for(i, 0, nr_llcs) {
		if (serve((own + i) % nr_llcs, cpu, others_first, now))
			return;
	}
}

/* Who spins gives its CPU up at a tick; it would hold it for the rest of its slice. */
SEC("struct_ops/zernel_tick")
void BPF_PROG(zernel_tick, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);

	if (task && task->class == CLASS_FEEDER &&
	    classify(p, false, bpf_ktime_get_ns()) == CLASS_SPINNER)
		compat_set_slice(p, 0);
}

/*
 * The launcher went to sleep outside of any call: this CPU will look for one of
 * its loaders next, and if more of them wait, others shall do so as well.
 */
static void want_loaders(struct task_struct *p)
{
	u32 own = scx_bpf_task_cpu(p), i;
	s32 nr = scx_bpf_dsq_nr_queued(dsq_of(QUEUE_LOADERS, queue_of_cpu(own))) - 1;

	if (nr <= 0 || !rule_on(rules_off, RULE_LOADER) || !rule_on(rules_off, RULE_PREEMPT))
		return;
	bpf_for(i, 1, nr_cpus) {
		u32 cpu = (own + i) % nr_cpus;

		if (!can_take(cpu, CLASS_WANTED_LOADER) || queue_of_cpu(cpu) != queue_of_cpu(own))
			continue;
		take(cpu, CLASS_WANTED_LOADER);
		if (--nr <= 0)
			return;
	}
}

static void note_launcher(struct task_struct *p, bool asleep)
{
	struct thread_state *thread = thread_find(p);
	struct process_state *process;

	if (!thread || thread->role != ROLE_LAUNCHER || (asleep && thread->depth))
		return;
	process = process_find(p);
	if (!process || process->launcher_tid != (u32)p->pid)
		return;
	process->launcher_asleep = asleep;
	if (asleep)
		want_loaders(p);
}

SEC("struct_ops/zernel_running")
void BPF_PROG(zernel_running, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);
	struct llc *llc;
	u64 now = bpf_ktime_get_ns();

	if (!task)
		return;
	if (task->tier_credit_ns) {
		compat_set_dsq_vtime(p, p->scx.dsq_vtime + task->tier_credit_ns);
		task->tier_credit_ns = 0;
	}
	llc = llc_at(task->llc);
	advance_clock(llc, p->scx.dsq_vtime);
	task->running_since_ns = now;
	cpu_at(scx_bpf_task_cpu(p))->class = task->class;
	cpu_at(scx_bpf_task_cpu(p))->tier = tier_of_task(p);
	note_launcher(p, false);
}

SEC("struct_ops/zernel_stopping")
void BPF_PROG(zernel_stopping, struct task_struct *p, bool runnable)
{
	struct sched_task *task = sched_task_of(p);
	struct sched_cpu *here = this_cpu();

	if (!task || !here)
		return;
	charge(p, task, here, !runnable, bpf_ktime_get_ns());
	cpu_at(scx_bpf_task_cpu(p))->class = CLASS_ORDINARY;
	if (!runnable)
		note_launcher(p, true);
}

SEC("struct_ops.s/zernel_init_task")
s32 BPF_PROG(zernel_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (!bpf_task_storage_get(&sched_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return -12; /* ENOMEM */
	return learn_task_begins(p);
}

SEC("struct_ops/zernel_enable")
void BPF_PROG(zernel_enable, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);

	if (!task)
		return;
	task->llc = llc_of_task(p);
	compat_set_dsq_vtime(p, llc_at(task->llc)->clock);
}

/* A line of the dump the kernel writes when it takes us down. */
#define DUMP(format, args...)                                                                      \
	({                                                                                         \
		static char text[] = format;                                                       \
		unsigned long long values[] = { args };                                            \
		scx_bpf_dump_bstr(text, values, sizeof(values));                                   \
	})

SEC("struct_ops/zernel_dump")
void BPF_PROG(zernel_dump, struct scx_dump_ctx *dump)
{
	u32 i;

	bpf_for(i, 0, nr_llcs) {
		DUMP("cache %llu: clock %llu, next sweep %llu, spinner due %llu", i,
		     llc_at(i)->clock, llc_at(i)->next_sweep_ns, llc_at(i)->spinner_due_ns);
	}
}

SEC("struct_ops/zernel_dump_task")
void BPF_PROG(zernel_dump_task, struct scx_dump_ctx *dump, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);
	struct thread_state *thread = thread_find(p);

	if (task)
		DUMP("class %llu, role %llu, cache %llu, queued since %llu", task->class,
		     thread ? thread->role : 0, task->llc, task->queued_since_ns);
}

SEC("struct_ops.s/zernel_init")
s32 BPF_PROG(zernel_init)
{
	struct spinner_timer *timer;
	u32 queue, i;
	s32 err;

	bpf_for(queue, 0, QUEUE_NR) {
		bpf_for(i, 0, nr_llcs) {
			err = scx_bpf_create_dsq(dsq_of(queue, i), -1);
			if (err)
				return err;
		}
	}
	bpf_for(i, 0, nr_llcs) {
		u32 llc = i;

		timer = bpf_map_lookup_elem(&spinner_timers, &llc);
		if (!timer)
			continue;
		bpf_timer_init(&timer->timer, &spinner_timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&timer->timer, spinner_timer_fired);
	}
	return 0;
}

SEC("struct_ops/zernel_exit")
void BPF_PROG(zernel_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(sched_exit.reason, sizeof(sched_exit.reason), info->reason);
	bpf_probe_read_kernel_str(sched_exit.msg, sizeof(sched_exit.msg), info->msg);
	bpf_probe_read_kernel_str(sched_exit.dump, sizeof(sched_exit.dump), info->dump);
	sched_exit.code = info->exit_code;
	/* The loader reads the rest once it sees a kind. */
	__sync_fetch_and_add(&sched_exit.kind, info->kind);
}

SEC(".struct_ops.link")
struct sched_ext_ops zernel = {
	.select_cpu = (void *)zernel_select_cpu,
	.enqueue = (void *)zernel_enqueue,
	.dispatch = (void *)zernel_dispatch,
	.tick = (void *)zernel_tick,
	.running = (void *)zernel_running,
	.stopping = (void *)zernel_stopping,
	.init_task = (void *)zernel_init_task,
	.enable = (void *)zernel_enable,
	.dump = (void *)zernel_dump,
	.dump_task = (void *)zernel_dump_task,
	.init = (void *)zernel_init,
	.exit = (void *)zernel_exit,
	.timeout_ms = 10000,
	.exit_dump_len = sizeof(((struct sched_exit *)0)->dump),
	.name = "zernel",
};
