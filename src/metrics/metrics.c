/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "metrics/metrics.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "core/process.h"
#include "metrics/metrics_internal.h"
#include "metrics/metrics_limit.h"

static struct metric_series *add(struct metrics *m, enum metric metric,
				 const struct metric_labels *labels)
{
	struct metric_series *series;

	if (metric < METRIC_LEGACY_NR && m->config.without_legacy)
		return NULL;
	if (m->nr == m->nr_allocated) {
		size_t nr = m->nr_allocated ? 2 * m->nr_allocated : 512;

		series = m->failed ? NULL : reallocarray(m->series, nr, sizeof(*series));
		if (!series) {
			m->failed = true;
			return NULL;
		}
		m->series = series;
		m->nr_allocated = nr;
	}
	series = &m->series[m->nr++];
	*series = (struct metric_series){
		.metric = metric,
		.unit = m->nr_units,
		.labels = *labels,
	};
	return series;
}

void metrics_add_value(struct metrics *m, enum metric metric, const struct metric_labels *labels,
		       u64 value)
{
	struct metric_series *series = add(m, metric, labels);

	if (series)
		series->value = value;
}

static void add_hist(struct metrics *m, enum metric metric, const struct metric_labels *labels,
		     const struct hist *hist)
{
	struct metric_series *series = hist && hist->count ? add(m, metric, labels) : NULL;

	if (series)
		series->hist = hist;
}

void metrics_add_owned(struct metrics *m, enum metric metric, const struct metric_labels *labels,
		       struct hist *hist)
{
	struct metric_series *series = hist->count ? add(m, metric, labels) : NULL;

	if (!series) {
		free(hist);
		return;
	}
	series->hist = series->owned = hist;
}

/* A count that is zero is left out: the series of eight ranks must fit into the default limit. */
static void add_count(struct metrics *m, enum metric metric, const char *kind, u64 nr)
{
	if (nr)
		metrics_add_value(m, metric, &(struct metric_labels){ .kind = kind }, nr);
}

static void add_processes_by_phase(struct metrics *m, const struct snapshot *s)
{
	u64 nr[PHASE_NR] = {};

	for (u32 i = 0; i < s->nr_processes; i++)
		nr[phase_of(s->processes[i].phase)]++;
	for (u32 phase = 0; phase < PHASE_NR; phase++)
		metrics_add_value(m, METRIC_PROCESSES,
				  &(struct metric_labels){ .kind = phase_label(phase) }, nr[phase]);
}

static void add_processes_by_basis(struct metrics *m, const struct snapshot *s)
{
	u64 nr[STEP_BASIS_NR] = {};

	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].step_basis < STEP_BASIS_NR)
			nr[s->processes[i].step_basis]++;
	for (u32 basis = STEP_BASIS_NONE + 1; basis < STEP_BASIS_NR; basis++)
		add_count(m, METRIC_STEP_PROCESSES, step_basis_label(basis), nr[basis]);
}

/* One series for all that did not fit in a snapshot: zernel status has it by kind. */
static void add_drops(struct metrics *m, const struct snapshot *s)
{
	u64 nr_snapshot = 0;

	for (u32 drop = 0; drop < DROP_NR; drop++)
		if (drop >= DROP_SNAPSHOT_PROCESSES && drop <= DROP_SNAPSHOT_COMMS)
			nr_snapshot += s->nr_dropped[drop];
		else
			add_count(m, METRIC_DROPPED, snapshot_drop_label(drop),
				  s->nr_dropped[drop]);
	add_count(m, METRIC_DROPPED, "snapshot", nr_snapshot);
	if (s->nr_restarts)
		metrics_add_value(m, METRIC_RESTARTS, &(struct metric_labels){}, s->nr_restarts);
}

