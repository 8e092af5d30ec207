// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The `zernel` scheduler.
 *
 * It decides which task runs next and on which CPU. A task that wakes up while a
 * CPU is idle is dispatched to the local DSQ of that CPU. Every other task waits
 * in a queue (a DSQ) of a last-level cache (LLC), ordered by virtual time: the
 * CPU time that the task received, divided by its weight. A CPU dispatches from
 * the queues of its own LLC first, and from those of some other LLCs when its own
 * are empty. With the lock of a run queue held, nothing looks at all CPUs, LLCs
 * or waiting tasks.
 *
 * The class of a task (core/policy.h) depends on what Zernel knows about its ML
 * process. The class is determined again at each enqueue. A feeder goes first and
 * preempts a CPU if necessary, and so does a loader whose consumer waits for
 * data. A loader that works ahead is an ordinary task, but it waits in a queue of
 * its own, where it can be promoted when its consumer starts to wait. A spinning
 * sync gives up its CPU until the GPU should nearly be done. A collective helper
 * that polls for other ranks polls at intervals instead of all the time. The CPU
 * time of promoted tasks is a debt to the ordinary tasks, which keeps a share of
 * each CPU reserved for them.
 *
 * It trusts user space for the topology (which CPU belongs to which LLC), and the
 * kernel for weights and affinity. Any CPU can dispatch from any queue, so a
 * wrong topology costs locality and never causes a stall. A task is enqueued on
 * an LLC that one of its allowed CPUs serves first. Otherwise it could wait
 * forever on a busy machine for a CPU of another LLC.
 *
 * Fairness by weight alone can starve a task: on a busy machine the lightest
 * tasks are due so late that the watchdog of sched_ext would eject the scheduler.
 * Therefore each queue is swept at intervals. A task that has waited too long
 * moves to the overdue queue of the LLC, which is FIFO and comes first in every
 * other dispatch.
 *
 * When a CPU goes offline, the kernel no longer calls ops.dispatch for it. The
 * tasks of that CPU move to its local DSQ: the CPU runs each task once more, and the
 * kernel then migrates it. Other tasks for which its LLC has no CPU any more move to
 * the overdue queue of another LLC. A CPU that comes back online is
 * served as before. A CPU that was offline when user space read the topology
 * needs a restart of the scheduler, and the exit code requests it. (A scheduler
 * without hotplug callbacks is restarted at every hotplug event. But the exit
 * takes time, and meanwhile new tasks belong to EEVDF and run before all tasks of
 * this scheduler. On a busy machine the exit never completed.)
 *
 * All times are bpf_ktime_get_ns(), as in the signal programs: scx_bpf_now() is
 * the clock of the run queue and can differ from that by milliseconds and more.
 *
 * Accepted races: the clock of an LLC advances without a lock, so it may lag by
 * one slice. The virtual time of a task that is charged while it migrates between
 * LLCs is off by the same amount.
 */
#include "bpf/sched/balance.bpf.h"
#include "bpf/sched/place.bpf.h"
#include "bpf/sched/dispatch.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct sched_exit sched_exit;

/* A task of the idle class was seen. Without one, there is nothing to search for. */
static bool idle_class_seen;

/*
 * A wakeup is attributed to the current task only while that task is inside a
 * system call, because an interrupt handler wakes tasks in the context of the
 * task that it interrupted. The waker of a thread may update the averages of that
 * thread while the thread wakes another one. One of the two updates may then be
 * lost.
 */
static void learn_waking(struct task_struct *p, struct sched_task *task, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct sched_task *waking;

	if (!task->learner.sleeps_since_ns)
		return;
	learn_woken(&task->learner, now);
	if (waker == p || compat_syscall(waker) < 0)
		return;
	waking = sched_task_of(waker);
	if (waking)
		learn_wakes(&waking->learner, &task->learner, now);
}

