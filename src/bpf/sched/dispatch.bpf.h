/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Dispatch order: which waiting task of an LLC runs next on a CPU. */
#include "bpf/sched/spinners.bpf.h"
#include "bpf/sched/limits.bpf.h"

const volatile u64 max_wait_ns = NSEC_PER_SEC;

struct sweep_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LLCS);
	__type(key, u32);
	__type(value, struct sweep_timer);
} sweep_timers SEC(".maps");

/* A task of the idle class has waited too long after this multiple of max_wait_ns. */
#define IDLE_WAITS 3

/*
 * Moves tasks that have waited too long to an overdue queue. They may wait in an LLC whose CPUs may
 * not run them any more, or look elsewhere.
 */
static void sweep_queue(u32 queue, u32 llc, u64 now)
{
	u64 max_wait = queue == QUEUE_IDLE ? IDLE_WAITS * max_wait_ns : max_wait_ns;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(queue, llc), 0) {
		struct sched_task *task = sched_task_of(p);

		if (task && before(task->queued_since_ns + max_wait, now) &&
		    move_overdue(&___it, p))
			count(task->class, DECISION_OVERDUE);
	}
}

static __noinline int sweep_llc(u32 llc, u64 now)
{
	u32 queue;

	bpf_for(queue, 0, QUEUE_NR) {
		if (queue != QUEUE_OVERDUE && may_wait(queue, llc))
			sweep_queue(queue, llc, now);
	}
	return 0;
}

/*
 * The sweep visits all tasks that wait, so it is done by a timer: a dispatch would hold the lock of
 * its run queue, with interrupts off, for all of that time. It also visits the next LLCs up to the
 * first one that has swept itself lately: the CPUs there are idle, offline or taken by tasks of
 * other schedulers.
 */
static int sweep_timer_fired(void *map, u32 *own, struct sweep_timer *timer)
{
	u32 nr_llcs = topology.nr_llcs, llc = *own, i;
	u64 now = bpf_ktime_get_ns();

	bpf_rcu_read_lock();
	sweep_llc(llc, now);
	bpf_for(i, 1, nr_llcs) {
		llc = (*own + i) % nr_llcs;
		if (is_served_lately(llc, now))
			break;
		sweep_llc(llc, now);
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* Called where the kernel allows functions that move tasks: see limit_timer_make(). */
static void make_sweep_timers(u32 nr_llcs)
{
	struct sweep_timer *timer;
	u32 i;

	bpf_for(i, 0, nr_llcs) {
		timer = bpf_map_lookup_elem(&sweep_timers, &i);
		if (!timer)
			continue;
		bpf_timer_init(&timer->timer, &sweep_timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&timer->timer, sweep_timer_fired);
	}
}

static void sweep(u32 llc_id, u64 now)
{
	struct llc *llc = llc_at(llc_id);
	u64 next = llc->next_sweep_ns;
	struct sweep_timer *timer;

	/* If several CPUs get here at the same time, only one CPU starts the timer. */
	if (before(now, next) ||
	    !__sync_bool_compare_and_swap(&llc->next_sweep_ns, next, now + sweep_interval_ns))
		return;
	timer = bpf_map_lookup_elem(&sweep_timers, &llc_id);
	if (timer)
		bpf_timer_start(&timer->timer, 0, 0);
}

/* Dispatches the task of this iterator if it was not promoted at its enqueue and would be now. */
static bool serve_promotable(struct bpf_iter_scx_dsq *it, struct task_struct *p,
			     struct sched_task *task, u32 class)
{
	if (!is_promoted(class) || !group_may_promote(task->group) ||
	    !compat_dsq_move(it, p, local_dsq(), 0))
		return false;
	task->class = class;
	count(class, DECISION_PROMOTED);
	return true;
}

__noinline int serve_loader(u32 llc, u32 cpu, u64 now)
{
	struct sched_cpu *here = this_cpu();
	struct task_struct *p;
	bool found = false;

	if (!here)
		return false;
	/* Not on the stack: the verifier of 6.18 fails when it follows this number. */
	here->nr_looked = 0;
	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_LOADERS, llc), 0) {
		struct sched_task *task = sched_task_of(p);

		if (found || here->nr_looked >= WALK_MAX * JUDGED)
			break;
		here->nr_looked++;
		if (!task || !may_run_on(p, cpu))
			continue;
		here->nr_looked += JUDGED - 1;
		found = serve_promotable(&___it, p, task, classify(p, task, false, now));
	}
	return found;
}

/* Roles are found rarely, and an ordinary queue is long. */
#define ROLES_WALK_MAX 64

/*
 * Dispatches a task that got a role after it was queued as an ordinary one: a loader of a new
 * process would wait there for its turn while its consumer waits. Looks again as long as it finds
 * a loader that works ahead, or a task that is promoted and may not run here, and if it did not see
 * the whole queue.
 */
