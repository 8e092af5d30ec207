/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/sched_ext.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "abi/types.h"

#define OPS	      "sched_ext_ops"
#define NAMES_MAX     3
/* The callback for changes of cpu.max. */
#define SET_BANDWIDTH "cgroup_set_bandwidth"

/*
 * One row for each function of sched_ext that the scheduler calls: its names, the newest first, as
 * bpf/compat.bpf.h chooses among them. The first name that the kernel has must be callable.
 * A kernel that has none of the names of a row is sufficient only if the row is optional.
 */
struct function {
	const char *names[NAMES_MAX];
	bool optional;
};

static const struct function functions[] = {
	{ { "scx_bpf_create_dsq" } },
	{ { "scx_bpf_select_cpu_dfl" } },
	{ { "scx_bpf_pick_idle_cpu" } },
	{ { "scx_bpf_kick_cpu" } },
	{ { "scx_bpf_test_and_clear_cpu_idle" } },
	{ { "scx_bpf_task_cpu" } },
	{ { "scx_bpf_dsq_nr_queued" } },
	{ { "bpf_iter_scx_dsq_new" } },
	{ { "bpf_iter_scx_dsq_next" } },
	{ { "bpf_iter_scx_dsq_destroy" } },
	{ { "scx_bpf_dump_bstr" } },
	{ { "scx_bpf_exit_bstr" } },
	{ { "scx_bpf_dsq_insert", "scx_bpf_dispatch" } },
	{ { "__scx_bpf_dsq_insert_vtime", "scx_bpf_dsq_insert_vtime", "scx_bpf_dispatch_vtime" } },
	{ { "scx_bpf_dsq_move_to_local", "scx_bpf_consume" } },
	{ { "scx_bpf_dsq_move", "scx_bpf_dispatch_from_dsq" } },
	/*
	 * Without set_slice, the scheduler writes to the task struct. Without move_vtime, it does
	 * not keep cpu.max.
	 */
	{ { "scx_bpf_task_set_slice" }, .optional = true },
	{ { "scx_bpf_dsq_move_set_vtime" }, .optional = true },
	{ { "scx_bpf_dsq_move_vtime" }, .optional = true },
};

static s32 find_function(const struct btf *btf, const char *name)
{
	return btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
}

/*
 * Since 7.1, the kernel adds a last parameter, `aux`, to some functions. Programs do not see it:
 * BTF has a function NAME_impl with the parameter and a function NAME without it. An old pahole
 * leaves the parameter in NAME and creates no NAME_impl. Then the verifier refuses every call.
 */
static bool shows_hidden_parameter(const struct btf *btf, const char *name)
{
	const struct btf_type *proto;
	const struct btf_param *last;
	char impl[64];

	snprintf(impl, sizeof(impl), "%s_impl", name);
	if (find_function(btf, impl) >= 0)
		return false;
	proto = btf__type_by_id(btf, btf__type_by_id(btf, (u32)find_function(btf, name))->type);
	if (!proto || !btf_is_func_proto(proto) || btf_vlen(proto) == 0)
		return false;
	last = &btf_params(proto)[btf_vlen(proto) - 1];
	return strcmp(btf__name_by_offset(btf, last->name_off), "aux") == 0;
}

static bool function_has_gap(const struct btf *btf, const struct function *function,
			     struct sched_ext_gap *ret)
{
	for (size_t i = 0; i < NAMES_MAX && function->names[i]; i++) {
		const char *name = function->names[i];

		if (find_function(btf, name) < 0)
			continue;
		if (!shows_hidden_parameter(btf, name))
			return false;
		*ret = (struct sched_ext_gap){ SCHED_EXT_HIDDEN, name };
		return true;
	}
	if (function->optional)
		return false;
	*ret = (struct sched_ext_gap){ SCHED_EXT_ABSENT, function->names[0] };
	return true;
}

bool sched_ext_next_gap(const struct btf *btf, size_t *position, struct sched_ext_gap *ret)
{
	if (*position == 0 && (!btf || btf__find_by_name_kind(btf, OPS, BTF_KIND_STRUCT) < 0)) {
		*position = ARRAY_SIZE(functions);
		*ret = (struct sched_ext_gap){ SCHED_EXT_NO_OPS, OPS };
		return true;
	}
	while (*position < ARRAY_SIZE(functions))
		if (function_has_gap(btf, &functions[(*position)++], ret))
			return true;
	return false;
}

bool sched_ext_tells_limits(const struct btf *btf)
{
	s32 id = btf ? btf__find_by_name_kind(btf, OPS, BTF_KIND_STRUCT) : -ENOENT;
	const struct btf_type *ops = id > 0 ? btf__type_by_id(btf, (u32)id) : NULL;

	for (u32 i = 0; ops && i < btf_vlen(ops); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(ops)[i].name_off), SET_BANDWIDTH))
			return true;
	return false;
}