SEC("struct_ops/zernel_select_cpu")
s32 BPF_PROG(zernel_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct sched_task *task = sched_task_of(p);
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, cpu_near_gpu(p, prev_cpu), wake_flags, &is_idle);

	if (!is_idle)
		return prev_cpu;
	if (!task)
		return cpu;
	task->woken = true;
	if (held_back_by(p, task))
		return cpu;
	task->queued_since_ns = bpf_ktime_get_ns();
	task_wakes(p, task);
	learn_waking(p, task, task->queued_since_ns);
	task->class = classify(p, task, true, task->queued_since_ns);
	task->is_capped = false;
	count(task->class, DECISION_IDLE_CPU);
	compat_dsq_insert(p, local_dsq(), rule_of(task->class)->slice_ns, 0);
	return cpu;
}

/* Whether this program interrupted a task there, or runs in one: the CPU is not idle. */
static bool is_here_and_busy(s32 cpu)
{
	return (u32)cpu == bpf_get_smp_processor_id() && bpf_get_current_task_btf()->pid;
}

/*
 * A CPU may have become idle since select_cpu. The kernel also skips select_cpu
 * for some tasks, such as tasks that are bound to one CPU. If select_cpu has just
 * searched for an idle CPU for an ordinary task, only the CPU of the task is
 * looked at again: if it is busy, the task waits one slice at most, and if it is
 * idle, no CPU of its cache might look. Not static: see may_run_on().
 */
__noinline s32 idle_cpu_for(struct task_struct *p __arg_trusted, bool was_looked_for)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if ((is_bound(p) || was_looked_for) && may_run_on(p, cpu)) {
		if (is_here_and_busy(cpu))
			return -1;
		return scx_bpf_test_and_clear_cpu_idle(cpu) && !cpu_at(cpu)->is_offline ? cpu : -1;
	}
	return was_looked_for ? -1 : idle_cpu_in(p->cpus_ptr);
}

/*
 * Inserts the task directly into the local DSQ of the CPU that it preempts. In a
 * shared queue another task may be due first and would get that CPU, and a CPU of
 * another LLC would serve its own queues first.
 */
static void insert_to_preempt(struct task_struct *p, s32 cpu, u64 slice, u64 enq_flags)
{
	compat_dsq_insert(p, dsq_of_cpu(cpu), slice,
			  enq_flags | bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_PREEMPT));
}

/* A task that wakes up and had less than its share does not wait for a task of the lowest tier. */
static bool take_by_tier(struct task_struct *p, struct sched_task *task, u64 enq_flags)
{
	s32 cpu;

	if (!tier_rule_of(tier_of_task(task))->takes_batch)
		return false;
	cpu = victim_of(p, VICTIMS_BATCH, task->rate);
	if (cpu < 0)
		return false;
	count(CLASS_ORDINARY, DECISION_PREEMPTED);
	insert_to_preempt(p, cpu, rule_of(CLASS_ORDINARY)->slice_ns, enq_flags);
	return true;
}

/*
 * A task of a higher rank preempts. A group that has used up its promotion may still
 * preempt its own tasks, and any task preempts tasks of the idle class.
 */
static s32 cpu_for(struct task_struct *p, const struct sched_task *task, u32 wanted_class)
{
	s32 cpu;

	if (!is_promoted(wanted_class)) {
		cpu = idle_class_seen ? victim_of(p, VICTIMS_IDLE, 0) : -1;
		if (cpu >= 0)
			mark_taken(cpu, wanted_class);
		return cpu;
	}
	if (!rule_of(wanted_class)->preempts || !rule_on(policy.rules_off, RULE_PREEMPT))
		return -1;
	return cpu_to_take(p, wanted_class, task->is_capped ? task->group : ANY_GROUP);
}

/* The task waits until the limit of a cgroup allows it to run. */
static bool is_throttled(struct task_struct *p, struct sched_task *task, u64 enq_flags)
{
	u32 slot = held_back_by(p, task);

	if (!slot)
		return false;
	count(CLASS_ORDINARY, DECISION_THROTTLED);
	limit_timer_need(slot, task->queued_since_ns);
	compat_dsq_insert(p, throttled_dsq(slot), slice_ns, enq_flags);
	return true;
}

/* The deadline of a task, less the credits of its class and tier. */
static u64 place_in_queue(const struct sched_task *task)
{
	u64 key = key_of(task) - rule_of(task->class)->credit_ns;

	/* First in its own group: without the slice that the others must wait for. */
	if (task->is_capped)
		key -= virtual_ns(task->rate, slice_ns);
	if (task->class == CLASS_ORDINARY)
		key -= tier_rule_of(tier_of_task(task))->credit_ns;
	return key;
}

