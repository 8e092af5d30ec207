/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/kernel_features.h"
#include <string.h>
#include "base/sched_ext.h"

/* The arguments of the tracepoint sched_switch with the state of the previous task, and the first
 * one of the type. */
#define SWITCH_ARGUMENTS 5

static u32 find_type(const struct btf *btf, const char *name, u32 kind)
{
	s32 id = btf__find_by_name_kind(btf, name, kind);

	return id > 0 ? (u32)id : 0;
}

u32 btf_enumerator(const struct btf *btf, const char *type, const char *name)
{
	u32 id = find_type(btf, type, BTF_KIND_ENUM);
	const struct btf_type *found = id ? btf__type_by_id(btf, id) : NULL;

	for (u32 i = 0; found && i < btf_vlen(found); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(found)[i].name_off), name))
			return (u32)btf_enum(found)[i].val;
	return 0;
}

static bool has_enumerator(const struct btf *btf, const char *type, const char *name)
{
	return btf_enumerator(btf, type, name);
}

static bool has_function(const struct btf *btf, const char *name, const char *member)
{
	return find_type(btf, name, BTF_KIND_FUNC);
}

static bool has_struct(const struct btf *btf, const char *name, const char *member)
{
	return find_type(btf, name, BTF_KIND_STRUCT);
}

static bool has_typedef(const struct btf *btf, const char *name, const char *member)
{
	return find_type(btf, name, BTF_KIND_TYPEDEF);
}

static bool type_has_member(const struct btf *btf, const struct btf_type *type, const char *name)
{
	for (u32 i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const struct btf_type *inner = btf__type_by_id(btf, member->type);

		if (!strcmp(btf__name_by_offset(btf, member->name_off), name))
			return true;
		/* A member of an unnamed struct or union counts as one of the outer struct. */
		if (!member->name_off && inner && btf_is_composite(inner) &&
		    type_has_member(btf, inner, name))
			return true;
	}
	return false;
}

static bool has_member(const struct btf *btf, const char *name, const char *member)
{
	u32 id = find_type(btf, name, BTF_KIND_STRUCT);

	return id && type_has_member(btf, btf__type_by_id(btf, id), member);
}

/* A tracepoint is a typedef of a pointer to a function. */
static bool switch_tells_state(const struct btf *btf, const char *name, const char *member)
{
	u32 id = find_type(btf, name, BTF_KIND_TYPEDEF);
	const struct btf_type *type = id ? btf__type_by_id(btf, id) : NULL;

	type = type ? btf__type_by_id(btf, type->type) : NULL;
	type = type ? btf__type_by_id(btf, type->type) : NULL;
	return type && btf_is_func_proto(type) && btf_vlen(type) >= SWITCH_ARGUMENTS;
}

static bool can_schedule(const struct btf *btf, const char *name, const char *member)
{
	struct sched_ext_gap gap;
	size_t position = 0;

	return !sched_ext_next_gap(btf, &position, &gap);
}

static bool knows_limits(const struct btf *btf, const char *name, const char *member)
{
	return sched_ext_tells_limits(btf);
}

/* How each feature is detected. A feature without a row exists unless the verifier refuses its
 * programs. */
static const struct {
	bool (*has)(const struct btf *btf, const char *name, const char *member);
	const char *name;
	const char *member;
	u32 part_of; /* not missing by itself if one of these is missing */
} detections[FEATURE_NR] = {
	[FEATURE_RING_BUFFER] = { has_enumerator, "bpf_map_type", "BPF_MAP_TYPE_RINGBUF" },
	[FEATURE_TASK_STORAGE] = { has_enumerator, "bpf_map_type", "BPF_MAP_TYPE_TASK_STORAGE" },
	[FEATURE_COOKIES] = { has_enumerator, "bpf_attach_type", "BPF_PERF_EVENT" },
	[FEATURE_LOOPS] = { has_enumerator, "bpf_func_id", "BPF_FUNC_loop" },
	[FEATURE_SLEEP_STATE] = { switch_tells_state, "btf_trace_sched_switch" },
	[FEATURE_MULTI_UPROBES] = { has_enumerator, "bpf_attach_type", "BPF_TRACE_UPROBE_MULTI" },
	[FEATURE_UNDISTURBED] = { has_function, "bpf_preempt_disable" },
	[FEATURE_LAUNCH_TIMES] = { has_enumerator, "bpf_attach_type", "BPF_TRACE_UPROBE_SESSION" },
	[FEATURE_DEVICE_OPENS] = { has_function, "chrdev_open" },
	[FEATURE_MEMORY_STALLS] = { has_member, "task_struct", "in_memstall" },
	[FEATURE_GROUP_CAPS] = { has_member, "cgroup", "ancestors" },
	[FEATURE_DISK_NAMES] = { has_typedef, "btf_trace_block_bio_queue" },
	[FEATURE_SCHEDULER] = { can_schedule },
	[FEATURE_GROUP_WEIGHTS] = { has_struct, "scx_cgroup_init_args",
				    .part_of = FEATURE_BIT(SCHEDULER) },
	[FEATURE_GROUP_LIMITS] = { knows_limits, .part_of = FEATURE_BIT(SCHEDULER) },
};

u32 features_missing(const struct btf *btf)
{
	u32 missing = 0;

	if (!btf)
		return (u32)((1ULL << FEATURE_NR) - 1);
	for (u32 i = 0; i < FEATURE_NR; i++)
		if (detections[i].has && !(detections[i].part_of & missing) &&
		    !detections[i].has(btf, detections[i].name, detections[i].member))
			missing |= 1U << i;
	return missing;
}
