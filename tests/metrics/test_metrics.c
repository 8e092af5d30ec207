/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "metrics/metrics.h"
#include "metrics/prometheus.h"
#include "ipc/snapshot_json.h"
#include "metrics/node.h"
#include "support/timing.h"

/* Maximum time of a scrape, which includes the rendering. */
#define RENDER_MAX_MS	   5.0
#define NR_SHORT_PROCESSES 10000

static const char *const format_names[PROMETHEUS_FORMAT_NR] = { "text", "openmetrics", "protobuf" };

static u32 count_lines(const char *text)
{
	u32 nr = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		nr += *line != '#';
	return nr;
}

static struct snapshot *node(u32 nr_ranks, u32 nr_operations)
{
	return node_snapshot(&(struct node){ nr_ranks, nr_operations });
}

/* Prometheus creates one series per line of text. */
static u32 text_series(const struct snapshot *s)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	return count_lines(text);
}

static u32 left_out(const struct snapshot *s)
{
	CLEANUP(metrics_free_cleanup) struct metrics *m = NULL;

	assert_int_equal(metrics_new(s, &node_config, &m), 0);
	assert_int_equal(m->nr_counted, text_series(s));
	return m->nr_left_out;
}

/* Up to three operations, as data parallel training has, and the usual causes of idle time. */
static void test_eight_ranks_fit(void **state)
{
	for (u32 nr_operations = 0; nr_operations <= COLLECTIVE_NR; nr_operations++) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(8, nr_operations);
		u32 nr = text_series(s), nr_left_out = left_out(s);

		print_message("# 8 ranks, %u collective operations: %u series, %u left out\n",
			      nr_operations, nr, nr_left_out);
		assert_in_range(nr, 1, METRICS_SERIES_MAX);
		if (nr_operations <= 3)
			assert_int_equal(nr_left_out, 0);
	}
}

static void test_drops_are_counted_by_reason(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 0);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	for (u32 drop = 0; drop < DROP_NR; drop++)
		s->nr_dropped[drop] = 100 + drop;
	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	for (u32 drop = 0; drop < DROP_NR; drop++) {
		const char *label = snapshot_drop_label(drop);
		char line[96];

		snprintf(line, sizeof(line), "\nzernel_dropped_total{reason=\"%s\"} %u\n", label,
			 100 + drop);
		assert_int_equal(strstr(text, line) == NULL, strncmp(label, "snapshot_", 9) == 0);
	}
	assert_non_null(strstr(text, "\nzernel_dropped_total{reason=\"snapshot\"}"));
}

/* With every cause of idle time, only series of the last priority are left out. */
static void test_eight_ranks_with_all_causes_fit(void **state)
{
	for (u32 nr_operations = 0; nr_operations <= 3; nr_operations++) {
		CLEANUP(snapshot_free_cleanup)
		struct snapshot *s = node_snapshot(
			&(struct node){ 8, nr_operations, .nr_causes = IDLE_CAUSE_NR });
		CLEANUP(metrics_free_cleanup) struct metrics *m = NULL;

		assert_int_equal(metrics_new(s, &node_config, &m), 0);
		print_message("# 8 ranks, all causes, %u collective operations: %u series, %u left "
			      "out\n",
			      nr_operations, m->nr_counted, m->nr_left_out);
		assert_in_range(m->nr_counted, 1, METRICS_SERIES_MAX);
		for (u32 metric = 0; metric < METRIC_NR; metric++)
			if (metric_rows[metric].priority != PRIORITY_NR - 1)
				assert_int_equal(m->nr_left_out_of[metric], 0);
	}
}

struct shown {
	u32 nr_of[METRIC_NR]; /* number of struct metric_series */
};

/* Checks the properties that hold for every limit. */
static struct shown check_limit(const struct snapshot *s, u32 series_max)
{
	CLEANUP(metrics_free_cleanup) struct metrics *m = NULL;
	struct shown shown = {};
	u32 nr_left_out = 0;

