/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "base/cleanup.h"
#include "ipc/json.h"
#include "ipc/snapshot_json.h"
#include "metrics/node.h"

#define SAME_LIST(a, b, items)                                                                     \
	((a)->nr_##items == (b)->nr_##items &&                                                     \
	 memcmp((a)->items, (b)->items, (a)->nr_##items * sizeof(*(a)->items)) == 0)

/* Compares all members except the limits, which are the numbers of items after reading. */
static bool same(const struct snapshot *a, const struct snapshot *b)
{
	return a->time_ms == b->time_ms && a->monotonic_ns == b->monotonic_ns &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->version, b->version) == 0 &&
	       strcmp(a->kernel, b->kernel) == 0 && SAME_LIST(a, b, jobs) &&
	       SAME_LIST(a, b, processes) && SAME_LIST(a, b, threads) && SAME_LIST(a, b, gpus) &&
	       SAME_LIST(a, b, comms) && SAME_LIST(a, b, hists) &&
	       memcmp(a->nr_role, b->nr_role, sizeof(a->nr_role)) == 0 &&
	       memcmp(&a->gone, &b->gone, sizeof(a->gone)) == 0 &&
	       memcmp(&a->gone_collectives, &b->gone_collectives, sizeof(a->gone_collectives)) ==
		       0 &&
	       a->nr_transitions == b->nr_transitions &&
	       memcmp(&a->phase_detection, &b->phase_detection, sizeof(a->phase_detection)) == 0 &&
	       memcmp(&a->sched, &b->sched, sizeof(a->sched)) == 0 &&
	       memcmp(&a->learning, &b->learning, sizeof(a->learning)) == 0 &&
	       memcmp(&a->probes, &b->probes, sizeof(a->probes)) == 0 &&
	       memcmp(&a->cost, &b->cost, sizeof(a->cost)) == 0 &&
	       memcmp(a->nr_dropped, b->nr_dropped, sizeof(a->nr_dropped)) == 0;
}

static void check_round_trip(const struct snapshot *s)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *read = NULL;
	CLEANUP_FREE char *text = NULL, *again = NULL;
	size_t length = 0, length_again = 0;

	assert_int_equal(snapshot_to_json(s, &text, &length), 0);
	assert_int_equal(strlen(text), length);
	assert_null(strchr(text, '\n'));
	assert_int_equal(snapshot_from_json(text, length, &read), 0);
	assert_true(same(s, read));
	assert_int_equal(snapshot_to_json(read, &again, &length_again), 0);
	assert_string_equal(text, again);
}

static void test_a_node_makes_the_round_trip(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *s = node_snapshot(&(struct node){ .nr_ranks = 8, .nr_operations = 8 });

	check_round_trip(s);
}

/* A snapshot can be a member of a line, or missing. Other members of the line are ignored. */
static void test_a_snapshot_is_read_as_a_member_of_a_line(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *s = node_snapshot(&(struct node){ .nr_ranks = 2, .nr_operations = 2 });
	CLEANUP(snapshot_free_cleanup) struct snapshot *read = NULL;
	CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = NULL;
	CLEANUP_FREE char *text = NULL, *line = NULL;
	size_t length = 0;
	yyjson_val *root;

	assert_int_equal(snapshot_to_json(s, &text, &length), 0);
	assert_true(asprintf(&line, "{\"version\":0,\"data\":%s}", text) > 0);
	doc = yyjson_read(line, strlen(line), 0);
	root = yyjson_doc_get_root(doc);
	assert_int_equal(snapshot_from_value(yyjson_obj_get(root, "result"), &read), -EBADMSG);
	assert_int_equal(snapshot_from_value(root, &read), -EPROTONOSUPPORT);
	assert_null(read);
	assert_int_equal(snapshot_from_value(yyjson_obj_get(root, "data"), &read), 0);
	assert_true(same(s, read));
}

static void test_any_snapshot_makes_the_round_trip(void **state)
{
	u64 runs = random_runs("PROPERTY_RUNS", 2000);
	struct random r = random_start();

	for (u64 i = 0; i < runs; i++) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *s = node_random(&r);

		check_round_trip(s);
	}
}

