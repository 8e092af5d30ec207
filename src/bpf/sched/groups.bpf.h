/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tree of cgroups: which ones are active, and the share of each (core/group.h).
 *
 * A group is active while it has a runnable task or an active child. The weights of
 * all active members are summed at each group, so a share is computed by one walk
 * from the root to the group. Groups have fixed slots. Slot 0 is the root. A cgroup
 * that finds no free slot, or is nested too deeply, counts as a part of its parent,
 * and such cgroups are counted.
 *
 * The tag of a group is the virtual time of all its CPU time. It is compared with the
 * clock of the LLC: a group whose tag is ahead had more than its share, although each
 * of its tasks may have had little. Its tasks wait longer by that excess.
 *
 * Accepted race: if the weight of a cgroup changes while its first task wakes up or its
 * last task goes to sleep on another CPU, the sum at its parent is off by the difference.
 */
#include "bpf/sched/state.bpf.h"
#include "core/group.h"

#define GROUP_ROOT	0
#define GROUP_MAX	4096
#define GROUP_DEPTH_MAX 10
/* One tag for each group and LLC. Machines with more than 16 LLCs have room for fewer groups. */
#define GROUP_TAG_MAX	65536

struct group {
	u64 cgroup_id;
	u64 weight;
	u64 counted_weight; /* its weight in members_weight of its parent */
	u64 members_weight; /* of its runnable tasks and active children */
	u64 nr_members;
	struct group_limit limit;
	s64 budget_ns; /* CPU time that is left of its limit */
	s64 least_ns;  /* budget down to which tasks in the kernel go on while it is throttled */
	u64 refilled_ns;
	u64 is_throttled;
	u64 is_timer_on;
	u64 used_ns; /* CPU time beyond its rate of promotion */
	u64 used_since_ns;
	u64 idle_until; /* when is_idle must be read again */
	u8 is_idle;	/* cpu.idle of the cgroup or of one above it */
	u8 is_system;
	u8 has_promoted; /* a task of the group was promoted */
	u16 depth;
	u16 path[GROUP_DEPTH_MAX]; /* slots from level 1 to the group itself */
} __attribute__((aligned(64)));

static struct group groups[GROUP_MAX];
/* Ordered by LLC, so that LLCs do not contend for their lines. */
static u64 group_tags[GROUP_TAG_MAX] __attribute__((aligned(64)));
static u32 nr_tags; /* of each LLC */
/* Weight of all runnable tasks that caches passed on. A struct, so that no other variable is on its
 * cache line. */
static struct {
	s64 weight;
} __attribute__((aligned(64))) machine_sum;
static u32 nr_group_slots = 1; /* slots that were ever in use */
static u32 nr_limits;	       /* groups with a limit */
u64 nr_groups_left_out;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16 * GROUP_MAX); /* also cgroups without a slot of their own */
	__type(key, u64);		     /* cgroup id */
	__type(value, u32);
} group_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, GROUP_MAX);
	__type(value, u32);
} free_group_slots SEC(".maps");

static struct group *group_at(u32 slot)
{
	barrier_var(slot);
	return &groups[slot & (GROUP_MAX - 1)];
}

/* The slot of a group at a level of the path of another group; level 0 is the root. */
static u32 slot_at(const struct group *group, u32 level)
{
	u32 place = level - 1;

	if (!level)
		return GROUP_ROOT;
	barrier_var(place);
	return place < GROUP_DEPTH_MAX ? group->path[place] : GROUP_ROOT;
}

static u64 *tag_of(u32 slot, u32 llc)
{
	u32 i = llc * nr_tags + slot;

	barrier_var(i);
	return &group_tags[i & (GROUP_TAG_MAX - 1)];
}

static u64 cgroup_id(struct cgroup *cgroup)
{
	return BPF_CORE_READ(cgroup, kn, id);
}

static u32 slot_of_cgroup(struct cgroup *cgroup)
{
	u64 id = cgroup_id(cgroup);
	u32 *slot = bpf_map_lookup_elem(&group_slots, &id);

	return slot ? *slot : GROUP_ROOT;
}

/* False for the root, and for a cgroup that counts as a part of its parent. */
static bool owns_slot(struct cgroup *cgroup, u32 slot)
{
	return slot && group_at(slot)->cgroup_id == cgroup_id(cgroup);
}

/* Returns whether the group was inactive. */
static bool group_adds(struct group *group, u64 weight)
{
	__sync_fetch_and_add(&group->members_weight, weight);
	return !__sync_fetch_and_add(&group->nr_members, 1);
}

/* Returns whether the group is inactive now. */
static bool group_subtracts(struct group *group, u64 weight)
{
	__sync_fetch_and_add(&group->members_weight, -weight);
	return __sync_fetch_and_add(&group->nr_members, -1) == 1;
}