SEC("struct_ops/zernel_enqueue")
void BPF_PROG(zernel_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool woken = enq_flags & bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_WAKEUP);
	const struct cpumask *allowed = p->cpus_ptr;
	struct sched_task *task = sched_task_of(p);
	const struct class_rule *rule;
	u64 now = bpf_ktime_get_ns(), key;
	u32 llc, class;
	s32 cpu;

	/* Per-CPU kernel threads never wait behind user tasks. */
	if (!task || ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)) {
		insert_to_preempt(p, scx_bpf_task_cpu(p), slice_ns, enq_flags);
		return;
	}
	queue_left(task);
	task_wakes(p, task);
	task->queued_since_ns = now;
	task->woken = woken;
	if (woken) {
		groups_charge(task, 0);
		learn_waking(p, task, now);
	}
	if (is_throttled(p, task, enq_flags))
		return;
	class = classify(p, task, woken, now);
	set_class(task, class);
	cpu = idle_cpu_for(p, woken && task->class == CLASS_ORDINARY);
	llc = llc_at_idle(p, allowed, cpu);
	vtime_update(task, llc);
	if (task->is_capped)
		count(class, DECISION_CAPPED);
	rule = rule_of(task->class);
	if (cpu < 0 && woken && class == CLASS_ORDINARY &&
	    before(task->vtime, llc_at(llc)->clock) && take_by_tier(p, task, enq_flags))
		return;

	count(task->class, DECISION_QUEUED);
	if (cpu < 0 && class != CLASS_IDLE) {
		s32 victim = cpu_for(p, task, class);

		if (victim >= 0) {
			insert_to_preempt(p, victim, rule->slice_ns, enq_flags);
			return;
		}
	}
	if (class == CLASS_IDLE)
		idle_class_seen = true;
	if (cpu < 0 && topology.nr_llcs > 1 &&
	    (task->class == CLASS_ORDINARY || task->class == CLASS_LOADER)) {
		cpu = balanced_cpu(p, woken, now);
		if (cpu >= 0) {
			llc = queue_of_cpu(cpu);
			vtime_update(task, llc);
		}
	}
	key = place_in_queue(task);
	queue_entered(task, rule->queue, llc);
	if (task->class == CLASS_SPINNER)
		key = spinner_queued(p, task, llc, now);
	compat_dsq_insert_vtime(p, dsq_of(rule->queue, llc), rule->slice_ns, key, enq_flags);
	if (cpu >= 0)
		kick_idle(cpu);
}

SEC("struct_ops/zernel_dispatch")
void BPF_PROG(zernel_dispatch, s32 cpu, struct task_struct *prev)
{
	struct sched_task *prev_task = waiting_prev(prev);
	struct sched_cpu *here = this_cpu();
	u32 own = queue_of_cpu(cpu), nr_llcs = topology.nr_llcs, nr, random = 0, i;
	u64 now = bpf_ktime_get_ns();
	bool others_first;

	if (!here)
		return;
	/*
	 * A task that keeps its CPU from slice to slice never stops, so ops.stopping is not
	 * called. Its time counts before it is decided whether it goes on.
	 */
	if (prev_task)
		charge(prev, prev_task, here, false, now);
	others_first = cpu_at(cpu)->debt_ns > DEBT_LIMIT_NS;
	sweep(own, now);
	if (serve_queue(QUEUE_SYSTEM, own))
		return;
	if (is_overdue_turn(here, others_first || !is_for_promoted(prev_task, own)) &&
	    serve_overdue(own))
		return;
	if (prev_task && keeps_cpu(prev, prev_task, cpu, own, others_first, now))
		return;
	if (serve(own, cpu, others_first, now))
		return;
	nr = caches_nr(nr_llcs);
	if (nr < nr_llcs)
		random = bpf_get_prandom_u32();
	bpf_for(i, 1, nr) {
		if (serve(cache_at(own, i, nr_llcs, random), cpu, others_first, now))
			return;
	}
	if (idle_class_seen && (!prev_task || prev_task->class == CLASS_IDLE)) {
		bpf_for(i, 0, nr) {
			if (serve_queue(QUEUE_IDLE, cache_at(own, i, nr_llcs, random)))
				return;
		}
	}
	weight_pass_on(llc_at(own));
	if (prev_task)
		goes_on_alone(prev, prev_task, cpu, now);
}