__noinline int serve_new_role(u32 llc_id, u32 cpu, u64 now)
{
	struct llc *llc = llc_at(llc_id);
	u64 nr_found = new_roles.nr_found;
	struct sched_cpu *here;
	struct task_struct *p;
	bool found = false;

	if (before(now, llc->roles_seen_ns + slice_ns))
		return false;
	here = this_cpu();
	if (!here)
		return false;
	llc->nr_roles_seen = nr_found;
	here->nr_looked = 0;
	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_ORDINARY, llc_id), 0) {
		struct sched_task *task = sched_task_of(p);
		u32 class;

		if (found)
			break;
		if (++here->nr_looked > ROLES_WALK_MAX) {
			llc->nr_roles_seen = nr_found - 1;
			break;
		}
		if (!task || task->is_capped)
			continue;
		class = classify(p, task, false, now);
		if (is_promoted(class) || class == CLASS_LOADER)
			llc->nr_roles_seen = nr_found - 1;
		found = may_run_on(p, cpu) && serve_promotable(&___it, p, task, class);
	}
	if (!found)
		llc->roles_seen_ns = now;
	return found;
}

/* A task that waits as an ordinary one may have got a role. */
static bool may_have_new_role(u32 llc)
{
	return llc_at(llc)->nr_roles_seen != new_roles.nr_found && may_wait(QUEUE_ORDINARY, llc);
}

/* Stores the deadline of the first task; returns false if the queue is empty. */
static bool head_of(u32 queue, u32 llc, u64 *due)
{
	struct task_struct *p;
	bool found = false;

	if (!may_wait(queue, llc))
		return false;
	bpf_for_each(scx_dsq, p, dsq_of(queue, llc), 0) {
		if (!found)
			*due = p->scx.dsq_vtime;
		found = true;
		break;
	}
	return found;
}

__noinline int serve_promoted(u32 llc, u32 cpu, u64 now)
{
	if (spinner_is_due(llc, now) && serve_spinner(llc, cpu, now))
		return true;
	return serve_queue(QUEUE_FIRST, llc) ||
	       (may_wait(QUEUE_LOADERS, llc) && serve_loader(llc, cpu, now)) ||
	       (may_have_new_role(llc) && serve_new_role(llc, cpu, now));
}

/*
 * Loaders that work ahead are ordinary tasks. The queue whose first task has the
 * earlier deadline is served first.
 */
__noinline int serve_others(u32 llc)
{
	u64 ordinary_due = 0, loader_due = 0;
	bool loaders_first =
		head_of(QUEUE_LOADERS, llc, &loader_due) &&
		(!head_of(QUEUE_ORDINARY, llc, &ordinary_due) || before(loader_due, ordinary_due));

	if (loaders_first && serve_queue(QUEUE_LOADERS, llc))
		return true;
	return serve_queue(QUEUE_ORDINARY, llc) ||
	       (!loaders_first && serve_queue(QUEUE_LOADERS, llc));
}

/* Writers set the flag after enqueueing; readers clear it before dequeueing. */
static bool serve_overdue(u32 llc)
{
	u64 dsq = dsq_of(QUEUE_OVERDUE, llc);
	bool found;

	if (!llc_at(llc)->has_overdue)
		return false;
	__sync_lock_test_and_set(&llc_at(llc)->has_overdue, false);
	found = compat_dsq_move_to_local(dsq);
	if (found || scx_bpf_dsq_nr_queued(dsq) > 0)
		llc_at(llc)->has_overdue = true;
	return found;
}

/* Whether a promoted task wants the CPU: the one that runs on it, or one that waits. */
static bool is_for_promoted(const struct sched_task *prev, u32 llc)
{
	return (prev && is_promoted(prev->class)) || may_wait(QUEUE_FIRST, llc);
}

/*
 * The overdue queue comes first in every other dispatch that is for ordinary tasks, and in
 * every 16th one that is for promoted tasks. If it came first more often, it would use up
 * all that is reserved for ordinary tasks of a machine where most tasks wait for long, and
 * none of them would run in order. Each CPU has its own count: with a shared count, one CPU
 * could see only even numbers, and a task that is bound to this CPU would starve.
 */
static bool is_overdue_turn(struct sched_cpu *here, bool for_ordinary)
{
	u32 mask = for_ordinary ? 1 : 15;

	return (here->nr_turns++ & mask) == mask;
}