/*
 * Counts a member at its group and, if that was inactive, the group at its parent. Most groups are
 * active already, so the loop is rarely entered: it costs more than the rest.
 */
static __noinline int group_member_joins(u32 slot, u64 weight)
{
	struct group *start = group_at(slot), *group = start;
	u32 depth = start->depth, i;

	if (!group_adds(group, weight) || !depth)
		return 0;
	bpf_for(i, 0, GROUP_DEPTH_MAX) {
		if (i >= depth)
			break;
		weight = group->weight;
		group->counted_weight = weight;
		group = group_at(slot_at(start, depth - 1 - i));
		if (!group_adds(group, weight))
			break;
	}
	return 0;
}

static __noinline int group_member_leaves(u32 slot, u64 weight)
{
	struct group *start = group_at(slot), *group = start;
	u32 depth = start->depth, i;

	if (!group_subtracts(group, weight) || !depth)
		return 0;
	bpf_for(i, 0, GROUP_DEPTH_MAX) {
		if (i >= depth)
			break;
		weight = group->counted_weight;
		group = group_at(slot_at(start, depth - 1 - i));
		if (!group_subtracts(group, weight))
			break;
	}
	return 0;
}

/*
 * A kernel thread has at least the default weight, whatever its nice value. Otherwise
 * a kernel thread with a high nice value could be preempted for long while an RCU
 * grace period waits for it, and the whole machine would wait.
 */
static u32 weight_of_task(const struct task_struct *p)
{
	u32 weight = p->scx.weight, least = p->flags & PF_KTHREAD ? GROUP_WEIGHT_DEFAULT : 1;

	return weight > least ? weight : least;
}

/* All rates have this factor, so a wrong one changes no share, but it must not jump. */
static u64 machine_weight(void)
{
	return machine_weight_of(machine_sum.weight);
}

static void weight_pass_on(struct llc *llc)
{
	if (llc->weight_kept)
		__sync_fetch_and_add(&machine_sum.weight,
				     __sync_lock_test_and_set(&llc->weight_kept, 0));
}

static void machine_weighs(s64 added)
{
	u32 nr_llcs = topology.nr_llcs;
	struct llc *llc;

	if (nr_llcs <= 1) {
		__sync_fetch_and_add(&machine_sum.weight, added);
		return;
	}
	llc = llc_at(queue_of_cpu(bpf_get_smp_processor_id()));
	added += __sync_fetch_and_add(&llc->weight_kept, added);
	if (weight_is_passed_on(added, machine_weight(), nr_llcs))
		weight_pass_on(llc);
}

/*
 * An exiting task runs on after it left its cgroup. If that was removed meanwhile, its
 * slot is free or belongs to another cgroup.
 */
static void task_sleeps(struct sched_task *task)
{
	if (!task->counted_weight)
		return;
	if (group_at(task->group)->cgroup_id == task->cgroup_id)
		group_member_leaves(task->group, task->counted_weight);
	machine_weighs(-(s64)task->counted_weight);
	task->counted_weight = 0;
}

static void task_wakes(struct task_struct *p, struct sched_task *task)
{
	u32 weight = weight_of_task(p);

	if (task->counted_weight == weight)
		return;
	task_sleeps(task); /* its nice value may have changed */
	task->counted_weight = weight;
	task->cgroup_id = group_at(task->group)->cgroup_id;
	group_member_joins(task->group, weight);
	machine_weighs(weight);
}

static void task_joins_group(struct task_struct *p, struct sched_task *task, struct cgroup *cgroup)
{
	bool is_active = task->counted_weight;

	task_sleeps(task);
	task->group = slot_of_cgroup(cgroup);
	if (is_active)
		task_wakes(p, task);
}

/* The virtual time by which one of the groups of a task is ahead of the clock. Not static: see
 * may_run_on(). */
__noinline u64 group_excess(u32 slot, u32 llc)
{
	u64 clock = llc_at(llc)->clock, excess = 0;
	struct group *group = group_at(slot);
	u32 depth = group->depth, i;

	if (!slot)
		return 0;
	bpf_for(i, 1, GROUP_DEPTH_MAX + 1) {
		u64 tag;

		if (i > depth)
			break;
		tag = *tag_of(slot_at(group, i), llc);
		if (before(clock + excess, tag))
			excess = tag - clock;
	}
	return excess;
}

/* A group is owed one slice at most, and owes two slices at most. */
static void tag_advance(u64 *tag, u64 rate, u64 clock, u64 ran_ns)
{
	u64 least = clock - virtual_ns(rate, slice_ns),
	    most = clock + 2 * virtual_ns(rate, slice_ns);
	u64 added = virtual_ns(rate, ran_ns);
	u64 before_ns = __sync_fetch_and_add(tag, added);

	if (before(before_ns, least))
		*tag = least + added;
	else if (before(most, before_ns + added))
		*tag = most;
}

