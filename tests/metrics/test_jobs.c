/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The series of jobs and ranks, and what an operator can choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "metrics/node.h"
#include "metrics/prometheus.h"

static struct snapshot *node(u32 nr_ranks, u32 nr_operations)
{
	return node_snapshot(&(struct node){ nr_ranks, nr_operations });
}

static void test_without_legacy_families_everything_fits(void **state)
{
	struct metrics_config config = node_config;

	config.without_legacy = true;
	for (u32 nr_operations = 0; nr_operations <= COLLECTIVE_NR; nr_operations++) {
		CLEANUP(snapshot_free_cleanup)
		struct snapshot *s = node_snapshot(
			&(struct node){ 8, nr_operations, .nr_causes = IDLE_CAUSE_NR });
		CLEANUP(metrics_free_cleanup) struct metrics *m = NULL;

		assert_int_equal(metrics_new(s, &config, &m), 0);
		for (size_t i = 0; i < m->nr; i++)
			assert_true(m->series[i].metric >= METRIC_LEGACY_NR);
		print_message(
			"# 8 ranks, all causes, %u collective operations, no legacy families: "
			"%u series\n",
			nr_operations, m->nr_counted);
		assert_int_equal(m->nr_left_out, 0);
	}
}

/* Dense buckets: eight for each power of ten, with the counts of the same histogram. */
static void test_dense_buckets(void **state)
{
	const struct metrics_config config = { .series_max = 1000, .dense_buckets = true };
	const struct metric_buckets *dense = &metric_buckets[true];
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(8, 3);
	CLEANUP(metrics_free_cleanup) struct metrics *m = NULL;
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	u32 nr = 0;

	assert_int_equal(metrics_new(s, &config, &m), 0);
	print_message("# 8 ranks, 3 collective operations, dense buckets: %u series\n",
		      m->nr_counted);
	assert_int_equal(m->nr_left_out, 0);
	for (u32 i = 1; i < dense->nr; i++) {
		assert_true(dense->bounds[i] > dense->bounds[i - 1]);
		assert_true(dense->slots[i] > dense->slots[i - 1]);
		nr += dense->bounds[i - 1] > 0.009 && dense->bounds[i - 1] < 0.09;
	}
	assert_int_equal(nr, 8);
	assert_int_equal(prometheus_render(s, &config, PROMETHEUS_TEXT, &text, &length), 0);
	assert_non_null(strstr(text,
			       "\nzernel_step_seconds_bucket{job_name=\"slurm-42\",le=\"1.0\"} "
			       "8000\n"));
}

static void assert_series(const struct snapshot *s, const char *series, bool expected)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	if (!strstr(text, series) == expected)
		fail_msg("%s %s in:\n%s", series, expected ? "missing" : "unexpected", text);
}

/* Processes of a rank, also ended ones, are one series. */
static void test_ranks_have_gpu_time_and_steps(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(2, 0);
	struct snapshot_ranks *gone = &s->jobs[0].gone_ranks;

	gone->nr = 2;
	gone->ranks[0] = (struct snapshot_rank){ .is_known = true, .rank = 1 };
	gone->ranks[0].account.nr_steps = 100;
	gone->ranks[0].account.idle_ns[IDLE_RUNQUEUE] = NSEC_PER_SEC;
	gone->ranks[1].account.open_ns = 3 * NSEC_PER_SEC;
	assert_series(s, "\nzernel_steps_total{job_name=\"slurm-42\",rank=\"0\"} 20\n", true);
	assert_series(s, "\nzernel_steps_total{job_name=\"slurm-42\",rank=\"1\"} 120\n", true);
	assert_series(s,
		      "\nzernel_gpu_idle_seconds_total{job_name=\"slurm-42\",rank=\"1\","
		      "cause=\"runqueue\"} 1.002\n",
		      true);
	assert_series(s, "rank=\"1\",cause=\"memory\"}", false);
	assert_series(s, "\nzernel_gpu_busy_seconds_total{job_name=\"slurm-42\",rank=\"0\"} 0.85\n",
		      true);
	assert_series(s, "\nzernel_gpu_open_seconds_total{job_name=\"slurm-42\",rank=\"0\"} 0.05\n",
		      true);
	assert_series(s, "\nzernel_gpu_open_seconds_total{job_name=\"slurm-42\",rank=\"\"} 3\n",
		      true);
	assert_series(s, "\nzernel_step_seconds_count{job_name=\"slurm-42\"} 2000\n", true);
}

/* The usual step of the node takes about 112 ms. */
static void test_a_job_without_steps_is_stuck(void **state)
{
	static const char stuck[] = "\nzernel_job_stuck{job_name=\"slurm-42\"} ";
	static const struct {
		u64 since_ms;
		bool is_stuck;
	} cases[] = { { 0, false }, { 9999, false }, { 10000, true }, { 100000, true } };
	char line[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(2, 0);

		s->monotonic_ns += cases[i].since_ms * NSEC_PER_MSEC;
		snprintf(line, sizeof(line), "%s%d\n", stuck, cases[i].is_stuck);
		assert_series(s, line, true);
	}
}

/* A job whose steps take 5 s may need 50 s for one. */
static void test_a_slow_job_is_not_stuck(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 0);
	struct hist *steps = snapshot_add_hist(s, &s->processes[0].hists, HIST_STEP);

	*steps = (struct hist){};
	hist_record_times(steps, 5 * NSEC_PER_SEC, 100);
	s->monotonic_ns += 40 * NSEC_PER_SEC;
	assert_series(s, "\nzernel_job_stuck{job_name=\"slurm-42\"} 0\n", true);
	s->monotonic_ns += 20 * NSEC_PER_SEC;
	assert_series(s, "\nzernel_job_stuck{job_name=\"slurm-42\"} 1\n", true);
	s->processes[0].step_basis = STEP_BASIS_ITERATION;
	assert_series(s, "\nzernel_job_stuck{", false);
}

