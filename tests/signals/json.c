/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The JSON report: one object per line, once a second, and once more with "final" true
 * after the command has ended.
 *
 * {
 *   "time_ns": N, "final": BOOL,
 *   "processes": [ {
 *     "pid": N, "start_ns": N, "comm": TEXT, "ended": BOOL,
 *     "rank": N or null, "nr_ranks": N, "consumer_pid": N or null,
 *     "gpu": N or null, "phase": LABEL,
 *     "launches": N, "syncs": N, "copies": N,       calls of the program itself
 *     "driver": { "launches": N, "syncs": N, "copies": N },  all calls at the driver level
 *     "phases_ns": { LABEL: N, ... }, "transitions": N,
 *     "data_wait_ns": N, "runqueue_wait_ns": N, "io_wait_ns": N,
 *     "steps": N, "step_basis": LABEL, "step": WAIT,
 *     "busy_ns": N, "idle_ns": { CAUSE: N, ... },
 *     "open_ns": { CAUSE: N, ... },                 the GPU may have been idle
 *     "blocked_ns": N, "pending_ns": N,
 *     "culprits": [ { "cause": CAUSE, "name": TEXT, "ns": N }, ... ],
 *     "sync_wait": WAIT, "rank_wait": WAIT, "loader_wait": WAIT, "runqueue_wait": WAIT,
 *     "memory": [ { "level": "runtime" or "driver",
 *                   "device": N (the process's number), or null for pinned host memory,
 *                   "gpu": N (the machine's number), or null,
 *                   "current_bytes": N, "peak_bytes": N, "allocs": N, "frees": N }, ... ],
 *     "collectives": { OPERATION: { "count": N, "bytes": N, "wait": WAIT }, ... }
 *   }, ... ],
 *   "threads": [ { "tid": N, "tgid": N, "start_ns": N, "comm": TEXT, "role": LABEL,
 *                  "runqueue_wait_ns": N, "io_wait_ns": N }, ... ],
 *   "dropped": { "events": N, "processes": N, "frames": N, "samples": N, "comms": N,
 *                "memory": N, "bpf_program_runs": N, "maps": N }
 * }
 *
 * WAIT is { "count": N, "sum_ns": N, "p50_ns": N, "p99_ns": N }, all 0 without a sample.
 * "collectives" contains the operations that were called, "memory" the accounts with an
 * entry.
 */
#include <errno.h>
#include <stdlib.h>
#include <yyjson.h>
#include "base/cleanup.h"
#include "core/snapshot.h"
#include "signals/report.h"

/* A process name may contain any bytes, but JSON requires text. */
static void add_name(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key,
		     const char comm[COMM_LEN])
{
	char text[COMM_LEN + 1] = "";

	for (u32 i = 0; i < COMM_LEN && comm[i]; i++)
		text[i] = comm[i] >= ' ' && comm[i] <= '~' ? comm[i] : '?';
	yyjson_mut_obj_add_strcpy(doc, to, key, text);
}

static void add_comm(yyjson_mut_doc *doc, yyjson_mut_val *to, const char comm[COMM_LEN])
{
	add_name(doc, to, "comm", comm);
}

static void add_maybe(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key, bool is_known,
		      s64 value)
{
	if (is_known)
		yyjson_mut_obj_add_sint(doc, to, key, value);
	else
		yyjson_mut_obj_add_null(doc, to, key);
}

static void add_wait(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key,
		     const struct hist *hist)
{
	yyjson_mut_val *wait = yyjson_mut_obj_add_obj(doc, to, key);

	yyjson_mut_obj_add_uint(doc, wait, "count", hist->count);
	yyjson_mut_obj_add_uint(doc, wait, "sum_ns", hist->sum);
	yyjson_mut_obj_add_uint(doc, wait, "p50_ns", hist_quantile(hist, 500));
	yyjson_mut_obj_add_uint(doc, wait, "p99_ns", hist_quantile(hist, 990));
}

static void add_calls(yyjson_mut_doc *doc, yyjson_mut_val *to, const struct process_state *state)
{
	yyjson_mut_val *driver;

	yyjson_mut_obj_add_uint(doc, to, "launches", launches_by_program(state));
	yyjson_mut_obj_add_uint(doc, to, "syncs", calls_by_program(state->nr_syncs));
	yyjson_mut_obj_add_uint(doc, to, "copies", calls_by_program(state->nr_copies));
	driver = yyjson_mut_obj_add_obj(doc, to, "driver");
	yyjson_mut_obj_add_uint(doc, driver, "launches", state->nr_launches[LEVEL_DRIVER]);
	yyjson_mut_obj_add_uint(doc, driver, "syncs", state->nr_syncs[LEVEL_DRIVER]);
	yyjson_mut_obj_add_uint(doc, driver, "copies", state->nr_copies[LEVEL_DRIVER]);
}

static void add_phases(yyjson_mut_doc *doc, yyjson_mut_val *to, const struct process_state *state)
{
	yyjson_mut_val *phases = yyjson_mut_obj_add_obj(doc, to, "phases_ns");

	for (u32 phase = 0; phase < PHASE_NR; phase++)
		yyjson_mut_obj_add_uint(doc, phases, phase_label(phase),
					state->task.phase_ns[phase]);
	yyjson_mut_obj_add_uint(doc, to, "transitions", process_nr_transitions(state));
}

static void add_causes(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key,
		       const u64 cause_ns[IDLE_CAUSE_NR])
{
	yyjson_mut_val *causes = yyjson_mut_obj_add_obj(doc, to, key);

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		yyjson_mut_obj_add_uint(doc, causes, idle_cause_label(cause), cause_ns[cause]);
}

static void add_account(yyjson_mut_doc *doc, yyjson_mut_val *to,
			const struct report_process *process)
{
	const struct process_state *state = &process->state;
	yyjson_mut_val *list;

	yyjson_mut_obj_add_uint(doc, to, "steps", state->step.nr_steps);
	yyjson_mut_obj_add_str(doc, to, "step_basis", step_basis_label(state->step.basis));
	yyjson_mut_obj_add_uint(doc, to, "busy_ns", state->idle.busy_ns);
	add_causes(doc, to, "idle_ns", state->idle.done.cause_ns);
	add_causes(doc, to, "open_ns", state->idle.open.cause_ns);
	yyjson_mut_obj_add_uint(doc, to, "blocked_ns", state->idle.blocked_ns);
	yyjson_mut_obj_add_uint(doc, to, "pending_ns",
				state->idle.done.pending_ns + state->idle.open.pending_ns);
	list = yyjson_mut_obj_add_arr(doc, to, "culprits");
	for (u32 i = 0; i < process->nr_culprits; i++) {
		yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, list);

		yyjson_mut_obj_add_str(doc, one, "cause",
				       idle_cause_label(process->culprits[i].key.cause));
		add_name(doc, one, "name", process->culprits[i].key.name);
		yyjson_mut_obj_add_uint(doc, one, "ns", process->culprits[i].ns);
	}
}

static void add_collectives(yyjson_mut_doc *doc, yyjson_mut_val *to,
			    const struct report_process *process)
{
	yyjson_mut_val *all = yyjson_mut_obj_add_obj(doc, to, "collectives");

	for (u32 op = 0; op < COLLECTIVE_NR; op++) {
		yyjson_mut_val *one;

		if (!process->state.nr_collectives[op])
			continue;
		one = yyjson_mut_obj_add_obj(doc, all, operation_label(op));
		yyjson_mut_obj_add_uint(doc, one, "count", process->state.nr_collectives[op]);
		yyjson_mut_obj_add_uint(doc, one, "bytes", process->state.collective_bytes[op]);
		add_wait(doc, one, "wait", &process->hists[HIST_COLLECTIVE + op]);
	}
}

static void add_book(yyjson_mut_doc *doc, yyjson_mut_val *to, u32 level, s32 device,
		     const struct memory_book *book)
{
	yyjson_mut_val *one;

	if (!book->nr_allocs)
		return;
	one = yyjson_mut_arr_add_obj(doc, to);
	yyjson_mut_obj_add_str(doc, one, "level", level == LEVEL_RUNTIME ? "runtime" : "driver");
	add_maybe(doc, one, "device", device >= 0, device);
	yyjson_mut_obj_add_uint(doc, one, "current_bytes", book->current_bytes);
	yyjson_mut_obj_add_uint(doc, one, "peak_bytes", book->peak_bytes);
	yyjson_mut_obj_add_uint(doc, one, "allocs", book->nr_allocs);
	yyjson_mut_obj_add_uint(doc, one, "frees", book->nr_frees);
}

static void add_books(yyjson_mut_doc *doc, yyjson_mut_val *to, const struct report_process *process)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, to, "memory");

	for (u32 level = 0; level < LEVEL_NR; level++) {
		for (u32 device = 0; device < GPU_MAX; device++)
			add_book(doc, list, level, (s32)device,
				 &process->state.books[level][device]);
		add_book(doc, list, level, -1, &process->state.host_books[level]);
	}
}