static void test_text_that_is_not_a_snapshot_is_refused(void **state)
{
	static const struct {
		const char *text;
		int err;
	} rows[] = {
		{ "", -EBADMSG },
		{ "[]", -EBADMSG },
		{ "{\"version\":1", -EBADMSG },
		{ "{}", -EPROTONOSUPPORT },
		{ "{\"version\":0}", -EPROTONOSUPPORT },
		{ "{\"version\":3}", -EPROTONOSUPPORT },
		{ "{\"version\":1,\"time_ms\":-1}", -EBADMSG },
		{ "{\"version\":1,\"time_ms\":1.5}", -EBADMSG },
		{ "{\"version\":1,\"time_ms\":18446744073709551616}", -EBADMSG },
		{ "{\"version\":1,\"host\":3}", -EBADMSG },
		{ "{\"version\":1,\"host\":\"a\\u0000b\"}", -EBADMSG },
		{ "{\"version\":1,\"processes\":[1]}", -EBADMSG },
		{ "{\"version\":1,\"processes\":[{\"job\":1}]}", -EBADMSG },
		{ "{\"version\":1,\"processes\":[{\"pid\":4294967296}]}", -EBADMSG },
		{ "{\"version\":1,\"processes\":[{\"rank\":2147483648}]}", -EBADMSG },
		{ "{\"version\":1,\"processes\":[{\"phase\":\"lunch\"}]}", -EBADMSG },
		{ "{\"version\":2,\"processes\":[{\"task\":3}]}", -EBADMSG },
		{ "{\"version\":2,\"processes\":[{\"task\":{\"current_phase\":\"gpu_compute\"}}]}",
		  -EBADMSG },
		{ "{\"version\":2,\"processes\":[{\"task\":{\"is_ml_process\":1}}]}", -EBADMSG },
		{ "{\"version\":2,\"processes\":[{\"task\":{\"io_wait_fraction\":1.001}}]}",
		  -EBADMSG },
		{ "{\"version\":2,\"processes\":[{\"task\":{\"io_wait_fraction\":-0.1}}]}",
		  -EBADMSG },
		{ "{\"version\":2,\"processes\":[{\"task\":{\"io_wait_fraction\":\"0\"}}]}",
		  -EBADMSG },
		{ "{\"version\":2,\"processes\":[{\"task\":{\"gpu_id\":4294967295}}]}", -EBADMSG },
		{ "{\"version\":2,\"processes\":[{\"task\":{\"gpu_id\":-1}}]}", -EBADMSG },
		{ "{\"version\":1,\"processes\":[{\"memory\":3}]}", -EBADMSG },
		{ "{\"version\":1,\"processes\":[{\"culprits\":3}]}", -EBADMSG },
		{ "{\"version\":1,\"gone\":{\"launch\":[]}}", -EBADMSG },
		{ "{\"version\":1,\"gone\":{\"launch\":{\"buckets\":[[178,1]]}}}", -EBADMSG },
		{ "{\"version\":1,\"gone\":{\"launch\":{\"buckets\":[7]}}}", -EBADMSG },
		{ "{\"version\":1,\"scheduler\":[]}", -EBADMSG },
		{ "{\"version\":1,\"scheduler\":{\"others_permille\":\"300\"}}", -EBADMSG },
		{ "{\"version\":1,\"scheduler\":{\"patience_ns\":-1}}", -EBADMSG },
		{ "{\"version\":2,\"scheduler\":{\"reserved_percent\":-1}}", -EBADMSG },
		{ "{\"version\":2,\"scheduler\":{\"max_wait_ms\":1.5}}", -EBADMSG },
		{ "{\"version\":1,\"dropped\":{\"events\":\"3\"}}", -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct snapshot *s = NULL;
		int err = snapshot_from_json(rows[i].text, strlen(rows[i].text), &s);

		if (err != rows[i].err)
			print_error("# %s\n", rows[i].text);
		assert_int_equal(err, rows[i].err);
		assert_null(s);
	}
}

static void test_a_too_large_snapshot_is_refused(void **state)
{
	const size_t nr = SNAPSHOT_LIMITS_MAX.nr_processes + 1;
	CLEANUP_FREE char *text = malloc(64 + 3 * nr);
	struct snapshot *s = NULL;
	char *at = text;

	at = stpcpy(at, "{\"version\":1,\"processes\":[{}");
	for (size_t i = 1; i < nr; i++)
		at = stpcpy(at, ",{}");
	at = stpcpy(at, "]}");
	assert_int_equal(snapshot_from_json(text, (size_t)(at - text), &s), -E2BIG);
	assert_null(s);
}

/* More processes and threads than are parsed at once. */
static void test_a_large_node_makes_the_round_trip(void **state)
{
	struct snapshot_limits limits = { .nr_processes = 1000,
					  .nr_threads = 5000,
					  .nr_hists = 2000 };
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	for (u32 i = 0; i < limits.nr_processes; i++) {
		struct snapshot_process *process = snapshot_add_process(s, i + 1);

		for (u32 kind = 0; kind < 2; kind++)
			hist_record(snapshot_add_hist(s, &process->hists, kind), i);
	}
	for (u32 i = 0; i < limits.nr_threads; i++)
		snapshot_add_thread(s, i + 1, ROLE_OTHER);
	check_round_trip(s);
}

static void test_unknown_keys_are_skipped(void **state)
{
	static const char text[] = "{\"new\":[{}],\"version\":1,\"time_ms\":5,"
				   "\"gone\":{\"new\":{}},\"scheduler\":{\"new\":1}}";
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;

	assert_int_equal(snapshot_from_json(text, strlen(text), &s), 0);
	assert_int_equal(s->time_ms, 5);
}

/* Every field of the task state, by the names of the reference. */
static void test_the_task_state_of_a_process(void **state)
{
	static const char expected[] =
		"\"task\":{\"pid\":1001,\"is_ml_process\":true,\"current_phase\":\"DataLoading\","
		"\"gpu_utilization\":91,\"last_gpu_sync_ns\":123456789000000,"
		"\"cpu_burst_duration_ns\":1500000,\"io_wait_fraction\":0.125,"
		"\"nccl_active\":true,\"futex_wait_count\":4,\"gpu_id\":1,"
		"\"gpu_instance\":null,\"compute_instance\":null,\"gpu_basis\":\"runtime\","
		"\"phase_start_ns\":123456789000100,"
		"\"phase_time_ns\":{\"Unknown\":0,\"DataLoading\":200,\"GpuCompute\":800,"
		"\"NcclCollective\":0,\"OptimizerStep\":0},"
		"\"phase_fraction\":{\"Unknown\":0.0,\"DataLoading\":0.2,\"GpuCompute\":0.8,"
		"\"NcclCollective\":0.0,\"OptimizerStep\":0.0}}";
	static const u64 phase_ns[PHASE_NR] = {
		[PHASE_DATA_LOADING] = 200, [PHASE_GPU_COMPUTE] = 800
	};
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *s = node_snapshot(&(struct node){ .nr_ranks = 2, .nr_operations = 1 });
	struct snapshot_process *process =
		&s->processes[3]; /* rank 1, after the loaders of rank 0 */
	CLEANUP_FREE char *text = NULL, *without = NULL;
	size_t length = 0;

	memcpy(process->phase_ns, phase_ns, sizeof(phase_ns));
	assert_int_equal(snapshot_to_json(s, &text, &length), 0);
	assert_non_null(strstr(text, expected));
	/* A loader uses no GPU. */
	assert_non_null(strstr(text, "\"gpu_id\":null"));
	for (u32 i = 0; i < s->nr_processes; i++)
		s->processes[i].task.known = 0;
	assert_int_equal(snapshot_to_json(s, &without, &length), 0);
	assert_null(strstr(without, "\"task\""));
}

/* A recording with older names gives the same values. */
static void test_names_of_each_version(void **state)
{
	static const struct {
		const char *text;
		u32 reserved_percent;
		u64 max_wait_ms;
	} rows[] = {
		{ "{\"version\":1,\"scheduler\":{\"others_permille\":300,"
		  "\"patience_ns\":1000000000}}",
		  30, 1000 },
		{ "{\"version\":1,\"scheduler\":{\"reserved_percent\":20}}", 0, 0 },
		{ "{\"version\":1}", 0, 0 },
		{ "{\"version\":2,\"scheduler\":{\"reserved_percent\":20,\"max_wait_ms\":7}}", 20,
		  7 },
		{ "{\"version\":2,\"scheduler\":{\"others_permille\":300,\"patience_ns\":1}}", 0,
		  0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;

		assert_int_equal(snapshot_from_json(rows[i].text, strlen(rows[i].text), &s), 0);
		assert_int_equal(s->sched.reserved_percent, rows[i].reserved_percent);
		assert_int_equal(s->sched.max_wait_ms, rows[i].max_wait_ms);
	}
}

/* The keys of older dashboards: merged over all processes, and always an object of numbers. */
static void check_legacy(const struct snapshot *s, u32 nr_memory, bool seen)
{
	static const char *const keys[] = {
		"cuda_latency_p50_us",	 "cuda_latency_p99_us",	   "nccl_allreduce_p50_ms",
		"nccl_allreduce_p99_ms", "dataloader_wait_p50_ms", "last_update_ms",
	};
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	yyjson_doc *doc;
	yyjson_val *root;

	assert_int_equal(snapshot_to_legacy_json(s, &text, &length), 0);
	doc = yyjson_read(text, length, 0);
	root = yyjson_doc_get_root(doc);
	assert_true(yyjson_is_obj(root));
	assert_int_equal(yyjson_obj_size(root), 7);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_true(yyjson_is_num(yyjson_obj_get(root, keys[i])));
		assert_int_equal(yyjson_get_num(yyjson_obj_get(root, keys[i])) > 0, seen);
	}
	assert_int_equal(yyjson_arr_size(yyjson_obj_get(root, "gpu_utilization")), nr_memory);
	yyjson_doc_free(doc);
}

static void test_legacy_keys(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *s = node_snapshot(&(struct node){ .nr_ranks = 8, .nr_operations = 1 });
	CLEANUP(snapshot_free_cleanup) struct snapshot *none = NULL;
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	check_legacy(s, 8, true);
	assert_int_equal(snapshot_to_legacy_json(s, &text, &length), 0);
	assert_non_null(strstr(text, "{\"key\":\"1003:3\",\"current_bytes\":32212254720,"
				     "\"peak_bytes\":42949672960}"));
	assert_int_equal(snapshot_new(&s->limits, &none), 0);
	check_legacy(none, 0, false);
}

/* All processes are included: a second process changes the median. */
static void test_legacy_merges_all_processes(void **state)
{
	struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	for (u32 i = 0; i < 2; i++) {
		struct snapshot_process *process = snapshot_add_process(s, i + 1);
		struct hist *hist = snapshot_add_hist(s, &process->hists, HIST_LAUNCH);

		for (u32 k = 0; k <= i; k++)
			hist_record(hist, i ? 4096 : 1024);
	}
	assert_int_equal(snapshot_to_legacy_json(s, &text, &length), 0);
	assert_non_null(strstr(text, "\"cuda_latency_p50_us\":4.096,"));
}

/* The values of a job stay after its end, as long as zerneld runs. */
static void test_legacy_keeps_values_of_exited_processes(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *before =
		node_snapshot(&(struct node){ .nr_ranks = 8, .nr_operations = 1 });
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
	CLEANUP_FREE char *text = NULL, *text_before = NULL;
	size_t length = 0;
	char *quantiles;

	assert_int_equal(snapshot_new(&before->limits, &s), 0);
	s->time_ms = before->time_ms;
	snapshot_carry(s, before);
	check_legacy(s, 0, true);
	assert_int_equal(snapshot_to_legacy_json(s, &text, &length), 0);
	assert_int_equal(snapshot_to_legacy_json(before, &text_before, &length), 0);
	quantiles = strstr(text, "\"last_update_ms\"");
	assert_string_equal(quantiles, strstr(text_before, "\"last_update_ms\""));
	print_message("# after the job: %s\n", quantiles);
}

static void test_an_unknown_gpu_is_reported_as_unknown(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *s = node_snapshot(&(struct node){ .nr_ranks = 2 });
	CLEANUP_FREE char *text = NULL, *legacy = NULL;
	size_t length = 0;

	s->processes[0].memory[0].gpu = SNAPSHOT_GPU_UNKNOWN;
	check_round_trip(s);
	assert_int_equal(snapshot_to_json(s, &text, &length), 0);
	assert_non_null(strstr(text, "\"memory\":[{\"gpu\":null,\"current_bytes\":32212254720,"));
	assert_int_equal(snapshot_to_legacy_json(s, &legacy, &length), 0);
	assert_non_null(strstr(legacy, "{\"key\":\"1000:unknown\",\"current_bytes\":32212254720,"));
	assert_non_null(strstr(legacy, "{\"key\":\"1001:1\","));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_node_makes_the_round_trip),
		cmocka_unit_test(test_a_snapshot_is_read_as_a_member_of_a_line),
		cmocka_unit_test(test_any_snapshot_makes_the_round_trip),
		cmocka_unit_test(test_text_that_is_not_a_snapshot_is_refused),
		cmocka_unit_test(test_a_too_large_snapshot_is_refused),
		cmocka_unit_test(test_a_large_node_makes_the_round_trip),
		cmocka_unit_test(test_unknown_keys_are_skipped),
		cmocka_unit_test(test_the_task_state_of_a_process),
		cmocka_unit_test(test_names_of_each_version),
		cmocka_unit_test(test_legacy_keys),
		cmocka_unit_test(test_legacy_merges_all_processes),
		cmocka_unit_test(test_legacy_keeps_values_of_exited_processes),
		cmocka_unit_test(test_an_unknown_gpu_is_reported_as_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
