/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * cpu.max: a group whose budget is used up is throttled until a timer refills the
 * budget. Its tasks wait in a queue (a DSQ) of the group, so no dispatch sees them.
 * Time is charged when a task stops and at each tick, so a group can exceed its budget
 * by one tick per CPU, and in the kernel by GRACE_NS more. The next period starts with that debt.
 *
 * A task that was queued before its group was throttled gives up its CPU as soon as it
 * gets one. A throttled task that waits for long gets a CPU in the same way: otherwise
 * the watchdog of sched_ext would eject the scheduler.
 */
#include "bpf/sched/overdue.bpf.h"
#include "bpf/sched/weights.bpf.h"

#define THROTTLED_MAX_NS   (4 * NSEC_PER_SEC)
#define GRACE_NS	   (20 * NSEC_PER_MSEC)
#define PERIOD_MIN_NS	   NSEC_PER_MSEC
#define UNLIMITED_US	   (1ULL << 50) /* the kernel passes ~0 for `max` */
/* After a limit was removed, the timer looks so often for tasks that still wait. */
#define UNLIMITED_CHECK_NS (100 * NSEC_PER_MSEC)

struct limit_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUP_MAX);
	__type(key, u32);
	__type(value, struct limit_timer);
} limit_timers SEC(".maps");

static u64 throttled_dsq(u32 slot)
{
	return QUEUE_SLOTS * MAX_LLCS + slot;
}

/*
 * The slot of a group that holds a task back; GROUP_ROOT if there is none. A task in the
 * kernel may hold a lock, such as that of all cgroups, and everyone who needs the lock
 * would wait for the next period. So it goes on for a while. Not static: see may_run_on().
 */
__noinline u32 throttled_group(u32 slot, bool in_kernel)
{
	struct group *group = group_at(slot);
	u32 depth = group->depth, i;

	bpf_for(i, 1, GROUP_DEPTH_MAX + 1) {
		u32 at;

		if (i > depth)
			break;
		at = slot_at(group, i);
		if (group_at(at)->is_throttled &&
		    !(in_kernel && group_at(at)->budget_ns >= group_at(at)->least_ns))
			return at;
	}
	return GROUP_ROOT;
}

static u32 held_back_by(struct task_struct *p, const struct sched_task *task)
{
	return nr_limits ? throttled_group(task->group, task->woken || compat_syscall(p) >= 0)
			 : GROUP_ROOT;
}

/* Moves a task from the queue of a throttled group to where it waits now. */
static bool limit_release(struct bpf_iter_scx_dsq *it, struct task_struct *p)
{
	const struct cpumask *allowed = p->cpus_ptr;
	struct sched_task *task = sched_task_of(p);
	u32 other, llc;
	bool released;
	s32 cpu;
	u64 key, dsq;

	if (!task)
		return false;
	other = throttled_group(task->group, false);
	if (other)
		return compat_dsq_move(it, p, throttled_dsq(other), 0);
	cpu = idle_cpu_in(allowed);
	llc = llc_at_idle(p, allowed, cpu);
	groups_charge(task, 0);
	vtime_update(task, llc);
	key = key_of(task);
	set_class(task, CLASS_ORDINARY);
	dsq = dsq_of(QUEUE_ORDINARY, llc);
	/*
	 * It is counted before it is in the queue. If the move fails, or the task is counted in
	 * another queue by now, another CPU has queued the task anew or took it off the queues.
	 */
	__sync_fetch_and_add(nr_waiting(QUEUE_ORDINARY, llc), 1);
	released = compat_dsq_move_vtime(it, p, dsq, key);
	if (!released || !__sync_bool_compare_and_swap(&task->waits_in, WAITS_NOWHERE, dsq))
		__sync_fetch_and_add(nr_waiting(QUEUE_ORDINARY, llc), -1);
	kick_for(allowed, cpu);
	return released;
}

/* Gives tasks that have waited for long a CPU, which they return at once. */
static void limit_touch(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 now)
{
	struct sched_task *task = sched_task_of(p);

	if (task && !before(now, task->queued_since_ns + THROTTLED_MAX_NS))
		move_overdue(it, p);
}

static u64 limit_refill_now(struct group *group, u64 now)
{
	u64 period_ns = group->limit.period_ns, periods;
	s64 budget_ns = group->budget_ns, added_ns;

	if (period_ns < PERIOD_MIN_NS)
		period_ns = PERIOD_MIN_NS;
	periods = (now - group->refilled_ns) / period_ns;
	group->refilled_ns += periods * period_ns;
	added_ns = limit_refill(&group->limit, budget_ns, periods) - budget_ns;
	__sync_fetch_and_add(&group->budget_ns, added_ns);
	/* A refill repays the debt and is not for tasks that go on. */
	group->least_ns += added_ns;
	if (group->is_throttled && group->budget_ns > 0)
		group->is_throttled = false;
	return group->refilled_ns + period_ns - now;
}

