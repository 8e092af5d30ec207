/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* BTF of synthetic kernels, for tests of the code that reads BTF. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "abi/types.h"
#include "base/sched_ext.h"

/* The functions of sched_ext in 6.12 without which the scheduler cannot be loaded. */
static const char *const kernel_btf_functions[] = {
	"bpf_iter_scx_dsq_destroy",  "bpf_iter_scx_dsq_new",
	"bpf_iter_scx_dsq_next",     "scx_bpf_consume",
	"scx_bpf_create_dsq",	     "scx_bpf_dispatch",
	"scx_bpf_dispatch_from_dsq", "scx_bpf_dispatch_vtime",
	"scx_bpf_dsq_nr_queued",     "scx_bpf_dump_bstr",
	"scx_bpf_exit_bstr",	     "scx_bpf_kick_cpu",
	"scx_bpf_pick_idle_cpu",     "scx_bpf_select_cpu_dfl",
	"scx_bpf_task_cpu",	     "scx_bpf_test_and_clear_cpu_idle",
};

#define KERNEL_BTF_INT 1 /* the id of the only integer type */

/* A kernel without sched_ext. */
static inline struct btf *kernel_btf_empty(void)
{
	struct btf *btf = btf__new_empty();

	assert_non_null(btf);
	assert_int_equal(btf__add_int(btf, "int", 4, BTF_INT_SIGNED), KERNEL_BTF_INT);
	return btf;
}

/* Adds a function with two parameters, or without parameters if `last` is NULL. */
static inline void kernel_btf_add(struct btf *btf, const char *name, const char *last)
{
	int type = btf__add_func_proto(btf, KERNEL_BTF_INT);

	assert_true(type > 0);
	if (last) {
		assert_int_equal(btf__add_func_param(btf, "first", KERNEL_BTF_INT), 0);
		assert_int_equal(btf__add_func_param(btf, last, KERNEL_BTF_INT), 0);
	}
	assert_true(btf__add_func(btf, name, BTF_FUNC_GLOBAL, type) > 0);
}

static inline void kernel_btf_add_enum(struct btf *btf, const char *type, const char *const *names,
				       size_t nr)
{
	assert_true(btf__add_enum(btf, type, 4) > 0);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(btf__add_enum_value(btf, names[i], (s64)i + 1), 0);
}

static inline void kernel_btf_add_struct(struct btf *btf, const char *name, const char *member)
{
	assert_true(btf__add_struct(btf, name, 4) > 0);
	assert_int_equal(btf__add_field(btf, member, KERNEL_BTF_INT, 0, 0), 0);
}

/* A tracepoint with a number of arguments besides its context. */
static inline void kernel_btf_add_tracepoint(struct btf *btf, const char *name, u32 nr)
{
	int proto = btf__add_func_proto(btf, KERNEL_BTF_INT);

	for (u32 i = 0; i <= nr; i++)
		assert_int_equal(btf__add_func_param(btf, "", KERNEL_BTF_INT), 0);
	assert_true(btf__add_typedef(btf, name, btf__add_ptr(btf, proto)) > 0);
}

/* All that zerneld uses to watch, as in 6.18. */
static inline void kernel_btf_add_features(struct btf *btf)
{
	static const char *const maps[] = { "BPF_MAP_TYPE_RINGBUF", "BPF_MAP_TYPE_TASK_STORAGE" };
	static const char *const attaches[] = { "BPF_PERF_EVENT", "BPF_TRACE_UPROBE_MULTI",
						"BPF_TRACE_UPROBE_SESSION" };
	static const char *const helpers[] = { "BPF_FUNC_loop" };
	static const char *const functions[] = { "bpf_preempt_disable", "chrdev_open" };

	kernel_btf_add_enum(btf, "bpf_map_type", maps, ARRAY_SIZE(maps));
	kernel_btf_add_enum(btf, "bpf_attach_type", attaches, ARRAY_SIZE(attaches));
	kernel_btf_add_enum(btf, "bpf_func_id", helpers, ARRAY_SIZE(helpers));
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		kernel_btf_add(btf, functions[i], NULL);
	kernel_btf_add_struct(btf, "task_struct", "in_memstall");
	kernel_btf_add_struct(btf, "cgroup", "ancestors");
	kernel_btf_add_struct(btf, "scx_cgroup_init_args", "weight");
	kernel_btf_add_tracepoint(btf, "btf_trace_sched_switch", 4);
	kernel_btf_add_tracepoint(btf, "btf_trace_block_bio_queue", 1);
}

/* A kernel with sched_ext but without functions. */
static inline struct btf *kernel_btf_with_ops(void)
{
	struct btf *btf = kernel_btf_empty();

	assert_true(btf__add_struct(btf, "sched_ext_ops", 4) > 0);
	assert_int_equal(btf__add_field(btf, "flags", KERNEL_BTF_INT, 0, 0), 0);
	return btf;
}

static inline void kernel_btf_add_functions(struct btf *btf, const char *without)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernel_btf_functions); i++)
		if (!without || strcmp(kernel_btf_functions[i], without) != 0)
			kernel_btf_add(btf, kernel_btf_functions[i], "last");
}

/* The scheduler's part of 6.12 without the function `without`, or with all functions if it is NULL.
 */
static inline struct btf *kernel_btf_new(const char *without)
{
	struct btf *btf = kernel_btf_with_ops();

	kernel_btf_add_functions(btf, without);
	return btf;
}

/* Kernel 6.17, which lacks nothing but the function `without`. */
static inline struct btf *kernel_btf_complete(const char *without)
{
	struct btf *btf = kernel_btf_with_ops();

	assert_int_equal(btf__add_field(btf, "cgroup_set_bandwidth", KERNEL_BTF_INT, 0, 0), 0);
	kernel_btf_add_functions(btf, without);
	kernel_btf_add_features(btf);
	return btf;
}