static void add_gpus(struct metrics *m, const struct snapshot *s)
{
	for (u32 i = 0; i < s->nr_gpus; i++) {
		const struct snapshot_gpu *gpu = &s->gpus[i];
		struct metric_labels labels = { .gpu = gpu->gpu,
						.uuid = gpu->uuid,
						.model = gpu->model };

		m->nr_units++;
		metrics_add_value(m, METRIC_GPU_INFO, &labels, 1);
		if (gpu->valid & SNAPSHOT_GPU_BUSY)
			metrics_add_value(m, METRIC_GPU_BUSY, &labels, gpu->busy_percent);
		if (gpu->valid & SNAPSHOT_GPU_MEMORY_USED)
			metrics_add_value(m, METRIC_GPU_DEVICE_MEMORY, &labels,
					  gpu->memory_used_bytes);
	}
}

/*
 * The decisions that the scheduler makes for a class. The others are always 0. Eight ranks must fit
 * into the default limit: tasks of the system and of the idle class have only their CPU time, and a
 * distribution, which has many series, only tasks that feed a GPU and ordinary tasks.
 */
#define BIT(class) (1U << (class))
#define ML_CLASSES                                                                                 \
	(BIT(CLASS_FEEDER) | BIT(CLASS_WANTED_LOADER) | BIT(CLASS_LATE_LOADER) |                   \
	 BIT(CLASS_LOADER) | BIT(CLASS_SPINNER))

static const struct {
	enum metric metric;
	u32 classes;
} sched_decisions[] = {
	[DECISION_IDLE_CPU] = { METRIC_SCHEDULER_IDLE_CPU, ML_CLASSES | BIT(CLASS_ORDINARY) },
	[DECISION_QUEUED] = { METRIC_SCHEDULER_QUEUED, ML_CLASSES | BIT(CLASS_ORDINARY) },
	[DECISION_PREEMPTED] = { METRIC_SCHEDULER_PREEMPTED, BIT(CLASS_ORDINARY) |
								     BIT(CLASS_FEEDER) |
								     BIT(CLASS_WANTED_LOADER) },
	[DECISION_PROMOTED] = { METRIC_SCHEDULER_PROMOTED, BIT(CLASS_FEEDER) |
								   BIT(CLASS_WANTED_LOADER) |
								   BIT(CLASS_LATE_LOADER) },
	[DECISION_OVERDUE] = { METRIC_SCHEDULER_OVERDUE, ML_CLASSES | BIT(CLASS_ORDINARY) },
	[DECISION_SLICE_EXTENDED] = { METRIC_SCHEDULER_SLICE_EXTENDED,
				      ML_CLASSES | BIT(CLASS_ORDINARY) },
};

static void add_class(struct metrics *m, const struct snapshot_class *class, u32 cls)
{
	struct metric_labels labels = { .kind = sched_class_label(cls) };

	m->nr_units++;
	for (u32 i = 0; i < ARRAY_SIZE(sched_decisions); i++)
		if (sched_decisions[i].classes & BIT(cls))
			metrics_add_value(m, sched_decisions[i].metric, &labels, class->nr[i]);
	metrics_add_value(m, METRIC_SCHEDULER_RUN, &labels, class->ran_ns);
	if (cls == CLASS_ORDINARY || cls == CLASS_FEEDER)
		add_hist(m, METRIC_RUNQUEUE_WAIT, &labels, &class->runqueue_wait);
}

static void add_scheduler(struct metrics *m, const struct snapshot_sched *sched)
{
	u64 nr_capped = 0, nr_throttled = 0;

	for (u32 cls = 0; cls < CLASS_NR; cls++) {
		nr_capped += sched->classes[cls].nr[DECISION_CAPPED];
		nr_throttled += sched->classes[cls].nr[DECISION_THROTTLED];
		add_class(m, &sched->classes[cls], cls);
	}
	add_count(m, METRIC_SCHEDULER_CAPPED, NULL, nr_capped);
	add_count(m, METRIC_SCHEDULER_THROTTLED, NULL, nr_throttled);
}

/* A series without labels. */
struct plain {
	enum metric metric;
	u64 value;
};

