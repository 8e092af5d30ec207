/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "signals/report.h"

/* Makes room for one more element: the array doubles whenever `nr` is a power of two. */
static void *grow(void *array, u32 nr, size_t size)
{
	if (nr & (nr - 1))
		return array;
	return reallocarray(array, nr ? 2 * (size_t)nr : 1, size);
}

static struct report_process *process_append(struct report *report)
{
	struct report_process *all =
		grow(report->processes, report->nr_processes, sizeof(*report->processes));

	if (!all)
		return NULL;
	report->processes = all;
	return &all[report->nr_processes++];
}

int report_add_thread(struct report *report, const struct thread_record *thread)
{
	struct thread_record *all =
		grow(report->threads, report->nr_threads, sizeof(*report->threads));

	if (!all)
		return -ENOMEM;
	report->threads = all;
	all[report->nr_threads++] = *thread;
	return 0;
}

static void add_culprits(struct kernel *kernel, struct report_process *process)
{
	CLEANUP_FREE struct kernel_culprit *all = NULL;
	u32 nr;

	if (!process->state.launcher_tid || kernel_read_culprits(kernel, &all, &nr) < 0)
		return;
	for (u32 i = 0; i < nr && process->nr_culprits < CULPRITS_MAX; i++)
		if (all[i].key.tgid == process->state.task.pid &&
		    all[i].key.start_ns == process->state.start_ns)
			process->culprits[process->nr_culprits++] = all[i];
}

int report_add_process(struct report *report, struct kernel *kernel,
		       const struct process_state *process, bool has_ended)
{
	struct report_process *added = process_append(report);

	if (!added)
		return -ENOMEM;
	*added = (struct report_process){ .state = *process, .has_ended = has_ended };
	for (u32 kind = 0; kind < HIST_KIND_NR; kind++)
		if (kernel_read_hist(kernel, process, kind, &added->hists[kind]) < 0)
			memset(&added->hists[kind], 0, sizeof(added->hists[kind]));
	add_culprits(kernel, added);
	return 0;
}

/* A process that ended is still in the map until its parent reaps it. */
static bool has_process(const struct report *report, const struct process_state *process)
{
	for (u32 i = 0; i < report->nr_processes; i++)
		if (report->processes[i].state.task.pid == process->task.pid &&
		    report->processes[i].state.start_ns == process->start_ns)
			return true;
	return false;
}

static bool has_thread(const struct report *report, const struct thread_record *thread)
{
	for (u32 i = 0; i < report->nr_threads; i++)
		if (report->threads[i].tid == thread->tid &&
		    report->threads[i].start_ns == thread->start_ns)
			return true;
	return false;
}

static int add_ended(struct report *report, const struct report *ended)
{
	int err = 0;

	for (u32 i = 0; i < ended->nr_processes; i++) {
		struct report_process *added = process_append(report);

		if (!added)
			return -ENOMEM;
		*added = ended->processes[i];
	}
	for (u32 i = 0; i < ended->nr_threads && err == 0; i++)
		err = report_add_thread(report, &ended->threads[i]);
	return err;
}

static int add_living(struct report *report, const struct report *ended, struct kernel *kernel,
		      const struct kernel_snapshot *snapshot)
{
	int err = 0;

	for (u32 i = 0; i < snapshot->nr_processes && err == 0; i++) {
		struct process_state process = snapshot->processes[i];

		if (has_process(ended, &process))
			continue;
		task_transition(&process.task, process.task.phase, report->now_ns);
		idle_settle(&process.idle, report->now_ns);
		err = report_add_process(report, kernel, &process, false);
	}
	for (u32 i = 0; i < snapshot->nr_threads && err == 0; i++)
		if (!has_thread(ended, &snapshot->threads[i]))
			err = report_add_thread(report, &snapshot->threads[i]);
	return err;
}

int report_take(const struct report *ended, struct kernel *kernel, u64 now_ns, struct report *ret)
{
	struct report report = { .now_ns = now_ns, .drops = kernel_drops(kernel) };
	struct kernel_snapshot snapshot = {};
	int err = kernel_snapshot_read(kernel, &snapshot);

	if (err == 0)
		err = add_ended(&report, ended);
	if (err == 0)
		err = add_living(&report, ended, kernel, &snapshot);
	kernel_snapshot_done(&snapshot);
	if (err < 0)
		report_done(&report);
	else
		*ret = report;
	return err;
}

void report_done(struct report *report)
{
	free(report->processes);
	free(report->threads);
	*report = (struct report){};
}

u64 launches_by_program(const struct process_state *state)
{
	/* A launch of the driver inside of one of the runtime is not counted. */
	return state->nr_launches[LEVEL_RUNTIME] + state->nr_launches[LEVEL_DRIVER];
}

u64 calls_by_program(const u64 counts[LEVEL_NR])
{
	/* A call of the runtime is seen in the driver as soon as that is mapped. */
	return counts[LEVEL_RUNTIME] > counts[LEVEL_DRIVER] ? counts[LEVEL_RUNTIME]
							    : counts[LEVEL_DRIVER];
}