static void add_process(yyjson_mut_doc *doc, yyjson_mut_val *to,
			const struct report_process *process)
{
	const struct process_state *state = &process->state;
	yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, to);

	yyjson_mut_obj_add_uint(doc, one, "pid", state->task.pid);
	yyjson_mut_obj_add_uint(doc, one, "start_ns", state->start_ns);
	add_comm(doc, one, state->comm);
	yyjson_mut_obj_add_bool(doc, one, "ended", process->has_ended);
	add_maybe(doc, one, "rank", state->nr_ranks > 0, state->rank);
	yyjson_mut_obj_add_uint(doc, one, "nr_ranks", state->nr_ranks);
	add_maybe(doc, one, "consumer_pid", state->consumer_tgid > 0, state->consumer_tgid);
	add_maybe(doc, one, "gpu", state->task.has_gpu, state->task.gpu_id);
	yyjson_mut_obj_add_str(doc, one, "phase", phase_label(state->task.phase));
	add_calls(doc, one, state);
	add_phases(doc, one, state);
	yyjson_mut_obj_add_uint(doc, one, "data_wait_ns", state->data_wait_ns);
	yyjson_mut_obj_add_uint(doc, one, "runqueue_wait_ns", state->runqueue_wait_ns);
	yyjson_mut_obj_add_uint(doc, one, "io_wait_ns", state->io_wait_ns);
	add_account(doc, one, process);
	add_wait(doc, one, "step", &process->hists[HIST_STEP]);
	add_wait(doc, one, "launch", &process->hists[HIST_LAUNCH]);
	add_wait(doc, one, "sync_wait", &process->hists[HIST_SYNC_WAIT]);
	add_wait(doc, one, "rank_wait", &process->hists[HIST_RANK_WAIT]);
	add_wait(doc, one, "loader_wait", &process->hists[HIST_LOADER_WAIT]);
	add_wait(doc, one, "runqueue_wait", &process->hists[HIST_RUNQUEUE_WAIT]);
	add_books(doc, one, process);
	add_collectives(doc, one, process);
}