static void add_plain(struct metrics *m, const struct plain *plain, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		metrics_add_value(m, plain[i].metric, &(struct metric_labels){}, plain[i].value);
}

/* Only if it ever acted, because the other series of the node use up the default limit. */
static void add_nice(struct metrics *m, const struct snapshot_sched *sched)
{
	bool acts = sched->actuator == ACTUATOR_NICE;
	const struct plain plain[] = {
		{ METRIC_NICE_ACTING, acts },
		{ METRIC_NICE_THREADS, sched->nr_nice_threads },
		{ METRIC_NICE_CHANGES, sched->nr_nice_changes },
		{ METRIC_NICE_DROPPED, sched->nr_nice_dropped },
		{ METRIC_NICE_LOST, sched->nr_nice_lost },
	};

	if (acts || sched->nr_nice_changes)
		add_plain(m, plain, ARRAY_SIZE(plain));
}

static void add_node(struct metrics *m, const struct snapshot *s)
{
	const struct plain plain[] = {
		{ METRIC_SCHEDULER_ATTACHED, s->sched.state == SCHED_ATTACHED },
		{ METRIC_SCHEDULER_EJECTED, s->sched.state == SCHED_EJECTED },
		{ METRIC_SCHEDULER_EJECTIONS, s->sched.nr_ejected },
		{ METRIC_DETECTOR_TRANSITIONS, s->nr_transitions },
		{ METRIC_LEARNING_PROFILES, s->learning.nr_profiles },
		{ METRIC_LEARNING_CONFIDENT, s->learning.nr_confident },
		{ METRIC_LEARNING_OBSERVATIONS, s->learning.nr_observations },
		{ METRIC_SNAPSHOT_TIMESTAMP, s->time_ms * NSEC_PER_MSEC },
		{ METRIC_DAEMON_CPU, s->cost.cpu_ns },
		{ METRIC_DAEMON_MEMORY, s->cost.rss_bytes },
		{ METRIC_BPF_RUN, s->cost.bpf_run_ns },
	};

	add_plain(m, plain, ARRAY_SIZE(plain));
	metrics_add_value(
		m, METRIC_BUILD_INFO,
		&(struct metric_labels){ .version = s->version, .kernel_release = s->kernel }, 1);
	add_processes_by_phase(m, s);
	add_processes_by_basis(m, s);
	for (u32 role = 0; role < ROLE_NR; role++)
		add_count(m, METRIC_THREADS, role_label(role), s->nr_role[role]);
	/* Only while it is refused, because the other series of the node use up the default limit.
	 */
	if (s->sched.state == SCHED_OFF && s->sched.limit != CPU_LIMIT_NONE)
		metrics_add_value(
			m, METRIC_SCHEDULER_REFUSED,
			&(struct metric_labels){ .kind = cpu_limit_label(s->sched.limit) }, 1);
	add_nice(m, &s->sched);
	add_drops(m, s);
	add_gpus(m, s);
	add_scheduler(m, &s->sched);
}

static void add_process(struct metrics *m, const struct snapshot *s,
			const struct snapshot_process *process)
{
	const struct snapshot_job *job = snapshot_job(s, process);
	struct metric_labels labels = {
		.pid = process->pid,
		.has_rank = process->nr_ranks > 0,
		.rank = process->rank,
		.job = job ? job->name : "",
	};
	const struct hist *runqueue = snapshot_hist(s, &process->hists, HIST_RUNQUEUE_WAIT);

	m->nr_units++;
	for (u32 i = 0; i < process->nr_memory; i++) {
		labels.gpu = process->memory[i].gpu;
		metrics_add_value(m, METRIC_GPU_MEMORY_USED, &labels,
				  process->memory[i].book.current_bytes);
		metrics_add_value(m, METRIC_GPU_MEMORY_PEAK, &labels,
				  process->memory[i].book.peak_bytes);
	}
	add_hist(m, METRIC_CUDA_LAUNCH_LATENCY, &labels,
		 snapshot_hist(s, &process->hists, HIST_LAUNCH));
	add_hist(m, METRIC_DATALOADER_WAIT, &labels,
		 snapshot_hist(s, &process->hists, HIST_LOADER_WAIT));
	add_hist(m, METRIC_DIST_SYNC_WAIT, &labels,
		 snapshot_hist(s, &process->hists, HIST_RANK_WAIT));
	metrics_add_value(m, METRIC_LAUNCHER_RUNQUEUE, &labels, runqueue ? runqueue->sum : 0);
	for (u32 phase = 0; phase < PHASE_NR; phase++) {
		labels.kind = phase_label(phase);
		metrics_add_value(m, METRIC_PHASE_TIME, &labels, process->phase_ns[phase]);
	}
}