static int limit_timer_fired(void *map, u32 *key, struct limit_timer *timer)
{
	u32 slot = *key;
	struct group *group = group_at(slot);
	u64 now = bpf_ktime_get_ns(), next_ns = UNLIMITED_CHECK_NS;
	bool is_throttled = false, is_full = true;
	struct task_struct *p;

	if (group->limit.quota_ns) {
		next_ns = limit_refill_now(group, now);
		is_throttled = group->is_throttled;
		is_full = group->budget_ns >= (s64)(group->limit.quota_ns + group->limit.burst_ns);
	}
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, throttled_dsq(slot), 0) {
		if (is_throttled)
			limit_touch(&___it, p, now);
		else
			limit_release(&___it, p);
	}
	bpf_rcu_read_unlock();
	/*
	 * A task may enter the queue just after the group was released, and is released when
	 * the timer fires again. A task is a member of its group before it looks at the limit.
	 */
	if (is_full && !is_throttled && !group->nr_members)
		group->is_timer_on = false;
	else
		bpf_timer_start(&timer->timer, next_ns, 0);
	return 0;
}

/*
 * Called where the kernel allows functions that move tasks between queues (ops.cgroup_init):
 * since 7.1, what a callback may call depends on the program that sets it.
 */
static void limit_timer_make(u32 slot)
{
	struct limit_timer *timer = bpf_map_lookup_elem(&limit_timers, &slot);

	if (!timer)
		return;
	bpf_timer_init(&timer->timer, &limit_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&timer->timer, limit_timer_fired);
}

static void limit_timer_start(u32 slot, u64 delay_ns)
{
	struct limit_timer *timer = bpf_map_lookup_elem(&limit_timers, &slot);

	if (timer)
		bpf_timer_start(&timer->timer, delay_ns, 0);
}

/* The timer of a group runs while its budget is not full or it has runnable tasks. */
static void limit_timer_need(u32 slot, u64 now)
{
	struct group *group = group_at(slot);

	if (group->is_timer_on || !__sync_bool_compare_and_swap(&group->is_timer_on, false, true))
		return;
	group->refilled_ns = now;
	limit_timer_start(slot, group->limit.period_ns);
}

static void limit_throttle(struct group *group)
{
	if (group->budget_ns > 0 || group->is_throttled)
		return;
	group->least_ns = group->budget_ns - (s64)GRACE_NS;
	group->is_throttled = true;
	if (group->budget_ns > 0) /* the timer has just refilled it */
		group->is_throttled = false;
}

/* Throttles the groups of a task that have used up their budget. Not static: see may_run_on(). */
__noinline int limits_walk(u32 slot, u64 now)
{
	struct group *own = group_at(slot);
	u32 depth = own->depth, i;

	bpf_for(i, 1, GROUP_DEPTH_MAX + 1) {
		struct group *group;
		u32 at;

		if (i > depth)
			break;
		at = slot_at(own, i);
		group = group_at(at);
		if (!group->limit.quota_ns)
			continue;
		limit_throttle(group);
		limit_timer_need(at, now);
	}
	return 0;
}

static void limits_check(u32 slot, u64 now)
{
	if (nr_limits)
		limits_walk(slot, now);
}

/* Tasks that wait for the next period must be released by limit_restart() afterwards. */
static void limit_set(u32 slot, u64 period_us, u64 quota_us, u64 burst_us)
{
	struct group *group = group_at(slot);
	bool was_limited = group->limit.quota_ns, is_limited = quota_us < UNLIMITED_US;

	group->limit = (struct group_limit){
		.quota_ns = is_limited ? quota_us * NSEC_PER_USEC : 0,
		.period_ns = period_us * NSEC_PER_USEC,
		.burst_ns = burst_us * NSEC_PER_USEC,
	};
	group->budget_ns = group->limit.quota_ns;
	group->is_throttled = false;
	if (is_limited != was_limited)
		__sync_fetch_and_add(&nr_limits, is_limited ? 1 : -1);
}

static void limit_restart(u32 slot)
{
	group_at(slot)->refilled_ns = bpf_ktime_get_ns();
	group_at(slot)->is_timer_on = true;
	limit_timer_start(slot, 0);
}