	assert_int_equal(metrics_new(s, &(struct metrics_config){ series_max }, &m), 0);
	assert_in_range(m->nr_counted, 1, series_max);
	for (size_t i = 0; i < m->nr; i++) {
		shown.nr_of[m->series[i].metric]++;
		if (m->series[i].metric == METRIC_SERIES_LEFT_OUT)
			assert_int_equal(m->series[i].value, m->nr_left_out);
	}
	for (u32 metric = 0; metric < METRIC_NR; metric++)
		nr_left_out += m->nr_left_out_of[metric];
	assert_int_equal(nr_left_out, m->nr_left_out);
	assert_int_equal(shown.nr_of[METRIC_SERIES_LEFT_OUT], 1);
	for (u32 metric = 0; metric < METRIC_LEGACY_NR; metric++)
		assert_true(shown.nr_of[metric] > 0);
	/* Either all series of a process are shown, or no series. */
	assert_int_equal(shown.nr_of[METRIC_PHASE_TIME],
			 PHASE_NR * shown.nr_of[METRIC_LAUNCHER_RUNQUEUE]);
	assert_int_equal(shown.nr_of[METRIC_GPU_IDLE_TIME],
			 NODE_CAUSES * shown.nr_of[METRIC_GPU_BUSY_TIME]);
	assert_int_equal(shown.nr_of[METRIC_GPU_MEMORY_PEAK], shown.nr_of[METRIC_GPU_MEMORY_USED]);
	assert_int_equal(shown.nr_of[METRIC_CUDA_LAUNCH_LATENCY],
			 shown.nr_of[METRIC_DATALOADER_WAIT]);
	return shown;
}

static void test_no_limit_hides_a_family_of_dashboards(void **state)
{
	static const u32 limits[] = { METRICS_SERIES_LEAST, METRICS_SERIES_MAX, 1000, 100000 };

	for (u32 nr_ranks = 1; nr_ranks <= 64; nr_ranks += 9) {
		CLEANUP(snapshot_free_cleanup)
		struct snapshot *s = node(nr_ranks, COLLECTIVE_NR);

		for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
			check_limit(s, limits[i]);
	}
}

static void print_left_out(const struct metrics *m)
{
	print_message("# %u series, %u left out:\n", m->nr_counted, m->nr_left_out);
	for (u32 metric = 0; metric < METRIC_NR; metric++)
		if (m->nr_left_out_of[metric])
			print_message("#   %4u of %s\n", m->nr_left_out_of[metric],
				      metric_rows[metric].name);
}

/* 64 processes on 8 GPUs: the memory of each process is shown, and other series up to the limit. */
static void test_many_processes_show_the_important_series(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *s =
		node_snapshot(&(struct node){ .nr_ranks = 64, .nr_operations = 2, .nr_gpus = 8 });
	struct shown shown = check_limit(s, METRICS_SERIES_MAX);
	CLEANUP(metrics_free_cleanup) struct metrics *m = NULL;
	u32 last_pid = 0;

	assert_int_equal(metrics_new(s, &node_config, &m), 0);
	print_left_out(m);
	assert_int_equal(shown.nr_of[METRIC_GPU_MEMORY_USED], 64);
	assert_int_equal(shown.nr_of[METRIC_NCCL_COLLECTIVE_DURATION], 2);
	assert_int_equal(shown.nr_of[METRIC_COLLECTIVES], 2);
	assert_int_equal(shown.nr_of[METRIC_GPU_LAUNCH], 1);
	assert_int_equal(shown.nr_of[METRIC_GPU_BUSY], 8);
	assert_in_range(shown.nr_of[METRIC_DIST_SYNC_WAIT], 10, 63);
	assert_in_range(m->nr_counted, 380, METRICS_SERIES_MAX);
	/* The oldest processes stay. */
	for (size_t i = 0; i < m->nr; i++) {
		if (m->series[i].metric != METRIC_DIST_SYNC_WAIT)
			continue;
		assert_int_equal(m->series[i].labels.pid, last_pid ? last_pid + 1 : 1000);
		last_pid = m->series[i].labels.pid;
	}
	assert_int_equal(check_limit(s, 2000).nr_of[METRIC_DIST_SYNC_WAIT], 64);
}