static int by_age(const void *a, const void *b, void *snapshot)
{
	const struct snapshot *s = snapshot;
	const struct snapshot_process *one = &s->processes[*(const u32 *)a];
	const struct snapshot_process *other = &s->processes[*(const u32 *)b];

	if (one->start_ns != other->start_ns)
		return one->start_ns < other->start_ns ? -1 : 1;
	return one->pid < other->pid ? -1 : one->pid > other->pid;
}

/*
 * Loaders are not shown: their phase never changes, and their work is visible at their
 * consumer. A process is not shown either when a younger process has the same pid: the
 * older process has exited, but is not removed from the snapshot yet.
 */
static bool is_shown(const struct snapshot *s, const struct snapshot_process *process)
{
	if (process->consumer_pid)
		return false;
	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == process->pid &&
		    s->processes[i].start_ns > process->start_ns)
			return false;
	return true;
}

static int add_processes(struct metrics *m, const struct snapshot *s)
{
	CLEANUP_FREE u32 *order = calloc(s->nr_processes + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (u32 i = 0; i < s->nr_processes; i++)
		order[i] = i;
	qsort_r(order, s->nr_processes, sizeof(*order), by_age, (void *)s);
	for (u32 i = 0; i < s->nr_processes; i++)
		if (is_shown(s, &s->processes[order[i]]))
			add_process(m, s, &s->processes[order[i]]);
	return metrics_add_ranks(m, s, order);
}

/* A stable sort: the series of a metric keep their order. */
static int sort_by_metric(struct metrics *m)
{
	struct metric_series *sorted = calloc(m->nr + 1, sizeof(*sorted));
	size_t at[METRIC_NR + 1] = {};

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr; i++)
		at[m->series[i].metric + 1]++;
	for (u32 metric = 0; metric < METRIC_NR; metric++)
		at[metric + 1] += at[metric];
	for (size_t i = 0; i < m->nr; i++)
		sorted[at[m->series[i].metric]++] = m->series[i];
	free(m->series);
	m->series = sorted;
	return 0;
}

static int add_all(struct metrics *m, const struct snapshot *s)
{
	add_node(m, s);
	metrics_add_jobs(m, s);
	return add_processes(m, s);
}

int metrics_new(const struct snapshot *s, const struct metrics_config *config, struct metrics **ret)
{
	CLEANUP(metrics_free_cleanup) struct metrics *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->buckets = &metric_buckets[config->dense_buckets];
	err = add_all(m, s);
	if (err == 0)
		/* the number of series left out is a series too */
		err = metrics_limit(m, config->series_max - 1);
	metrics_add_value(m, METRIC_SERIES_LEFT_OUT, &(struct metric_labels){}, m->nr_left_out);
	m->nr_counted++;
	if (err == 0)
		err = sort_by_metric(m);
	if (err < 0 || m->failed)
		return -ENOMEM;
	*ret = TAKE_PTR(m);
	return 0;
}

struct metrics *metrics_free(struct metrics *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->nr; i++)
		free(m->series[i].owned);
	free(m->series);
	free(m);
	return NULL;
}
