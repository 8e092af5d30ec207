/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "metrics/prometheus.h"
#include "metrics/node.h"

static struct snapshot *make(void)
{
	struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	struct snapshot *s = NULL;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	return s;
}

static char *render(const struct snapshot *s, enum prometheus_format format)
{
	char *text = NULL;
	size_t length = 0;

	assert_int_equal(prometheus_render(s, &node_config, format, &text, &length), 0);
	assert_int_equal(strlen(text), length);
	return text;
}

static void assert_has(const char *text, const char *line)
{
	if (!strstr(text, line))
		print_error("# missing: %s\n", line);
	assert_non_null(strstr(text, line));
}

static void test_labels_are_escaped(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = NULL;
	struct snapshot_process *process = snapshot_add_process(s, 7);

	process->job = snapshot_add_job(s, "/x", "a\"b\\c\nd\xff");
	text = render(s, PROMETHEUS_TEXT);
	assert_has(
		text,
		"zernel_launcher_runqueue_seconds_total{job_name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\","
		"rank=\"\",pid=\"7\"} 0\n");
}

static void test_values_are_exact(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = NULL;
	struct snapshot_gpu *gpu = snapshot_add_gpu(s, 3);

	gpu->valid = SNAPSHOT_GPU_BUSY;
	gpu->busy_percent = 7;
	s->time_ms = 1700000000120;
	s->cost.cpu_ns = 1;
	s->cost.bpf_run_ns = 18446744073709551615ULL;
	s->cost.rss_bytes = 18446744073709551615ULL;
	text = render(s, PROMETHEUS_TEXT);
	assert_has(text, "\nzernel_gpu_busy_ratio{gpu=\"3\"} 0.07\n");
	assert_has(text, "\nzernel_snapshot_timestamp_seconds 1700000000.12\n");
	assert_has(text, "\nzernel_daemon_cpu_seconds_total 0.000000001\n");
	assert_has(text, "\nzernel_bpf_run_seconds_total 18446744073.709551615\n");
	assert_has(text, "\nzernel_daemon_resident_memory_bytes 18446744073709551615\n");
	/* A missing value is left out; it is not written as zero. */
	assert_null(strstr(text, "zernel_gpu_device_memory_used_bytes{"));
}

/* A query that joins by GPU must find each GPU, so the series exists also without a UUID. */
static void test_each_gpu_has_its_info(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = NULL;
	struct snapshot_gpu *gpu = snapshot_add_gpu(s, 3);

	strcpy(gpu->uuid, "GPU-\"1");
	snapshot_add_gpu(s, 4);
	text = render(s, PROMETHEUS_TEXT);
	assert_has(text, "# TYPE zernel_gpu_info gauge\n"
			 "zernel_gpu_info{gpu=\"3\",uuid=\"GPU-\\\"1\",model=\"\"} 1\n"
			 "zernel_gpu_info{gpu=\"4\",uuid=\"\",model=\"\"} 1\n");
}

static void test_the_build_has_its_info(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = NULL;

	strcpy(s->version, "0.1.0");
	strcpy(s->kernel, "6.18.0");
	text = render(s, PROMETHEUS_TEXT);
	assert_has(text, "\nzernel_build_info{version=\"0.1.0\",kernel_release=\"6.18.0\"} 1\n");
}

#define LAUNCH_QUANTILE(q) "\nzernel_cuda_launch_latency_seconds{pid=\"7\",quantile=\"" q "\"} "

/* Checks a value within the error bound of the histogram. */
static void check_value(const char *text, const char *name, double exact)
{
	double value;

	assert_has(text, name);
	value = strtod(strstr(text, name) + strlen(name), NULL);
	assert_true(value > exact / 1.091 && value < exact * 1.091);
}

