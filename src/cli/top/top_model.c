/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/top/top_model.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"

static struct top_counters counters_of(const struct snapshot *snapshot,
				       const struct snapshot_process *process)
{
	const struct hist *step = snapshot_hist(snapshot, &process->hists, HIST_STEP);
	const struct hist *wait = snapshot_hist(snapshot, &process->hists, HIST_RUNQUEUE_WAIT);
	struct top_counters ret = {
		.time_ns = snapshot->monotonic_ns,
		.nr_steps = process->nr_steps,
		.nr_timed_steps = step ? step->count : 0,
		.timed_steps_ns = step ? step->sum : 0,
		.step_bases = process->step_basis ? 1U << process->step_basis : 0,
		.busy_ns = process->busy_ns,
		.blocked_ns = process->blocked_ns,
		.use = gpu_use_of(snapshot, process),
		.runqueue_wait = wait ? *wait : (struct hist){},
	};

	memcpy(ret.idle_ns, process->idle_ns, sizeof(ret.idle_ns));
	memcpy(ret.open_ns, process->open_ns, sizeof(ret.open_ns));
	return ret;
}

/* The counters of a restarted zerneld start at zero. */
static bool went_back(const struct top_counters *from, const struct top_counters *to)
{
	return to->time_ns < from->time_ns || to->nr_steps < from->nr_steps ||
	       to->nr_timed_steps < from->nr_timed_steps ||
	       to->runqueue_wait.count < from->runqueue_wait.count;
}

/* Times include the current interval, whose phase or cause can still change. */
static u64 grown(u64 from, u64 to)
{
	return to > from ? to - from : 0;
}

static struct idle_share share_between(const struct top_counters *from,
				       const struct top_counters *to)
{
	struct idle_span span = {
		.wall_ns = to->time_ns - from->time_ns,
		.busy_ns = grown(from->busy_ns, to->busy_ns),
		.blocked_ns = grown(from->blocked_ns, to->blocked_ns),
	};
	struct gpu_use_bounds use;

	for (u32 i = 0; i < IDLE_CAUSE_NR; i++) {
		span.idle_ns[i] = grown(from->idle_ns[i], to->idle_ns[i]);
		span.open_ns[i] = grown(from->open_ns[i], to->open_ns[i]);
	}
	return idle_share_of(&span, gpu_use_between(&from->use, &to->use, &use) ? &use : NULL);
}

static struct top_counters counters_between(const struct top_counters *from,
					    const struct top_counters *to)
{
	struct idle_share share = share_between(from, to);
	struct top_counters ret = {
		.time_ns = to->time_ns - from->time_ns,
		.nr_steps = to->nr_steps - from->nr_steps,
		.nr_timed_steps = to->nr_timed_steps - from->nr_timed_steps,
		.timed_steps_ns = to->timed_steps_ns - from->timed_steps_ns,
		.step_bases = to->step_bases,
		.busy_ns = share.watched_ns - share.idle_ns,
		.idle_min_ns = share.min_ns,
		.idle_max_ns = share.max_ns,
		.disagrees = share.disagrees,
		/* The minimum and maximum of all recorded values are bounds for the window. */
		.runqueue_wait = to->runqueue_wait,
	};

	memcpy(ret.idle_ns, share.cause_ns, sizeof(ret.idle_ns));
	ret.runqueue_wait.count -= from->runqueue_wait.count;
	ret.runqueue_wait.sum -= from->runqueue_wait.sum;
	for (u32 i = 0; i < HIST_SLOTS; i++)
		ret.runqueue_wait.buckets[i] -= from->runqueue_wait.buckets[i];
	return ret;
}

static void counters_add(struct top_counters *to, const struct top_counters *from)
{
	/* Only the time of processes with steps counts: the rate of a job is the mean of its ranks.
	 */
	to->time_ns += from->nr_steps ? from->time_ns : 0;
	to->nr_steps += from->nr_steps;
	to->nr_timed_steps += from->nr_timed_steps;
	to->timed_steps_ns += from->timed_steps_ns;
	to->step_bases |= from->nr_timed_steps ? from->step_bases : 0;
	to->busy_ns += from->busy_ns;
	for (u32 i = 0; i < IDLE_CAUSE_NR; i++)
		to->idle_ns[i] += from->idle_ns[i];
	to->idle_min_ns += from->idle_min_ns;
	to->idle_max_ns += from->idle_max_ns;
	to->disagrees |= from->disagrees;
	hist_add(&to->runqueue_wait, &from->runqueue_wait);
}