/*
 * Ends a slice early: for a task of the system that waits, for a limit, for any task
 * while a task of the idle class runs, and for a sync that spins.
 */
static bool ends_at_tick(struct task_struct *p, struct sched_task *task, u64 now)
{
	u32 llc = queue_of_cpu(scx_bpf_task_cpu(p));

	if (held_back_by(p, task) || (may_wait(QUEUE_SYSTEM, llc) && !is_promoted(task->class)))
		return true;
	if (task->class == CLASS_IDLE)
		return may_wait(QUEUE_ORDINARY, llc) || may_wait(QUEUE_FIRST, llc);
	return task->class == CLASS_FEEDER && classify_ml(p, false, now) == CLASS_SPINNER;
}

SEC("struct_ops/zernel_tick")
void BPF_PROG(zernel_tick, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);
	struct sched_cpu *here = this_cpu();
	u64 now = bpf_ktime_get_ns();

	if (!task || !here)
		return;
	if (nr_limits) {
		charge(p, task, here, false, now);
		limits_check(task->group, now);
	}
	if (ends_at_tick(p, task, now))
		compat_set_slice(p, 0);
}

/*
 * Whether no waiting task has an earlier deadline. A promoted task and a task that waited
 * for too long run before their turn. If they advanced the clock, all tasks that wake up
 * later would queue behind the tasks that already wait.
 */
static bool is_in_order(const struct sched_task *task, u64 now)
{
	return !is_promoted(task->class) && before(now, task->queued_since_ns + max_wait_ns);
}

SEC("struct_ops/zernel_running")
void BPF_PROG(zernel_running, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);
	u64 now = bpf_ktime_get_ns();
	u32 cpu = scx_bpf_task_cpu(p);
	bool was_queued;

	if (!task)
		return;
	was_queued = task->queued_since_ns;
	queue_left(task);
	task_wakes(p, task);
	if (is_in_order(task, now))
		advance_clock(llc_at(task->llc), task->vtime);
	/* A CPU of another LLC may have taken it: its time counts where it runs. */
	if (task->llc != queue_of_cpu(cpu))
		vtime_update(task, queue_of_cpu(cpu));
	task->running_since_ns = now;
	task->turn_since_ns = now;
	task->slice_since_ns = now;
	task->polls = false;
	if (was_queued) {
		count_wait(task->class, now - task->queued_since_ns);
		task->queued_since_ns = 0;
	}
	take_over(cpu, task);
	cpu_at(cpu)->in_turn = task->in_turn;
	task->in_turn = false;
	note_launcher(p, false);
	/*
	 * It was queued before its group was throttled, or waited for long. A task that was
	 * not queued here runs until the next tick: the kernel gives the CPU to a task that
	 * exits or must not migrate without asking, so a kick would repeat forever.
	 */
	if (was_queued && held_back_by(p, task))
		scx_bpf_kick_cpu(cpu, bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT));
	task->woken = false;
}

SEC("struct_ops/zernel_stopping")
void BPF_PROG(zernel_stopping, struct task_struct *p, bool runnable)
{
	struct sched_task *task = sched_task_of(p);
	struct cpu_state *cpu = cpu_at(scx_bpf_task_cpu(p));
	struct sched_cpu *here = this_cpu();
	u64 now = bpf_ktime_get_ns();

	if (!task || !here)
		return;
	charge(p, task, here, !runnable, now);
	limits_check(task->group, now);
	task->polls = runnable && before(now, task->turn_since_ns + POLL_NS);
	cpu->class = CLASS_ORDINARY;
	cpu->group = ANY_GROUP; /* or a capped task could preempt the turn that it just ended */
	cpu->in_turn = false;
	if (runnable)
		return;
	task_sleeps(task);
	note_launcher(p, true);
	if (ml_seen)
		pollers_look(p, task->group, now);
}

