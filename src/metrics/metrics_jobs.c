/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The series of jobs and of collectives. */
#include <stdlib.h>
#include <string.h>
#include "core/process.h"
#include "metrics/metrics_internal.h"

/* A job is stuck when it has no step for this many times its usual step. */
#define STUCK_STEPS  10
/* And for at least this long: snapshots are a second apart. */
#define STUCK_MIN_NS (10 * NSEC_PER_SEC)

static void merge(struct hist *to, const struct snapshot *s, const struct snapshot_hists *from,
		  u32 kind)
{
	const struct hist *hist = snapshot_hist(s, from, kind);

	if (hist)
		hist_add(to, hist);
}

/*
 * Merges the histograms of all jobs with this name, or of all processes when it is NULL. Processes
 * that exited are included. Several jobs can have one name: a Slurm job has a cgroup for each of
 * its steps.
 */
static void merge_all(struct hist *merged, const struct snapshot *s, const char *name, u32 kind)
{
	if (!name)
		merge(merged, s, &s->gone, kind);
	for (u32 i = 0; name && i < s->nr_jobs; i++)
		if (strcmp(s->jobs[i].name, name) == 0)
			merge(merged, s, &s->jobs[i].gone, kind);
	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_job *job = snapshot_job(s, &s->processes[i]);

		if (!name || (job && strcmp(job->name, name) == 0))
			merge(merged, s, &s->processes[i].hists, kind);
	}
}

static void add_merged(struct metrics *m, const struct snapshot *s, enum metric metric,
		       const struct metric_labels *labels, u32 kind)
{
	struct hist *merged = calloc(1, sizeof(*merged));

	if (!merged) {
		m->failed = true;
		return;
	}
	merge_all(merged, s, labels->job, kind);
	metrics_add_owned(m, metric, labels, merged);
}

/* The name of a job, or NULL when an earlier job has the same name. */
static const char *next_name(const struct snapshot *s, u32 job)
{
	for (u32 i = 0; i < job; i++)
		if (strcmp(s->jobs[i].name, s->jobs[job].name) == 0)
			return NULL;
	return s->jobs[job].name;
}

/*
 * The time of the last step of a job, or 0. Iterations of inference are no sign of life: a server
 * without requests has none.
 */
static u64 last_step(const struct snapshot *s, const char *name)
{
	u64 last_ns = 0;

	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_process *process = &s->processes[i];
		const struct snapshot_job *job = snapshot_job(s, process);

		if (job && strcmp(job->name, name) == 0 &&
		    process->step_basis != STEP_BASIS_ITERATION && process->stepped_ns > last_ns)
			last_ns = process->stepped_ns;
	}
	return last_ns;
}

static void add_stuck(struct metrics *m, const struct snapshot *s,
		      const struct metric_labels *labels)
{
	u64 last_ns = last_step(s, labels->job), usual_ns, since_ns;
	struct hist steps = {};

	if (!last_ns)
		return;
	merge_all(&steps, s, labels->job, HIST_STEP);
	usual_ns = hist_quantile(&steps, 500);
	since_ns = s->monotonic_ns > last_ns ? s->monotonic_ns - last_ns : 0;
	metrics_add_value(m, METRIC_JOB_STUCK, labels,
			  since_ns >= STUCK_MIN_NS && since_ns / STUCK_STEPS >= usual_ns);
}

static void add_job(struct metrics *m, const struct snapshot *s, const struct snapshot_job *job)
{
	struct metric_labels labels = { .job = job->name, .info = job };

	m->nr_units++;
	metrics_add_value(m, METRIC_JOB_INFO, &labels, 1);
	add_stuck(m, s, &labels);
	add_merged(m, s, METRIC_STEP, &labels, HIST_STEP);
	add_merged(m, s, METRIC_GPU_LAUNCH, &labels, HIST_LAUNCH);
	add_merged(m, s, METRIC_LOADER_WAIT, &labels, HIST_LOADER_WAIT);
	add_merged(m, s, METRIC_SYNC_WAIT, &labels, HIST_SYNC_WAIT);
}

/* Adds up the calls of all jobs with this name, including processes that exited. */
static void add_calls(struct metrics *m, const struct snapshot *s,
		      const struct metric_labels *labels, u32 operation)
{
	u64 nr = 0, bytes = 0;

	for (u32 i = 0; i < s->nr_jobs; i++) {
		const struct snapshot_collectives *gone = &s->jobs[i].gone_collectives;

		if (strcmp(s->jobs[i].name, labels->job) != 0)
			continue;
		nr += gone->nr[operation];
		bytes += gone->bytes[operation];
	}
	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_job *job = snapshot_job(s, &s->processes[i]);

		if (!job || strcmp(job->name, labels->job) != 0)
			continue;
		nr += s->processes[i].collectives.nr[operation];
		bytes += s->processes[i].collectives.bytes[operation];
	}
	if (!nr)
		return;
	metrics_add_value(m, METRIC_COLLECTIVES, labels, nr);
	metrics_add_value(m, METRIC_COLLECTIVE_BYTES, labels, bytes);
}

static void add_operation(struct metrics *m, const struct snapshot *s, u32 operation)
{
	struct metric_labels labels = { .kind = operation_label(operation) };
	u32 kind = HIST_COLLECTIVE + operation;

	m->nr_units++;
	add_merged(m, s, METRIC_NCCL_COLLECTIVE_DURATION, &labels, kind);
	for (u32 i = 0; i < s->nr_jobs; i++) {
		labels.job = next_name(s, i);
		if (!labels.job)
			continue;
		m->nr_units++;
		add_merged(m, s, METRIC_COLLECTIVE, &labels, kind);
		add_calls(m, s, &labels, operation);
	}
}

void metrics_add_jobs(struct metrics *m, const struct snapshot *s)
{
	for (u32 i = 0; i < s->nr_jobs; i++)
		if (next_name(s, i))
			add_job(m, s, &s->jobs[i]);
	for (u32 operation = 0; operation < COLLECTIVE_NR; operation++)
		add_operation(m, s, operation);
}