u64 top_idle_ns(const struct top_counters *window, u32 *ret_cause)
{
	u64 total = 0;
	u32 largest = 0;

	for (u32 i = 0; i < IDLE_CAUSE_NR; i++) {
		total += window->idle_ns[i];
		if (window->idle_ns[i] > window->idle_ns[largest])
			largest = i;
	}
	if (total)
		*ret_cause = largest;
	return total;
}

static void strip_add(struct top_process *process, u32 phase)
{
	process->strip[process->nr_strip++ % TOP_STRIP_MAX] = (u8)phase;
}

u32 top_strip(const struct top_process *process, u32 ago)
{
	if (ago >= process->nr_strip || ago >= TOP_STRIP_MAX)
		return TOP_STRIP_GAP;
	return process->strip[(process->nr_strip - 1 - ago) % TOP_STRIP_MAX];
}

/* The phase with most of the interval, or the current phase if no time was counted. */
static u32 phase_between(const u64 *from, const struct snapshot_process *to)
{
	u32 most = phase_of(to->phase);
	u64 most_ns = 0;

	for (u32 phase = 0; phase < PHASE_NR; phase++) {
		u64 ns = grown(from[phase], to->phase_ns[phase]);

		if (ns > most_ns) {
			most = phase;
			most_ns = ns;
		}
	}
	return most;
}

static void process_feed(struct top_process *process, const struct snapshot *snapshot,
			 const struct snapshot_process *from, bool advance)
{
	struct top_counters now = counters_of(snapshot, from);

	strip_add(process, phase_between(process->phase_ns, from));
	memcpy(process->phase_ns, from->phase_ns, sizeof(process->phase_ns));
	if (!process->latest.time_ns || went_back(&process->latest, &now))
		process->older = process->newer = now;
	process->latest = now;
	if (advance) {
		process->older = process->newer;
		process->newer = now;
	}
	process->window = counters_between(&process->older, &now);
	process->memory_bytes = 0;
	for (u32 i = 0; i < from->nr_memory; i++)
		process->memory_bytes += from->memory[i].book.current_bytes;
}

static struct top_node_counters node_counters_of(const struct snapshot *snapshot)
{
	struct top_node_counters ret = {
		.time_ns = snapshot->monotonic_ns,
		.cpu_ns = snapshot->cost.cpu_ns,
		.bpf_run_ns = snapshot->cost.bpf_run_ns,
	};

	for (u32 cls = 0; cls < CLASS_NR; cls++)
		for (u32 decision = 0; decision < DECISION_NR; decision++)
			ret.nr_decisions[cls] += snapshot->sched.classes[cls].nr[decision];
	return ret;
}

/* True when a mark is far enough back for a new one. */
static bool node_feed(struct top_model *model, const struct snapshot *snapshot)
{
	struct top_node_counters now = node_counters_of(snapshot);
	bool advance;

	if (!model->latest.time_ns || now.time_ns < model->latest.time_ns ||
	    now.cpu_ns < model->latest.cpu_ns)
		model->older = model->newer = now;
	model->latest = now;
	advance = now.time_ns - model->newer.time_ns >= TOP_WINDOW_NS;
	if (advance) {
		model->older = model->newer;
		model->newer = now;
	}
	model->window = (struct top_node_counters){
		.time_ns = now.time_ns - model->older.time_ns,
		.cpu_ns = grown(model->older.cpu_ns, now.cpu_ns),
		.bpf_run_ns = grown(model->older.bpf_run_ns, now.bpf_run_ns),
	};
	for (u32 i = 0; i < CLASS_NR; i++)
		model->window.nr_decisions[i] =
			grown(model->older.nr_decisions[i], now.nr_decisions[i]);
	return advance;
}