static void add_thread(yyjson_mut_doc *doc, yyjson_mut_val *to, const struct thread_record *thread)
{
	yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, to);

	yyjson_mut_obj_add_uint(doc, one, "tid", thread->tid);
	yyjson_mut_obj_add_uint(doc, one, "tgid", thread->tgid);
	yyjson_mut_obj_add_uint(doc, one, "start_ns", thread->start_ns);
	add_comm(doc, one, thread->comm);
	yyjson_mut_obj_add_str(doc, one, "role", role_label(thread->role));
	yyjson_mut_obj_add_uint(doc, one, "runqueue_wait_ns", thread->runqueue_wait_ns);
	yyjson_mut_obj_add_uint(doc, one, "io_wait_ns", thread->io_wait_ns);
}

static void add_drops(yyjson_mut_doc *doc, yyjson_mut_val *to, const struct report *report)
{
	yyjson_mut_val *dropped = yyjson_mut_obj_add_obj(doc, to, "dropped");

	yyjson_mut_obj_add_uint(doc, dropped, "events", report->drops.nr_events);
	yyjson_mut_obj_add_uint(doc, dropped, "processes", report->drops.nr_processes);
	yyjson_mut_obj_add_uint(doc, dropped, "frames", report->drops.nr_frames);
	yyjson_mut_obj_add_uint(doc, dropped, "samples", report->drops.nr_samples);
	yyjson_mut_obj_add_uint(doc, dropped, "comms", report->drops.nr_comms);
	yyjson_mut_obj_add_uint(doc, dropped, "memory", report->drops.nr_memory);
	yyjson_mut_obj_add_uint(doc, dropped, "bpf_program_runs",
				report->drops.nr_bpf_program_runs);
	yyjson_mut_obj_add_uint(doc, dropped, "maps", report->nr_lost_maps);
}

int json_print(const struct report *report, FILE *out)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	CLEANUP_FREE char *text = NULL;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "time_ns", report->now_ns);
	yyjson_mut_obj_add_bool(doc, root, "final", report->is_final);
	list = yyjson_mut_obj_add_arr(doc, root, "processes");
	for (u32 i = 0; i < report->nr_processes; i++)
		add_process(doc, list, &report->processes[i]);
	list = yyjson_mut_obj_add_arr(doc, root, "threads");
	for (u32 i = 0; i < report->nr_threads; i++)
		add_thread(doc, list, &report->threads[i]);
	add_drops(doc, root, report);
	text = yyjson_mut_write(doc, YYJSON_WRITE_NEWLINE_AT_END, NULL);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	return fputs(text, out) < 0 || fflush(out) ? -errno : 0;
}
