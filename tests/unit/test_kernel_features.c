/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/kernel_features.h"
#include "core/feature.h"
#include "kernel_btf.h"

static void assert_missing(struct btf *btf, u32 expected)
{
	assert_int_equal(features_missing(btf), expected);
	btf__free(btf);
}

static void test_a_complete_kernel(void **state)
{
	assert_missing(kernel_btf_complete(NULL), 0);
}

static void test_no_btf_lacks_everything(void **state)
{
	assert_int_equal(features_missing(NULL) & features_essential(), features_essential());
}

/* What belongs to the scheduler is not missing by itself. */
static void test_a_kernel_without_sched_ext(void **state)
{
	struct btf *btf = kernel_btf_empty();

	kernel_btf_add_features(btf);
	assert_missing(btf, FEATURE_BIT(SCHEDULER));
}

static void test_a_kernel_without_limits(void **state)
{
	struct btf *btf = kernel_btf_new(NULL);

	kernel_btf_add_features(btf);
	assert_missing(btf, FEATURE_BIT(GROUP_LIMITS));
}

/* As in 6.1: enumerators and functions of later kernels are missing, and a member is in an unnamed
 * struct. */
static void test_an_old_kernel(void **state)
{
	static const char *const maps[] = { "BPF_MAP_TYPE_RINGBUF", "BPF_MAP_TYPE_TASK_STORAGE" };
	static const char *const attaches[] = { "BPF_PERF_EVENT" };
	static const char *const helpers[] = { "BPF_FUNC_loop" };
	struct btf *btf = kernel_btf_empty();
	int inner;

	kernel_btf_add_enum(btf, "bpf_map_type", maps, ARRAY_SIZE(maps));
	kernel_btf_add_enum(btf, "bpf_attach_type", attaches, ARRAY_SIZE(attaches));
	kernel_btf_add_enum(btf, "bpf_func_id", helpers, ARRAY_SIZE(helpers));
	kernel_btf_add(btf, "chrdev_open", NULL);
	kernel_btf_add_tracepoint(btf, "btf_trace_sched_switch", 4);
	kernel_btf_add_tracepoint(btf, "btf_trace_block_bio_queue", 1);
	inner = btf__add_struct(btf, NULL, 4);
	assert_int_equal(btf__add_field(btf, "in_memstall", KERNEL_BTF_INT, 0, 0), 0);
	assert_true(btf__add_struct(btf, "task_struct", 4) > 0);
	assert_int_equal(btf__add_field(btf, NULL, inner, 0, 0), 0);
	kernel_btf_add_struct(btf, "cgroup", "ancestors");
	assert_missing(btf, FEATURE_BIT(MULTI_UPROBES) | FEATURE_BIT(UNDISTURBED) |
				    FEATURE_BIT(LAUNCH_TIMES) | FEATURE_BIT(SCHEDULER));
}

/* As in 5.15: the tracepoint has one argument less. */
static void test_a_kernel_that_is_too_old(void **state)
{
	struct btf *btf = kernel_btf_empty();

	kernel_btf_add_tracepoint(btf, "btf_trace_sched_switch", 3);
	assert_int_equal(features_missing(btf) & features_essential(), features_essential());
	btf__free(btf);
}

static void test_the_list_of_a_set(void **state)
{
	char text[64], small[8];

	features_list(FEATURE_BIT(LAUNCH_TIMES) | FEATURE_BIT(RANKS), text, sizeof(text));
	assert_string_equal(text, "launch_times, ranks");
	features_list(FEATURE_BIT(LAUNCH_TIMES) | FEATURE_BIT(RANKS), small, sizeof(small));
	assert_string_equal(small, "launch_");
	features_list(0, text, sizeof(text));
	assert_string_equal(text, "");
	assert_string_equal(feature_label(FEATURE_NR), "unknown");
	assert_null(feature_row(FEATURE_NR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_complete_kernel),
		cmocka_unit_test(test_no_btf_lacks_everything),
		cmocka_unit_test(test_a_kernel_without_sched_ext),
		cmocka_unit_test(test_a_kernel_without_limits),
		cmocka_unit_test(test_an_old_kernel),
		cmocka_unit_test(test_a_kernel_that_is_too_old),
		cmocka_unit_test(test_the_list_of_a_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