/* 1 us to 100 us in steps of 1 us, and their classic buckets. */
static void test_summary_and_histogram_agree(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = NULL;
	struct snapshot_process *process = snapshot_add_process(s, 7);
	struct hist *hist = snapshot_add_hist(s, &process->hists, HIST_LAUNCH);

	process->job = snapshot_add_job(s, "/x", "x");
	for (u64 i = 1; i <= 100; i++)
		hist_record(hist, i * 1000);
	text = render(s, PROMETHEUS_TEXT);
	assert_has(text, "# TYPE zernel_cuda_launch_latency_seconds summary\n");
	check_value(text, LAUNCH_QUANTILE("0.5"), 51e-6);
	check_value(text, LAUNCH_QUANTILE("0.99"), 100e-6);
	assert_has(text, "zernel_cuda_launch_latency_seconds_sum{pid=\"7\"} 0.00505\n");
	assert_has(text, "zernel_cuda_launch_latency_seconds_count{pid=\"7\"} 100\n");
	assert_has(text, "# TYPE zernel_gpu_launch_seconds histogram\n");
	assert_has(
		text,
		"zernel_gpu_launch_seconds_bucket{job_name=\"x\",le=\"1.52587890625e-05\"} 15\n");
	assert_has(text,
		   "zernel_gpu_launch_seconds_bucket{job_name=\"x\",le=\"0.000244140625\"} 100\n");
	assert_has(text, "zernel_gpu_launch_seconds_bucket{job_name=\"x\",le=\"1.0\"} 100\n");
	assert_has(text, "zernel_gpu_launch_seconds_bucket{job_name=\"x\",le=\"+Inf\"} 100\n");
	assert_has(text, "zernel_gpu_launch_seconds_sum{job_name=\"x\"} 0.00505\n");
	assert_has(text, "zernel_gpu_launch_seconds_count{job_name=\"x\"} 100\n");
}

/* Count and buckets are read while they are written; the output must still be consistent. */
static void test_a_torn_histogram_is_consistent(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = NULL;

	hist_record(&s->sched.classes[CLASS_FEEDER].runqueue_wait, 1000);
	s->sched.classes[CLASS_FEEDER].runqueue_wait.count = 5;
	text = render(s, PROMETHEUS_TEXT);
	assert_has(text, "zernel_runqueue_wait_seconds_bucket{class=\"feeder\",le=\"+Inf\"} 1\n");
	assert_has(text, "zernel_runqueue_wait_seconds_count{class=\"feeder\"} 1\n");
}

static void test_openmetrics_differs_from_text(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = render(s, PROMETHEUS_OPENMETRICS);

	assert_has(text, "# TYPE zernel_daemon_cpu_seconds counter\n"
			 "# UNIT zernel_daemon_cpu_seconds seconds\n"
			 "zernel_daemon_cpu_seconds_total 0\n");
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
}

static void test_every_family_has_help_and_type(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node_snapshot(&(struct node){ 2, 2 });
	CLEANUP_FREE char *text = render(s, PROMETHEUS_TEXT);
	char *before = NULL, *at = NULL;
	u32 nr = 0;

	for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
		if (strncmp(line, "# TYPE ", 7) == 0) {
			size_t length = strcspn(line + 7, " ");

			assert_int_equal(strncmp(before, "# HELP ", 7), 0);
			assert_int_equal(strncmp(before + 7, line + 7, length + 1), 0);
			nr++;
		}
		before = line;
	}
	assert_in_range(nr, 30, 100);
}

/* Every format has the header of a family before its first series exists. */
static void test_empty_families_have_a_header(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = render(s, PROMETHEUS_TEXT), *protobuf = NULL;
	CLEANUP_FREE char *openmetrics = render(s, PROMETHEUS_OPENMETRICS);
	size_t length = 0;
	char line[128];

	assert_int_equal(
		prometheus_render(s, &node_config, PROMETHEUS_PROTOBUF, &protobuf, &length), 0);
	for (u32 i = 0; i < METRIC_NR; i++) {
		const char *name = metric_rows[i].name;
		size_t nr = strlen(name) - (metric_rows[i].kind == KIND_COUNTER ? 6 : 0);

		snprintf(line, sizeof(line), "# HELP %s ", name);
		assert_has(text, line);
		snprintf(line, sizeof(line), "# TYPE %s ", name);
		assert_has(text, line);
		snprintf(line, sizeof(line), "# TYPE %.*s ", (int)nr, name);
		assert_has(openmetrics, line);
		assert_non_null(memmem(protobuf, length, name, strlen(name)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_are_escaped),
		cmocka_unit_test(test_values_are_exact),
		cmocka_unit_test(test_each_gpu_has_its_info),
		cmocka_unit_test(test_the_build_has_its_info),
		cmocka_unit_test(test_summary_and_histogram_agree),
		cmocka_unit_test(test_a_torn_histogram_is_consistent),
		cmocka_unit_test(test_openmetrics_differs_from_text),
		cmocka_unit_test(test_every_family_has_help_and_type),
		cmocka_unit_test(test_empty_families_have_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