/*
 * Charges the time that a task ran to the tags of its groups and to their limits. Returns the
 * inverse share of its own group. `sum`: weight of the members of the root, then of that group.
 */
static u64 groups_walk(struct sched_task *task, u64 ratio, u64 ran_ns, u64 *sum)
{
	u64 clock = llc_at(task->llc)->clock;
	struct group *own = group_at(task->group);
	u32 depth = own->depth, i;

	bpf_for(i, 1, GROUP_DEPTH_MAX + 1) {
		struct group *group;
		u32 slot;

		if (i > depth)
			break;
		slot = slot_at(own, i);
		group = group_at(slot);
		ratio = ratio_of_member(ratio, *sum, group->weight);
		*sum = group->members_weight;
		if (!ran_ns)
			continue;
		tag_advance(tag_of(slot, task->llc), rate_of_ratio(ratio), clock, ran_ns);
		if (group->limit.quota_ns)
			__sync_fetch_and_add(&group->budget_ns, -ran_ns);
	}
	return ratio;
}

/*
 * Computes the rate of the task from the shares of its groups, and charges the time that it ran.
 * Not static: see may_run_on().
 */
__noinline int groups_charge(struct sched_task *task, u64 ran_ns)
{
	u64 ratio = ratio_of_machine(machine_weight()), sum = groups[GROUP_ROOT].members_weight;

	if (!task)
		return 0;
	if (task->group)
		ratio = groups_walk(task, ratio, ran_ns, &sum);
	task->group_ratio = ratio;
	task->rate = rate_of_ratio(ratio_of_member(ratio, sum, task->counted_weight));
	return 0;
}

static u32 free_group_slot(void)
{
	u32 slot;

	if (!bpf_map_pop_elem(&free_group_slots, &slot))
		return slot;
	if (nr_group_slots >= GROUP_MAX || nr_group_slots >= nr_tags)
		return GROUP_ROOT;
	return nr_group_slots++;
}

#define GROUP_NAME_LEN 128 /* a power of two, so that the verifier can check a masked index */

static bool name_has(const char name[static GROUP_NAME_LEN], u32 at, const char *text, u32 length)
{
	u32 i;

	bpf_for(i, 0, length) {
		u32 place = at + i;

		barrier_var(place);
		if (name[place & (GROUP_NAME_LEN - 1)] != text[i])
			return false;
	}
	return true;
}

/* Services of the machine; not the containers that some engines run in scopes below them. */
static bool is_system_group(struct cgroup *cgroup, u32 level, bool parent_is_system)
{
	static const char slice[] = "system.slice", scope[] = ".scope";
	char name[GROUP_NAME_LEN] = {};
	long length;

	if (level > 1 && !parent_is_system)
		return false;
	length = bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(cgroup, kn, name));
	if (level == 1)
		return name_has(name, 0, slice, sizeof(slice));
	if (length == sizeof(name)) /* its end was cut off */
		return false;
	return length < (long)sizeof(scope) ||
	       !name_has(name, length - sizeof(scope), scope, sizeof(scope));
}

/* Returns the slot of the new group, or that of its parent if there is no room. */
static u32 group_create(struct cgroup *cgroup, u32 weight)
{
	u64 id = cgroup_id(cgroup);
	u32 level = cgroup->level, parent = GROUP_ROOT, nr_llcs = topology.nr_llcs, slot, i;
	struct cgroup *above;
	struct group *group;

	if (!level)
		return GROUP_ROOT;
	above = bpf_cgroup_ancestor(cgroup, level - 1);
	if (above) {
		parent = slot_of_cgroup(above);
		bpf_cgroup_release(above);
	}
	slot = group_at(parent)->depth + 1 == level && level <= GROUP_DEPTH_MAX ? free_group_slot()
										: GROUP_ROOT;
	if (!slot) {
		__sync_fetch_and_add(&nr_groups_left_out, 1);
		slot = parent;
		bpf_map_update_elem(&group_slots, &id, &slot, BPF_ANY);
		return slot;
	}
	group = group_at(slot);
	*group = (struct group){
		.cgroup_id = id,
		.weight = weight,
		.is_system = is_system_group(cgroup, level, group_at(parent)->is_system),
		.depth = level,
	};
	/* The tags may be those of an earlier cgroup. */
	bpf_for(i, 0, nr_llcs) {
		*tag_of(slot, i) = llc_at(i)->clock;
	}
	bpf_for(i, 0, GROUP_DEPTH_MAX) {
		group->path[i] = i + 1 < level	  ? group_at(parent)->path[i]
				 : i + 1 == level ? slot
						  : GROUP_ROOT;
	}
	bpf_map_update_elem(&group_slots, &id, &slot, BPF_ANY);
	return slot;
}

