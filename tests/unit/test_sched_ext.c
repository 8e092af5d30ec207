/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests which kernels can load the scheduler, with synthetic BTF. */
#include "unit/kernel_btf.h"

/* The BPF object of the scheduler. */
static const char *scheduler_path;

static void assert_complete(const struct btf *btf)
{
	struct sched_ext_gap gap;
	size_t position = 0;

	if (sched_ext_next_gap(btf, &position, &gap))
		fail_msg("%s is reported as missing", gap.name);
}

/* Exactly one gap is reported. */
static void assert_gap(const struct btf *btf, enum sched_ext_gap_kind kind, const char *name)
{
	struct sched_ext_gap gap = {};
	size_t position = 0;

	assert_true(sched_ext_next_gap(btf, &position, &gap));
	assert_string_equal(gap.name, name);
	assert_int_equal(gap.kind, kind);
	assert_false(sched_ext_next_gap(btf, &position, &gap));
}

static void test_complete(void **state)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = kernel_btf_new(NULL);

	assert_complete(btf);
}

static void test_no_sched_ext(void **state)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = kernel_btf_empty();

	assert_gap(btf, SCHED_EXT_NO_OPS, "sched_ext_ops");
	assert_gap(NULL, SCHED_EXT_NO_OPS, "sched_ext_ops");
}

/* The name of a function in current kernels. */
static const char *current_name(const char *name)
{
	static const char *const renamed[][2] = {
		{ "scx_bpf_consume", "scx_bpf_dsq_move_to_local" },
		{ "scx_bpf_dispatch", "scx_bpf_dsq_insert" },
		{ "scx_bpf_dispatch_from_dsq", "scx_bpf_dsq_move" },
		{ "scx_bpf_dispatch_vtime", "__scx_bpf_dsq_insert_vtime" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
		if (!strcmp(name, renamed[i][0]))
			return renamed[i][1];
	return name;
}

static void test_each_required_function_absent(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernel_btf_functions); i++) {
		const char *name = kernel_btf_functions[i];
		CLEANUP(btf__free_cleanup) struct btf *btf = kernel_btf_new(name);

		assert_gap(btf, SCHED_EXT_ABSENT, current_name(name));
	}
}

static void test_each_required_function_shows_its_hidden_parameter(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernel_btf_functions); i++) {
		const char *name = kernel_btf_functions[i];
		CLEANUP(btf__free_cleanup) struct btf *btf = kernel_btf_new(name);

		kernel_btf_add(btf, name, "aux");
		assert_gap(btf, SCHED_EXT_HIDDEN, name);
	}
}

static void test_hidden_parameter_with_an_impl(void **state)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = kernel_btf_new("scx_bpf_create_dsq");

	kernel_btf_add(btf, "scx_bpf_create_dsq", "aux");
	kernel_btf_add(btf, "scx_bpf_create_dsq_impl", "aux");
	assert_complete(btf);
}

static void test_empty_prototype(void **state)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = kernel_btf_new("scx_bpf_kick_cpu");

	kernel_btf_add(btf, "scx_bpf_kick_cpu", NULL);
	assert_complete(btf);
}

/* A kernel may lack an optional function. If it has one, the form must match the caller. */
static void test_optional_function(void **state)
{
	CLEANUP(btf__free_cleanup) struct btf *sound = kernel_btf_new(NULL);
	CLEANUP(btf__free_cleanup) struct btf *broken = kernel_btf_new(NULL);

	kernel_btf_add(sound, "scx_bpf_task_set_slice", "slice");
	assert_complete(sound);
	kernel_btf_add(broken, "scx_bpf_task_set_slice", "aux");
	assert_gap(broken, SCHED_EXT_HIDDEN, "scx_bpf_task_set_slice");
}

/* The scheduler calls the newest name, so an older name beside it does not matter. */
static void test_renamed_function(void **state)
{
	CLEANUP(btf__free_cleanup) struct btf *sound = kernel_btf_new("scx_bpf_dispatch_vtime");
	CLEANUP(btf__free_cleanup) struct btf *broken = kernel_btf_new(NULL);

	kernel_btf_add(sound, "scx_bpf_dsq_insert_vtime", "enq_flags");
	assert_complete(sound);
	kernel_btf_add(broken, "scx_bpf_dsq_insert", "aux");
	assert_gap(broken, SCHED_EXT_HIDDEN, "scx_bpf_dsq_insert");
}

static bool is_reported(const struct btf *btf, const char *name)
{
	struct sched_ext_gap gap;
	size_t position = 0;

	while (sched_ext_next_gap(btf, &position, &gap))
		if (gap.kind == SCHED_EXT_HIDDEN && !strcmp(gap.name, name))
			return true;
	return false;
}

/* The check knows every function of sched_ext that the scheduler's object refers to. */
static void test_every_function_the_scheduler_calls_is_checked(void **state)
{
	CLEANUP(btf__free_cleanup) struct btf *object = btf__parse_elf(scheduler_path, NULL);
	u32 nr_checked = 0;

	assert_non_null(object);
	for (u32 id = 1; id < btf__type_cnt(object); id++) {
		const struct btf_type *type = btf__type_by_id(object, id);
		const char *name = btf__name_by_offset(object, type->name_off);
		CLEANUP(btf__free_cleanup) struct btf *kernel = NULL;

		if (!btf_is_func(type) || btf_vlen(type) != BTF_FUNC_EXTERN ||
		    !strstr(name, "scx_"))
			continue;
		kernel = kernel_btf_with_ops();
		kernel_btf_add(kernel, name, "aux");
		if (!is_reported(kernel, name))
			fail_msg("the check does not know %s", name);
		nr_checked++;
	}
	assert_true(nr_checked >= ARRAY_SIZE(kernel_btf_functions));
}

static void test_limits(void **state)
{
	CLEANUP(btf__free_cleanup)
	struct btf *none = kernel_btf_empty(), *old = kernel_btf_new(NULL),
		   *now = kernel_btf_with_ops();

	assert_int_equal(btf__add_field(now, "cgroup_set_bandwidth", KERNEL_BTF_INT, 0, 0), 0);
	assert_false(sched_ext_tells_limits(NULL));
	assert_false(sched_ext_tells_limits(none));
	assert_false(sched_ext_tells_limits(old));
	assert_true(sched_ext_tells_limits(now));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_no_sched_ext),
		cmocka_unit_test(test_each_required_function_absent),
		cmocka_unit_test(test_each_required_function_shows_its_hidden_parameter),
		cmocka_unit_test(test_hidden_parameter_with_an_impl),
		cmocka_unit_test(test_empty_prototype),
		cmocka_unit_test(test_optional_function),
		cmocka_unit_test(test_renamed_function),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_every_function_the_scheduler_calls_is_checked),
	};

	if (argc != 2)
		return 2;
	scheduler_path = argv[1];
	return cmocka_run_group_tests_name("sched_ext", tests, NULL, NULL);
}