/* After exec the task is a different program, so learning starts again. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(learn_exec, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);

	if (!task)
		return 0;
	task->tier = learn_task_begins(p, &task->learner);
	cpu_at(bpf_get_smp_processor_id())->tier = tier_of_task(task);
	return 0;
}

SEC("struct_ops.s/zernel_init_task")
s32 BPF_PROG(zernel_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct sched_task *task =
		bpf_task_storage_get(&sched_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!task)
		return -12; /* ENOMEM */
	task->waits_in = WAITS_NOWHERE;
	task->rate = RATE_ONE;
	task->counted_weight = 0;
	task->group = GROUP_ROOT;
	if (bpf_core_field_exists(args->cgroup) && args->cgroup)
		task->group = slot_of_cgroup(args->cgroup);
	task->tier = learn_task_begins(p, &task->learner);
	return 0;
}

/* zerneld, or a program that it started: a job is not known before they looked at it. */
static bool is_zernel(struct task_struct *p)
{
	struct task_struct *parent = p->real_parent, *starter = parent ? parent->real_parent : NULL;
	u32 tgid = policy.daemon_tgid;

	/* 1: zerneld is the first process of a PID namespace, and its number here is not known. */
	if (tgid <= 1)
		return false;
	return (u32)p->tgid == tgid || (parent && (u32)parent->tgid == tgid) ||
	       (starter && (u32)starter->tgid == tgid);
}

SEC("struct_ops/zernel_enable")
void BPF_PROG(zernel_enable, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);

	if (!task)
		return;
	task->llc = llc_of_task(p, p->cpus_ptr);
	task->vtime = llc_at(task->llc)->clock;
	task->is_zernel = is_zernel(p);
	/* It may have waited in a queue at an earlier detach. */
	task->queued_since_ns = 0;
	task->woken = task->polls = task->in_turn = false;
}

/* The task moves to another scheduling class. */
SEC("struct_ops/zernel_disable")
void BPF_PROG(zernel_disable, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);

	if (!task)
		return;
	queue_left(task);
	task_sleeps(task);
}

/* A cgroup whose limit cannot be kept must not run without it. */
static void give_up_limit(u64 cgroup)
{
	static char text[] = "no room for cpu.max of cgroup %llu";
	unsigned long long values[] = { cgroup };

	scx_bpf_exit_bstr(0, text, values, sizeof(values));
}