/* When only the youngest process has a series of a family, this series is shown. */
static void test_the_only_series_of_a_family_is_shown(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(64, 1);
	struct hist hist = *snapshot_hist(s, &s->processes[0].hists, HIST_RANK_WAIT);
	u32 youngest = s->nr_processes - 3;

	for (u32 i = 0; i < s->nr_processes; i++)
		s->processes[i].hists.at[HIST_RANK_WAIT] = 0;
	assert_int_equal(s->processes[youngest].pid, 1063);
	*snapshot_add_hist(s, &s->processes[youngest].hists, HIST_RANK_WAIT) = hist;
	assert_int_equal(check_limit(s, METRICS_SERIES_LEAST).nr_of[METRIC_DIST_SYNC_WAIT], 1);
}

static void test_a_world_without_collectives_has_no_waits_for_ranks(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 0);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	assert_non_null(strstr(text, "zernel_sync_wait_seconds_count{"));
	assert_null(strstr(text, "zernel_dist_sync_wait_seconds{"));
	assert_non_null(strstr(text, "# TYPE zernel_dist_sync_wait_seconds summary\n"));
}

/* Calls and bytes of a job, including processes that exited. */
static void test_collectives_are_counted(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(2, 1);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	s->jobs[0].gone_collectives.nr[0] = 5;
	s->jobs[0].gone_collectives.bytes[0] = 7;
	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	assert_non_null(strstr(text, "\nzernel_collectives_total{job_name=\"slurm-42\","
				     "op=\"all_reduce\"} 2005\n"));
	assert_non_null(strstr(text, "\nzernel_collective_bytes_total{job_name=\"slurm-42\","
				     "op=\"all_reduce\"} 2097152007\n"));
	assert_null(strstr(text, "zernel_collectives_total{job_name=\"slurm-42\",op=\"broad"));
}

static void test_an_unknown_gpu_has_its_memory(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 0);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	s->processes[0].memory[0].gpu = SNAPSHOT_GPU_UNKNOWN;
	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	assert_non_null(strstr(text, "\nzernel_gpu_memory_used_bytes{pid=\"1000\","
				     "gpu_id=\"unknown\"} 32212254720\n"));
}

/* Ten thousand ML processes, a few at a time: each is shown, and its series end when it exits. */
static void test_short_processes_leave_nothing(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *now = node(8, 3), *before = node(8, 3);
	u32 nr_before = text_series(now), nr_shown = 0;

	for (u32 i = 0; i < NR_SHORT_PROCESSES; i++) {
		CLEANUP_FREE char *text = NULL;
		struct snapshot *spare = before;
		struct snapshot_process *process;
		char name[32];
		size_t length;

		before = now;
		now = spare;
		snapshot_clear(now);
		process = snapshot_add_process(now, 100000 + i);
		process->start_ns = i + 1;
		process->job = snapshot_add_job(now, "/batch", "batch");
		hist_record(snapshot_add_hist(now, &process->hists, HIST_SYNC_WAIT), 1000);
		snapshot_carry(now, before);
		assert_int_equal(
			prometheus_render(now, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
		snprintf(name, sizeof(name), "pid=\"%u\"", process->pid);
		nr_shown += strstr(text, name) != NULL;
		snprintf(name, sizeof(name), "pid=\"%u\"", process->pid - 1);
		assert_null(strstr(text, name));
	}
	assert_int_equal(nr_shown, NR_SHORT_PROCESSES);
	/* All samples of the job, including processes that exited. */
	assert_int_equal(snapshot_hist(now, &now->jobs[0].gone, HIST_SYNC_WAIT)->count,
			 NR_SHORT_PROCESSES - 1);
	assert_true(text_series(now) < nr_before);
	assert_int_equal(left_out(now), 0);
}

static void test_loaders_are_not_ranks(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 0);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	assert_null(strstr(text, "pid=\"2000\""));
	assert_non_null(strstr(text, "zernel_processes{phase=\"data_loading\"} 2\n"));
}

/* A process that exited but is still listed must not duplicate the series of its successor. */
static void test_a_pid_is_shown_once(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 0);
	CLEANUP_FREE char *text = NULL;
	struct snapshot_process *process = snapshot_add_process(s, s->processes[0].pid);
	size_t length = 0;

	process->start_ns = s->processes[0].start_ns + 1;
	snapshot_set_transitions(s, process, 77);
	process->phase_ns[PHASE_OPTIMIZER] = 5;
	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	assert_non_null(strstr(text, "zernel_phase_seconds_total{job_name=\"\",rank=\"\","
				     "pid=\"1000\",phase=\"optimizer_step\"} 0.000000005\n"));
	assert_null(strstr(text, "zernel_phase_seconds_total{job_name=\"slurm-42\""));
	/* The phase detector has counted both processes. */
	assert_non_null(strstr(text, "zernel_phase_detector_transitions_total 4077\n"));
}