/* Only a rank that has entered no collective and ended no step for 10 s has these series. */
static void test_ranks_that_stopped_have_a_number(void **state)
{
	static const char numbers[] =
		"\nzernel_collective_sequence{job_name=\"slurm-42\",rank=\"0\"} 20\n"
		"zernel_collective_sequence{job_name=\"slurm-42\",rank=\"1\"} 19\n";
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(2, 1);

	s->comms[1].nr = 19;
	s->comms[1].calls[0].operation = 3;
	s->monotonic_ns += 9900 * NSEC_PER_MSEC;
	assert_series(s, "\nzernel_collective_", true);
	assert_series(s, "\nzernel_collective_sequence", false);
	s->monotonic_ns += 200 * NSEC_PER_MSEC;
	assert_series(s, numbers, true);
	assert_series(s, "\nzernel_collective_operation{job_name=\"slurm-42\",rank=\"1\"} 3\n",
		      true);
	/* A rank whose steps end runs. */
	s->processes[0].stepped_ns = s->monotonic_ns;
	assert_series(s, "\nzernel_collective_sequence{job_name=\"slurm-42\",rank=\"0\"}", false);
	assert_series(s, "\nzernel_collective_sequence{job_name=\"slurm-42\",rank=\"1\"} 19\n",
		      true);
	/* Not yet a collective: there is no operation. */
	s->comms[1].nr = s->comms[1].nr_calls = 0;
	assert_series(s, "\nzernel_collective_sequence{job_name=\"slurm-42\",rank=\"1\"} 0\n",
		      true);
	assert_series(s, "\nzernel_collective_operation{", false);
	/* Other communicators of the rank do not count. */
	s->comms[1].is_world = 0;
	assert_series(s, "\nzernel_collective_sequence{", false);
}

/* While eight ranks have stopped, only series of the last priority are left out. */
static void test_eight_ranks_that_stopped_fit(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(8, 3);
	CLEANUP(metrics_free_cleanup) struct metrics *m = NULL;
	u32 nr = 0;

	s->monotonic_ns += 60 * NSEC_PER_SEC;
	assert_int_equal(metrics_new(s, &node_config, &m), 0);
	for (size_t i = 0; i < m->nr; i++)
		nr += m->series[i].metric == METRIC_COLLECTIVE_SEQUENCE ||
		      m->series[i].metric == METRIC_COLLECTIVE_OPERATION;
	assert_int_equal(nr, 2 * 8);
	print_message("# 8 ranks that stopped, 3 collective operations: %u series, %u left out\n",
		      m->nr_counted, m->nr_left_out);
	for (u32 metric = 0; metric < METRIC_NR; metric++)
		if (metric_rows[metric].priority != PRIORITY_NR - 1)
			assert_int_equal(m->nr_left_out_of[metric], 0);
}

/* Two jobs can have one name: a series must not appear twice. */
static void test_one_number_for_each_rank(void **state)
{
	static const char line[] =
		"\nzernel_collective_sequence{job_name=\"slurm-42\",rank=\"0\"} ";
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(2, 1);
	char *text = NULL, *first;
	size_t length;

	s->monotonic_ns += 60 * NSEC_PER_SEC;
	s->comms[1].rank = 0;
	s->comms[1].nr = 5;
	s->comms[1].made_ns++;
	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	first = strstr(text, line);
	assert_non_null(first);
	assert_memory_equal(first + sizeof(line) - 1, "5\n", 2);
	assert_null(strstr(first + 1, line));
	free(text);
}

static void test_jobs_and_gpus_are_described(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 0);

	assert_series(
		s,
		"\nzernel_job_info{job_name=\"slurm-42\",cgroup=\"/slurm/job_42/step_0\","
		"namespace=\"\",pod=\"\",container=\"\",user=\"4000000001\",claimed_name=\"train\","
		"claimed_account=\"phys\"} 1\n",
		true);
	strcpy(s->jobs[0].names.namespace, "ml");
	strcpy(s->jobs[0].names.pod, "trainer-0");
	strcpy(s->jobs[0].names.container_name, "main");
	assert_series(s, ",namespace=\"ml\",pod=\"trainer-0\",container=\"main\",user=", true);
	s->jobs[0].uid = SNAPSHOT_UID_UNKNOWN;
	assert_series(s, ",user=\"\",", true);
	s->jobs[0].uid = 0;
	assert_series(s, ",user=\"root\",", true);
	assert_series(s,
		      "\nzernel_gpu_info{gpu=\"0\",uuid=\"GPU-0000\",model=\"Virtual GPU "
		      "80GB\"} 1\n",
		      true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_legacy_families_everything_fits),
		cmocka_unit_test(test_dense_buckets),
		cmocka_unit_test(test_ranks_have_gpu_time_and_steps),
		cmocka_unit_test(test_a_job_without_steps_is_stuck),
		cmocka_unit_test(test_a_slow_job_is_not_stuck),
		cmocka_unit_test(test_ranks_that_stopped_have_a_number),
		cmocka_unit_test(test_eight_ranks_that_stopped_fit),
		cmocka_unit_test(test_one_number_for_each_rank),
		cmocka_unit_test(test_jobs_and_gpus_are_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