SEC("struct_ops.s/zernel_cgroup_init")
s32 BPF_PROG(zernel_cgroup_init, struct cgroup *cgroup, struct scx_cgroup_init_args *args)
{
	u32 slot = group_create(cgroup, args->weight);
	s32 err;

	if (!bpf_core_field_exists(args->bw_quota_us))
		return 0;
	if (!owns_slot(cgroup, slot)) {
		if (cgroup->level && args->bw_quota_us < UNLIMITED_US)
			give_up_limit(cgroup_id(cgroup));
		return 0;
	}
	err = scx_bpf_create_dsq(throttled_dsq(slot), -1);
	if (err && err != -17) /* EEXIST: the slot was in use before */
		return err;
	limit_timer_make(slot);
	limit_set(slot, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

SEC("struct_ops.s/zernel_cgroup_exit")
void BPF_PROG(zernel_cgroup_exit, struct cgroup *cgroup)
{
	group_remove(cgroup);
}

SEC("struct_ops/zernel_cgroup_set_weight")
void BPF_PROG(zernel_cgroup_set_weight, struct cgroup *cgroup, u32 weight)
{
	group_weighs(cgroup, weight);
}

SEC("struct_ops/zernel_cgroup_set_bandwidth")
void BPF_PROG(zernel_cgroup_set_bandwidth, struct cgroup *cgroup, u64 period_us, u64 quota_us,
	      u64 burst_us)
{
	u32 slot = slot_of_cgroup(cgroup);

	if (!owns_slot(cgroup, slot)) {
		if (quota_us < UNLIMITED_US)
			give_up_limit(cgroup_id(cgroup));
		return;
	}
	limit_set(slot, period_us, quota_us, burst_us);
	limit_restart(slot);
}

SEC("struct_ops/zernel_cgroup_move")
void BPF_PROG(zernel_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct sched_task *task = sched_task_of(p);

	if (task)
		task_joins_group(p, task, to);
}

/* Writes one line of the dump that the kernel makes when it ejects the scheduler. */
#define DUMP(format, args...)                                                                      \
	({                                                                                         \
		static char text[] = format;                                                       \
		unsigned long long values[] = { args };                                            \
		scx_bpf_dump_bstr(text, values, sizeof(values));                                   \
	})

SEC("struct_ops/zernel_dump")
void BPF_PROG(zernel_dump, struct scx_dump_ctx *dump)
{
	u32 nr_llcs = topology.nr_llcs, i;

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

/* Whether a CPU of the cache may run the task. */
__noinline int is_served(struct task_struct *p __arg_trusted, u32 llc)
{
	u32 size = llc_size(llc), first = llc_place(llc), i;

	bpf_for(i, 0, size) {
		u32 cpu = cpu_in_place(first + i);

		if (!cpu_at(cpu)->is_offline && may_run_on(p, cpu))
			return true;
	}
	return false;
}

static void hand_over(u32 queue, s32 cpu)
{
	u32 llc = queue_of_cpu(cpu);
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(queue, llc), 0) {
		if (scx_bpf_task_cpu(p) == cpu)
			compat_dsq_move(&___it, p, dsq_of_cpu(cpu), 0);
		else if (!is_served(p, llc))
			move_overdue(&___it, p);
	}
}

SEC("struct_ops/zernel_cpu_offline")
void BPF_PROG(zernel_cpu_offline, s32 cpu)
{
	u32 queue;

	cpu_at(cpu)->is_offline = true;
	bpf_for(queue, 0, QUEUE_NR) {
		hand_over(queue, cpu);
	}
}

SEC("struct_ops/zernel_cpu_online")
void BPF_PROG(zernel_cpu_online, s32 cpu)
{
	static char text[] = "CPU %llu was offline when the scheduler was attached";
	unsigned long long values[] = { cpu };

	cpu_at(cpu)->is_offline = false;
	if (llc_of_cpu(cpu) == LLC_UNKNOWN)
		scx_bpf_exit_bstr(
			bpf_core_enum_value(enum scx_exit_code, SCX_ECODE_ACT_RESTART) |
				bpf_core_enum_value(enum scx_exit_code, SCX_ECODE_RSN_HOTPLUG),
			text, values, sizeof(values));
}

SEC("struct_ops.s/zernel_init")
s32 BPF_PROG(zernel_init)
{
	u32 nr_llcs = topology.nr_llcs, nr_cpus = topology.nr_cpus, queue, i;
	s32 err;

	bpf_for(queue, 0, QUEUE_NR) {
		bpf_for(i, 0, nr_llcs) {
			err = scx_bpf_create_dsq(dsq_of(queue, i), -1);
			if (err)
				return err;
		}
	}
	forget_members();
	make_spinner_timers(nr_llcs, nr_cpus);
	make_sweep_timers(nr_llcs);
	bpf_for(i, 0, nr_llcs) {
		*llc_at(i) = (struct llc){ .clock = llc_at(i)->clock };
	}
	/* Clear the state that an earlier attach left behind. */
	bpf_for(i, 0, nr_cpus) {
		*cpu_at(i) = (struct cpu_state){
			.victim_bit = make_victim_bit(i),
			.is_offline = llc_of_cpu(i) == LLC_UNKNOWN,
		};
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
	/* Set the kind last: user space reads the other members when it sees a kind. */
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
	.cpu_online = (void *)zernel_cpu_online,
	.cpu_offline = (void *)zernel_cpu_offline,
	.init_task = (void *)zernel_init_task,
	.enable = (void *)zernel_enable,
	.disable = (void *)zernel_disable,
	.cgroup_init = (void *)zernel_cgroup_init,
	.cgroup_exit = (void *)zernel_cgroup_exit,
	.cgroup_set_weight = (void *)zernel_cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)zernel_cgroup_set_bandwidth,
	.cgroup_move = (void *)zernel_cgroup_move,
	.dump = (void *)zernel_dump,
	.dump_task = (void *)zernel_dump_task,
	.init = (void *)zernel_init,
	.exit = (void *)zernel_exit,
	.flags = SCX_OPS_ENQ_LAST,
	.timeout_ms = 10000,
	.exit_dump_len = sizeof(((struct sched_exit *)0)->dump),
	.name = "zernel",
};