/* A Slurm job has a cgroup for each step: they give one series, not two with the same name. */
static void test_jobs_with_the_same_name_are_merged(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(2, 1);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	char *found;

	s->processes[3].job = snapshot_add_job(s, "/slurm/job_42/step_1", "slurm-42");
	assert_int_equal(s->nr_jobs, 2);
	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	found = strstr(text, "zernel_gpu_launch_seconds_count{job_name=\"slurm-42\"} 2000\n");
	assert_non_null(found);
	assert_null(strstr(found + 1, "zernel_gpu_launch_seconds_count"));
}

static double now_ms(void)
{
	return (double)time_of_ns(CLOCK_THREAD_CPUTIME_ID) / 1e6;
}

/* Takes the shortest CPU time of several runs, because the machine can be busy. */
static void check_quick(const struct snapshot *s, u32 format)
{
	double best = 1e9;
	size_t length = 0;

	for (u32 i = 0; i < 20; i++) {
		CLEANUP_FREE char *text = NULL;
		double start = now_ms(), took;

		if (format < PROMETHEUS_FORMAT_NR)
			assert_int_equal(prometheus_render(s, &node_config, format, &text, &length),
					 0);
		else
			assert_int_equal(snapshot_to_json(s, &text, &length), 0);
		took = now_ms() - start;
		best = took < best ? took : best;
	}
	print_message("# 8 ranks as %s: %.2f ms, %zu bytes\n",
		      format < PROMETHEUS_FORMAT_NR ? format_names[format] : "JSON", best, length);
	timing_assert(best < RENDER_MAX_MS);
}

static void test_rendering_is_quick(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(8, 5);

	for (u32 format = 0; format <= PROMETHEUS_FORMAT_NR; format++)
		check_quick(s, format);
}

static void test_an_empty_snapshot_renders(void **state)
{
	struct snapshot_limits limits = {};
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	for (u32 format = 0; format < PROMETHEUS_FORMAT_NR; format++) {
		CLEANUP_FREE char *text = NULL;
		size_t length = 0;

		assert_int_equal(prometheus_render(s, &node_config, format, &text, &length), 0);
		assert_true(length > 0);
	}
	assert_int_equal(left_out(s), 0);
}

/* The rules of abi/metrics.def that apply to every row. */
static void test_the_table_of_metrics_is_valid(void **state)
{
	for (u32 i = 0; i < METRIC_NR; i++) {
		const struct metric_row *row = &metric_rows[i];
		const char *total = strstr(row->name, "_total");
		const char *unit = metric_unit_names[row->unit];

		assert_int_equal(strncmp(row->name, "zernel_", 7), 0);
		assert_int_equal(total != NULL, row->kind == KIND_COUNTER);
		if (*unit)
			assert_non_null(strstr(row->name, unit));
		assert_int_equal(row->help[strlen(row->help) - 1], '.');
		assert_null(strpbrk(row->help, "\\\"\n"));
		for (u32 k = 0; k < i; k++)
			assert_string_not_equal(row->name, metric_rows[k].name);
	}
}

/* Prometheus sets these labels and renames labels of the target with the same name. */
static const char *const own_labels[] = { "job", "instance" };