/* Moves the process out of the old list, or creates it. */
static struct top_process *take_process(struct top_model *model,
					const struct snapshot_process *from)
{
	struct top_process *process;

	for (u32 i = 0; i < model->nr_processes; i++) {
		process = model->processes[i];
		if (process && process->pid == from->pid && process->start_ns == from->start_ns)
			return TAKE_PTR(model->processes[i]);
	}
	process = calloc(1, sizeof(*process));
	if (process) {
		process->pid = from->pid;
		process->start_ns = from->start_ns;
		process->expanded = model->expand_new;
		/* Do not count the time before the first snapshot. */
		memcpy(process->phase_ns, from->phase_ns, sizeof(process->phase_ns));
	}
	return process;
}

static void free_processes(struct top_process **processes, u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		free(processes[i]);
	free(processes);
}

static int feed_processes(struct top_model *model, const struct snapshot *snapshot, bool advance)
{
	u32 nr = snapshot->nr_processes;
	struct top_process **processes = calloc(nr + 1, sizeof(*processes));

	if (!processes)
		return -ENOMEM;
	for (u32 i = 0; i < nr; i++) {
		processes[i] = take_process(model, &snapshot->processes[i]);
		if (!processes[i]) {
			free_processes(processes, i);
			return -ENOMEM;
		}
		process_feed(processes[i], snapshot, &snapshot->processes[i], advance);
	}
	free_processes(model->processes, model->nr_processes);
	model->processes = processes;
	model->nr_processes = nr;
	return 0;
}

static int feed_jobs(struct top_model *model, const struct snapshot *snapshot)
{
	struct top_job *jobs = calloc(snapshot->nr_jobs + 1, sizeof(*jobs));

	if (!jobs)
		return -ENOMEM;
	for (u32 i = 0; i < snapshot->nr_jobs; i++) {
		memcpy(jobs[i].cgroup, snapshot->jobs[i].cgroup, sizeof(jobs[i].cgroup));
		for (u32 k = 0; k < model->nr_jobs; k++)
			if (strcmp(model->jobs[k].cgroup, jobs[i].cgroup) == 0)
				jobs[i].collapsed = model->jobs[k].collapsed;
	}
	for (u32 i = 0; i < snapshot->nr_processes; i++) {
		u32 job = snapshot->processes[i].job;

		if (job == 0 || job > snapshot->nr_jobs)
			continue;
		jobs[job - 1].nr_processes++;
		jobs[job - 1].memory_bytes += model->processes[i]->memory_bytes;
		counters_add(&jobs[job - 1].window, &model->processes[i]->window);
	}
	free(model->jobs);
	model->jobs = jobs;
	model->nr_jobs = snapshot->nr_jobs;
	return 0;
}

int top_model_feed(struct top_model *model, struct snapshot *snapshot)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *owned = snapshot;
	int err;

	if (model->snapshot && model->snapshot->monotonic_ns == snapshot->monotonic_ns)
		return 0;
	err = feed_processes(model, snapshot, node_feed(model, snapshot));
	if (err == 0)
		err = feed_jobs(model, snapshot);
	if (err < 0) {
		/* The lists no longer match the previous snapshot. */
		top_model_done(model);
		return err;
	}
	snapshot_free(model->snapshot);
	model->snapshot = TAKE_PTR(owned);
	return 0;
}

void top_model_gap(struct top_model *model)
{
	for (u32 i = 0; i < model->nr_processes; i++) {
		strip_add(model->processes[i], TOP_STRIP_GAP);
		model->processes[i]->latest.time_ns = 0;
	}
	model->latest.time_ns = 0;
}

void top_model_expand(struct top_model *model, bool expanded)
{
	model->expand_new = expanded;
	for (u32 i = 0; i < model->nr_processes; i++)
		model->processes[i]->expanded = expanded;
}

void top_model_done(struct top_model *model)
{
	free_processes(model->processes, model->nr_processes);
	free(model->jobs);
	snapshot_free(model->snapshot);
	*model = (struct top_model){ .expand_new = model->expand_new };
}