/* Dispatches one waiting task of an LLC to this CPU. */
__noinline int serve(u32 llc, u32 cpu, bool others_first, u64 now)
{
	if (serve_queue(QUEUE_SYSTEM, llc))
		return true;
	if (others_first ? serve_others(llc) || serve_promoted(llc, cpu, now)
			 : serve_promoted(llc, cpu, now) || serve_others(llc))
		return true;
	return serve_overdue(llc) || serve_queue(QUEUE_SPINNERS, llc);
}

/* The rank of the first task in QUEUE_FIRST; RANK_IDLE if the queue is empty. */
static u32 rank_waiting(u32 llc)
{
	struct sched_task *task = NULL;
	struct task_struct *p;

	if (!may_wait(QUEUE_FIRST, llc))
		return RANK_IDLE;
	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_FIRST, llc), 0) {
		task = sched_task_of(p);
		break;
	}
	return task ? rule_of(task->class)->rank : RANK_IDLE;
}

/*
 * A launcher yielded and keeps its CPU. No context switch shows this, and a launcher that polls
 * would never be known as one.
 */
static void note_yield(struct task_struct *p, u64 now)
{
	struct process_state *process;
	struct thread_state *thread;

	if (!ml_seen || compat_syscall(p) != SYSCALL_SCHED_YIELD)
		return;
	thread = thread_find(p);
	process = process_find(p);
	if (!thread || !process || thread->role != ROLE_LAUNCHER || thread->depth)
		return;
	role_turn(&thread->evidence, true, true);
	consumer_polls(thread, process, now);
}

/*
 * A promoted task keeps its CPU unless a spinner is due or a task of at least its
 * rank waits.
 */
static bool goes_on(struct task_struct *prev, struct sched_task *task, u32 llc, u64 now)
{
	set_class(task, classify(prev, task, false, now));
	if (!is_promoted(task->class) || spinner_is_due(llc, now) ||
	    rank_waiting(llc) >= rule_of(task->class)->rank)
		return false;
	note_yield(prev, now);
	compat_set_slice(prev, rule_of(task->class)->slice_ns);
	count(task->class, DECISION_SLICE_EXTENDED);
	return true;
}

/*
 * The kernel calls ops.dispatch before it enqueues the previous task again, so a
 * heavy task would get every other slice at most. An ordinary task that has used
 * up its slice and is due before all waiting tasks keeps its CPU. A task that
 * yielded or was preempted earlier does not.
 */
static bool is_due_again(struct task_struct *prev, struct sched_task *task, u32 llc, u64 now)
{
	u64 due;

	if (task->class != CLASS_ORDINARY || task->llc != llc ||
	    before(now, task->slice_since_ns + slice_ns / 2))
		return false;
	if (may_wait(QUEUE_FIRST, llc) || may_wait(QUEUE_LOADERS, llc) ||
	    spinner_is_due(llc, now) || !head_of(QUEUE_ORDINARY, llc, &due))
		return false;
	vtime_update(task, llc);
	if (!before(key_of(task), due))
		return false;
	advance_clock(llc_at(llc), task->vtime);
	task->slice_since_ns = now;
	compat_set_slice(prev, slice_ns);
	count(task->class, DECISION_SLICE_EXTENDED);
	return true;
}

/* The state of the previous task if it wants to go on; a task that goes to sleep does not. */
static struct sched_task *waiting_prev(struct task_struct *prev)
{
	if (!prev || !(prev->scx.flags & bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED)))
		return NULL;
	return sched_task_of(prev);
}

/* Whether the previous task keeps the CPU although other tasks may wait. */
static bool keeps_cpu(struct task_struct *prev, struct sched_task *task, u32 cpu, u32 llc,
		      bool others_first, u64 now)
{
	bool keeps;

	if (held_back_by(prev, task))
		return false;
	keeps = (!others_first && goes_on(prev, task, llc, now)) ||
		is_due_again(prev, task, llc, now);
	/*
	 * A CPU may be marked for a task that preempted it and then ran
	 * elsewhere. Record the class of the task that is really here.
	 */
	take_over(cpu, task);
	return keeps;
}

/*
 * No other task wants the CPU. The task gets a slice of this scheduler: by itself, the
 * kernel would give it 20 ms, and a task that wakes up later would wait for so long.
 * If it is throttled, the CPU goes idle. The task may still get a queue that this CPU
 * serves, because its group was released meanwhile or because the kernel decided so.
 * Therefore the CPU looks again.
 */
static void goes_on_alone(struct task_struct *prev, struct sched_task *task, u32 cpu, u64 now)
{
	limits_check(task->group, now);
	if (held_back_by(prev, task)) {
		scx_bpf_kick_cpu(cpu, 0);
		return;
	}
	note_yield(prev, now);
	vtime_update(task, task->llc);
	advance_clock(llc_at(task->llc), task->vtime);
	task->slice_since_ns = now;
	compat_set_slice(prev, rule_of(task->class)->slice_ns);
}