static void assert_refused(u32 state, u32 limit, const char *series)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 0);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	s->sched.state = state;
	s->sched.limit = limit;
	assert_int_equal(prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
	if (series)
		assert_non_null(strstr(text, series));
	else
		assert_null(strstr(text, "zernel_scheduler_refused{"));
}

static void test_the_nice_actuator_has_series_once_it_acted(void **state)
{
	for (u32 nr_changes = 0; nr_changes < 2; nr_changes++) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *s = node(1, 1);
		CLEANUP_FREE char *text = NULL;
		size_t length = 0;

		s->sched.nr_nice_changes = nr_changes;
		assert_int_equal(
			prometheus_render(s, &node_config, PROMETHEUS_TEXT, &text, &length), 0);
		assert_int_equal(!!strstr(text, "\nzernel_nice_acting 0\n"), nr_changes);
		assert_int_equal(!!strstr(text, "\nzernel_nice_changes_total 1\n"), nr_changes);
		assert_int_equal(!!strstr(text, "\nzernel_nice_lost_total 0\n"), nr_changes);
	}
}

static void test_a_refused_scheduler_has_its_reason(void **state)
{
	assert_refused(SCHED_OFF, CPU_LIMIT_CPU_MAX,
		       "\nzernel_scheduler_refused{reason=\"cpu_max\"} 1\n");
	assert_refused(SCHED_OFF, CPU_LIMIT_CGROUP_V1,
		       "\nzernel_scheduler_refused{reason=\"cgroup_v1\"} 1\n");
	assert_refused(SCHED_OFF, CPU_LIMIT_UNVERIFIED,
		       "\nzernel_scheduler_refused{reason=\"unverified\"} 1\n");
	assert_refused(SCHED_OFF, CPU_LIMIT_NONE, NULL);
	assert_refused(SCHED_ATTACHED, CPU_LIMIT_CPU_MAX, NULL);
}

/* The six families that existing dashboards use are the first ones. */
static void test_labels_match_the_metric(void **state)
{
	for (u32 i = 0; i < METRIC_NR; i++) {
		u32 labels = metric_rows[i].labels;

		assert_true(i == METRIC_GPU_INFO || !(labels & 1U << LABEL_UUID));
		assert_true(i == METRIC_BUILD_INFO || !(labels & 1U << LABEL_VERSION));
		assert_true(i == METRIC_BUILD_INFO || !(labels & 1U << LABEL_KERNEL_RELEASE));
		assert_true(i <= METRIC_DIST_SYNC_WAIT || !(labels & 1U << LABEL_GPU_ID));
		assert_true(i > METRIC_DIST_SYNC_WAIT || !(labels & 1U << LABEL_GPU));
	}
	for (u32 label = 0; label < LABEL_NR; label++)
		for (size_t i = 0; i < ARRAY_SIZE(own_labels); i++)
			assert_string_not_equal(metric_label_names[label], own_labels[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eight_ranks_fit),
		cmocka_unit_test(test_drops_are_counted_by_reason),
		cmocka_unit_test(test_eight_ranks_with_all_causes_fit),
		cmocka_unit_test(test_a_refused_scheduler_has_its_reason),
		cmocka_unit_test(test_the_nice_actuator_has_series_once_it_acted),
		cmocka_unit_test(test_no_limit_hides_a_family_of_dashboards),
		cmocka_unit_test(test_many_processes_show_the_important_series),
		cmocka_unit_test(test_the_only_series_of_a_family_is_shown),
		cmocka_unit_test(test_a_world_without_collectives_has_no_waits_for_ranks),
		cmocka_unit_test(test_collectives_are_counted),
		cmocka_unit_test(test_an_unknown_gpu_has_its_memory),
		cmocka_unit_test(test_short_processes_leave_nothing),
		cmocka_unit_test(test_loaders_are_not_ranks),
		cmocka_unit_test(test_a_pid_is_shown_once),
		cmocka_unit_test(test_jobs_with_the_same_name_are_merged),
		cmocka_unit_test(test_rendering_is_quick),
		cmocka_unit_test(test_an_empty_snapshot_renders),
		cmocka_unit_test(test_the_table_of_metrics_is_valid),
		cmocka_unit_test(test_labels_match_the_metric),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