static void group_remove(struct cgroup *cgroup)
{
	u64 id = cgroup_id(cgroup);
	u32 slot = slot_of_cgroup(cgroup);
	struct group *group = group_at(slot);

	bpf_map_delete_elem(&group_slots, &id);
	if (!owns_slot(cgroup, slot))
		return;
	if (group->limit.quota_ns)
		__sync_fetch_and_add(&nr_limits, -1);
	/*
	 * The last task of a cgroup still runs for a short time after its exit. It may leave at
	 * the same time, and does not leave the parent once it sees 0 members.
	 */
	if (__sync_lock_test_and_set(&group->nr_members, 0))
		group_member_leaves(slot_at(group, group->depth - 1), group->counted_weight);
	*group = (struct group){};
	bpf_map_push_elem(&free_group_slots, &slot, BPF_ANY);
}

static void group_weighs(struct cgroup *cgroup, u32 weight)
{
	u32 slot = slot_of_cgroup(cgroup);
	struct group *group = group_at(slot);
	u64 was = group->counted_weight;

	if (!owns_slot(cgroup, slot))
		return;
	group->weight = weight;
	if (!group->nr_members)
		return;
	group->counted_weight = weight;
	__sync_fetch_and_add(&group_at(slot_at(group, group->depth - 1))->members_weight,
			     (u64)weight - was);
}

#define IDLE_READ_NS (100 * NSEC_PER_MSEC)

/*
 * Whether cpu.idle is set for the cgroup of the task or for one above it. Kernels before
 * 7.0 do not tell schedulers, so it is read from the kernel at intervals.
 */
static bool group_is_idle(struct task_struct *p, u32 slot, u64 now)
{
	struct group *group = group_at(slot);
	struct task_group *tg;
	bool is_idle = false;
	u32 i;

	if (!slot)
		return false;
	if (before(now, group->idle_until))
		return group->is_idle;
	group->idle_until = now + IDLE_READ_NS;
	tg = p->sched_task_group;
	bpf_for(i, 0, GROUP_DEPTH_MAX) {
		if (!tg)
			break;
		is_idle |= BPF_CORE_READ(tg, idle) > 0;
		tg = BPF_CORE_READ(tg, parent);
	}
	group->is_idle = is_idle;
	return is_idle;
}

/*
 * Charges CPU time to what the group may use while it is promoted. A group without promoted tasks
 * is not charged: all CPUs that run its tasks would write this.
 */
static void promotion_charge(struct sched_task *task, u64 ran_ns, u64 now)
{
	struct group *group = group_at(task->group);
	u64 since = group->used_since_ns, used_ns, allowed_ns;

	if (!task->group)
		return;
	if (!group->has_promoted) {
		if (!is_promoted(task->class))
			return;
		group->has_promoted = true;
	}
	used_ns = __sync_fetch_and_add(&group->used_ns, ran_ns) + ran_ns;
	if (used_ns > PROMOTION_MAX_NS)
		group->used_ns = PROMOTION_MAX_NS;
	/* If several CPUs get here at the same time, one of them counts the time that passed. */
	if (!before(since, now) || !__sync_bool_compare_and_swap(&group->used_since_ns, since, now))
		return;
	allowed_ns = promotion_allowed(
		now - since, promotion_ns_per_s(task->group_ratio, machine_weight(),
						topology.nr_cpus, policy.promotion_percent));
	used_ns = group->used_ns;
	__sync_fetch_and_add(&group->used_ns, -(allowed_ns < used_ns ? allowed_ns : used_ns));
}

/* Whether tasks of the group may go before tasks of other groups. */
static bool group_may_promote(u32 slot)
{
	return !slot || group_at(slot)->used_ns <= PROMOTION_BURST_NS;
}

/*
 * Sets the class of a task, or that of an ordinary task if its group has used up its
 * promotion.
 */
static void set_class(struct sched_task *task, u32 class)
{
	task->is_capped = is_promoted(class) && !group_may_promote(task->group);
	task->class = task->is_capped ? CLASS_ORDINARY : class;
}

/* At detach, each cgroup returned its slot. Tasks are counted again when they are attached. */
static void forget_members(void)
{
	u32 slot, i;

	*group_at(GROUP_ROOT) = (struct group){};
	machine_sum.weight = 0;
	/* Returned slots may be beyond the tags of each LLC if there are more LLCs now. */
	bpf_for(i, 0, GROUP_MAX) {
		if (bpf_map_pop_elem(&free_group_slots, &slot))
			break;
	}
	nr_group_slots = 1;
	nr_tags = GROUP_TAG_MAX / topology.nr_llcs;
	nr_limits = 0;
}
