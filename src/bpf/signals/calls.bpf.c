// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Launches, copies, syncs and collectives: the calls that are phase boundaries.
 *
 * Each kind of call has a program at its entry, and one at its return if the
 * return matters. A launch costs only an entry probe. If the launch changes no
 * state, which is the usual case, the program only finds the process and counts.
 * Some launches are timed, on kernels where the entry can decide whether the
 * return is traced (core/launch.h).
 *
 * Trusts nothing that the process passes: arguments are only counted, and user
 * memory is read with helpers that may fail. A failed launch, copy or sync is
 * counted as a call and changes no account (feed.bpf.h).
 *
 * Accepted races: the thread that launches work writes the phase of its process.
 * If two threads of a process do so at the same moment, a few microseconds can be
 * booked to the wrong phase. Counts are atomic. The races of collectives are
 * described in collectives.bpf.h.
 */
#include "bpf/signals/collectives.bpf.h"
#include "bpf/signals/feed.bpf.h"
#include "bpf/signals/launches.bpf.h"
#include "bpf/signals/sequence.bpf.h"
#include "abi/lines.h"
#include "bpf/compat.bpf.h"
#include "core/comm.h"
#include "core/mpi.h"

struct thread_map threads SEC(".maps");
struct process_map processes SEC(".maps");
struct collective_map collectives SEC(".maps");
struct comms_map process_comms SEC(".maps");
struct sequence_map sequences SEC(".maps");
struct ledger_event_map ledger_events SEC(".maps");
struct consumer_map consumers SEC(".maps");
struct hist_map hists SEC(".maps");
struct event_map events SEC(".maps");
struct report_map reports SEC(".maps");
struct collective_mapping_map collective_mappings SEC(".maps");
struct python_map pythons SEC(".maps");
u64 nr_dropped_events, nr_dropped_processes, nr_dropped_frames, nr_dropped_samples,
	nr_dropped_ledger, nr_dropped_consumers;
bool timeline_wanted;
u32 nr_lines_wanted;
struct phase_config phase_config = PHASE_CONFIG_DEFAULT;
bool ml_seen;
struct new_roles new_roles;
u8 gpu_utilization[GPU_MAX];

/* Not inline: the linker resolves a kfunc from one object only. */
void cpu_hold(void)
{
	compat_preempt_disable();
}

void cpu_release(void)
{
	compat_preempt_enable();
}

/* A thread that makes one of these calls is about to use the GPU. */
static bool opens_device(u32 kind)
{
	return kind == CALL_KIND_ALLOC || kind == CALL_KIND_DEVICE_SET ||
	       kind == CALL_KIND_CTX_NEW || kind == CALL_KIND_CTX_SET;
}

/* For calls where only the return and the calling thread matter. */
CALL_PROGRAM("uprobe.multi", call_enter)
{
	struct traced_call call;

	if (call_entered(ctx, &call) && !call.process->launcher_tid &&
	    call.thread->role == ROLE_OTHER && opens_device(call.row->kind))
		launcher_found(call.p, call.thread, call.process, call.now);
}

static void launcher_waits_for_ranks(struct process_state *process, bool inside, u64 now)
{
	process_write_begin(process);
	idle_set_collective(&process->idle, inside, now);
	process_write_end(process);
}

static u64 launched_kernel(struct pt_regs *ctx, const struct call_row *row)
{
	struct arguments args = ARGUMENTS(ctx);

	if (row->detail == DETAIL_GRAPH)
		return GAP_GRAPH;
	if (row->arg[0] == ARG_NONE)
		return row->level == LEVEL_RUNTIME ? GAP_THROUGH : GAP_UNKNOWN;
	return argument(&args, row->arg[0]);
}

static __noinline int launch_told(struct pt_regs *ctx, const struct traced_call *call)
{
	return lines_launched(call->process->task.pid, launched_kernel(ctx, call->row),
			      call->row->level == LEVEL_DRIVER);
}

/*
 * The kernel of a launch, while a client wants lines. A launch into a graph does not run. Otherwise
 * it costs one comparison: the compiler would make calls of this function and its callers.
 */
static __always_inline void launch_noted(struct pt_regs *ctx, const struct traced_call *call)
{
	if (nr_lines_wanted && call->thread->queued)
		launch_told(ctx, call);
}

/* Counts a launch. False if it was not counted, also because it is a part of another launch. */
static __always_inline bool launch_counted(struct pt_regs *ctx, struct traced_call *call)
{
	if (!feed_found(ctx, call))
		return false;
	if (launch_is_inner(&call->thread->launch_timing, call->row->level)) {
		launch_noted(ctx, call);
		return false;
	}
	__sync_fetch_and_add(&call->process->nr_launches[call->row->level & 1], 1);
	return true;
}

static __always_inline bool launch_queued(struct pt_regs *ctx, const struct traced_call *call)
{
	if (!work_queued(ctx, call))
		return false;
	launch_noted(ctx, call);
	return true;
}

/* For calls whose return is not traced. */
static void fed_at_entry(struct traced_call *call)
{
	call->now = bpf_ktime_get_ns();
	device_fed(call);
}

/* For kernels without uprobe sessions. */
CALL_PROGRAM("uprobe.multi", launch_enter)
{
	struct traced_call call;

	if (launch_counted(ctx, &call) && launch_queued(ctx, &call) && work_is_news(&call))
		fed_at_entry(&call);
}

/* True if the return is to be observed. The call then stores its start time and weight. */
static bool launch_begins(struct pt_regs *ctx)
{
	struct traced_call call;
	bool is_news, is_timed;
	u64 now, *begun;

	if (!launch_counted(ctx, &call))
		return false;
	is_news = launch_queued(ctx, &call) && work_is_news(&call);
	is_timed = launch_is_timed(&call.thread->launch_timing);
	if (!is_timed && !is_news)
		return false;
	begun = compat_session_cookie(ctx);
	if (!begun)
		return false;
	now = bpf_ktime_get_ns();
	*begun = launch_begun(now, is_timed ? launch_weight(&call.thread->launch_timing, now) : 0);
	return true;
}

/* A launch that took long although its thread had the CPU found the queue full. */
static void launch_blocked(const struct traced_call *call, u64 begun, u32 weight)
{
	struct process_state *process = call->process;
	u64 ns = call->now - begun;

	if (!launch_is_blocked(&call->thread->launch_timing, ns) ||
	    call->thread->running_since_ns > begun)
		return;
	process_write_begin(process);
	idle_blocked(&process->idle, ns * weight, call->now);
	process_write_end(process);
}

static void launch_ends(struct pt_regs *ctx)
{
	struct traced_call call = { .now = bpf_ktime_get_ns() };
	u64 *cookie = compat_session_cookie(ctx), begun;
	u32 weight;

	if (!cookie || !feed_returned(&call))
		return;
	begun = launch_begun_ns(*cookie);
	weight = launch_begun_weight(*cookie);
	launch_returned(&call.thread->launch_timing);
	if (weight && !call_failed(ctx)) {
		process_sample_times(call.process, HIST_LAUNCH, call.now - begun, weight);
		launch_blocked(&call, begun, weight);
	}
	feed_ends(ctx, &call, begun);
}

/* Entry and return of a call. The kernel skips the return unless the entry returns 0. */
static __always_inline int call_session(struct pt_regs *ctx, bool (*begins)(struct pt_regs *ctx),
					void (*ends)(struct pt_regs *ctx))
{
	bool wanted = false;

	cpu_hold();
	if (compat_session_is_return(ctx))
		ends(ctx);
	else
		wanted = begins(ctx);
	cpu_release();
	return wanted ? 0 : 1;
}

SEC("uprobe.multi") int launch_session(struct pt_regs *ctx)
{
	return call_session(ctx, launch_begins, launch_ends);
}

/*
 * Whether a copy feeds the GPU. Kinds of the runtime: 1 is to the device, 3 is
 * within the device.
 */
static bool feeds_device(const struct call_row *row, u64 direction)
{
	if (row->detail != DETAIL_BY_ARGUMENT)
		return row->detail != DETAIL_TO_HOST;
	return direction != 0 && direction != 2;
}

/* What changes for a process when a copy succeeds. */
enum copy_change {
	COPY_CHANGES_NOTHING,
	COPY_FEEDS,	/* the GPU gets work, and the thread is a launcher */
	COPY_ENDS_DONE, /* a copy to the host: the GPU gets work, and no phase begins */
};

static u32 copy_counted(struct pt_regs *ctx, const struct traced_call *call)
{
	struct arguments args = ARGUMENTS(ctx);
	struct process_state *process = call->process;
	bool was_done = process->idle.gpu == IDLE_GPU_DONE;
	u32 slot;

	__sync_fetch_and_add(&process->nr_copies[call->row->level & 1], 1);
	if (feeds_device(call->row, argument(&args, call->row->arg[1])))
		return work_queued(ctx, call) && work_is_news(call) ? COPY_FEEDS
								    : COPY_CHANGES_NOTHING;
	if (!process->idle.since_ns || call->thread->depth)
		return COPY_CHANGES_NOTHING;
	slot = slot_of(ctx, call->row, call->p, process);
	step_result(&process->step, slot, work_queue(ctx, call, slot));
	gpu_settle(process, bpf_ktime_get_ns());
	return was_done ? COPY_ENDS_DONE : COPY_CHANGES_NOTHING;
}

/* For kernels without uprobe sessions. */
CALL_PROGRAM("uprobe.multi", copy_enter)
{
	struct traced_call call;

	if (feed_found(ctx, &call) && copy_counted(ctx, &call) == COPY_FEEDS)
		fed_at_entry(&call);
}

/* True if the return is to be observed. The call then stores when it feeds the GPU, or 0. */
static bool copy_begins(struct pt_regs *ctx)
{
	struct traced_call call;
	u64 *begun;
	u32 change;

	if (!feed_found(ctx, &call))
		return false;
	change = copy_counted(ctx, &call);
	begun = change == COPY_CHANGES_NOTHING ? NULL : compat_session_cookie(ctx);
	if (!begun)
		return false;
	*begun = change == COPY_FEEDS ? bpf_ktime_get_ns() : 0;
	return true;
}

/* Work that is no launch: a memset, a callback on the host. */
static bool work_begins(struct pt_regs *ctx)
{
	struct traced_call call;
	u64 *begun;

	if (!feed_found(ctx, &call) || !work_queued(ctx, &call) || !work_is_news(&call))
		return false;
	begun = compat_session_cookie(ctx);
	if (!begun)
		return false;
	*begun = bpf_ktime_get_ns();
	return true;
}

static void work_ends(struct pt_regs *ctx)
{
	struct traced_call call = { .now = bpf_ktime_get_ns() };
	u64 *begun = compat_session_cookie(ctx);

	if (begun && feed_returned(&call) && (*begun || call_failed(ctx)))
		feed_ends(ctx, &call, *begun);
}

SEC("uprobe.multi") int copy_session(struct pt_regs *ctx)
{
	return call_session(ctx, copy_begins, work_ends);
}

SEC("uprobe.multi") int work_session(struct pt_regs *ctx)
{
	return call_session(ctx, work_begins, work_ends);
}

CALL_PROGRAM("uprobe.multi", work_enter)
{
	struct traced_call call;

	if (feed_found(ctx, &call) && work_queued(ctx, &call) && work_is_news(&call))
		fed_at_entry(&call);
}

static void gpu_waited_for(struct pt_regs *ctx, const struct traced_call *call)
{
	target_find(ctx, call, &call->thread->target);
	if (!target_is_done(call->process, &call->thread->target))
		gpu_wait_begins(call);
}

CALL_PROGRAM("uprobe.multi", sync_enter)
{
	struct traced_call call;

	if (!call_entered(ctx, &call))
		return;
	if (call.thread->role == ROLE_OTHER)
		thread_set_role(call.p, call.thread, ROLE_SYNC_WAITER, call.now);
	gpu_waited_for(ctx, &call);
}

/*
 * A copy that returns when it is done: it is queued, and then waited for. The account of a process
 * does not begin with a call that may fail.
 */
CALL_PROGRAM("uprobe.multi", copy_wait_enter)
{
	struct traced_call call;

	if (!feed_found(ctx, &call))
		return;
	if (copy_counted(ctx, &call) == COPY_FEEDS && call.process->idle.since_ns)
		fed_at_entry(&call);
	if (!call_entered(ctx, &call))
		return;
	target_stream(ctx, &call, &call.thread->target);
	if (!target_is_done(call.process, &call.thread->target))
		gpu_wait_begins(&call);
}

/* A call that waited has returned. True when the GPU has no work any more. */
static bool gpu_is_done(struct pt_regs *ctx, const struct traced_call *call)
{
	if (!call_failed(ctx))
		target_complete(call->process, &call->thread->target);
	/* The sync of the runtime calls that of the driver. The wait ends with the outer call. */
	if (call->thread->depth)
		return false;
	gpu_wait_ends(call);
	return gpu_settle(call->process, call->now);
}

static u64 all_levels(const u64 counts[LEVEL_NR])
{
	return counts[LEVEL_RUNTIME] + counts[LEVEL_DRIVER];
}

/* A sync, a query or a blocking copy showed that work is done. A sync always ends a cycle. */
static __noinline int steps_follow(struct task_struct *p, struct process_state *process,
				   bool is_sync, u64 now)
{
	struct step_end end = {};
	bool has_result, ended;

	if (!p || !process)
		return 0;
	has_result = step_covers(&process->step, &ledger_of(process)->ledger);
	if (!is_sync && !has_result)
		return 0;
	process_write_begin(process);
	ended = step_sync(&process->step, all_levels(process->nr_launches),
			  all_levels(process->nr_copies), has_result, now);
	process_write_end(process);
	if (!ended)
		return 0;
	for (u32 i = 0; i < STEP_JUDGE_MAX; i++) {
		process_write_begin(process);
		ended = step_judge(&process->step, &end);
		process_write_end(process);
		if (ended)
			step_ended(p, process, &end);
	}
	return 0;
}

/* A query or a blocking copy has returned, with the work done. */
static void gpu_was_waited_for(struct pt_regs *ctx, const struct traced_call *call)
{
	if (gpu_is_done(ctx, call))
		process_cross(call->p, call->process, BOUNDARY_SYNC_DONE, call->now);
	if (!call->thread->depth && !call_failed(ctx))
		steps_follow(call->p, call->process, false, call->now);
}

CALL_PROGRAM("uretprobe.multi", copy_wait_return)
{
	struct traced_call call;
	const struct call_frame *frame = call_returned(ctx, &call);
	u64 now = call.now;

	if (!frame)
		return;
	if (!call.thread->depth && (call_failed(ctx) || feeds_device(call.row, frame->arg[1])))
		feed_ends(ctx, &call, frame->entered_ns);
	call.now = now;
	gpu_was_waited_for(ctx, &call);
}

CALL_PROGRAM("uprobe.multi", query_enter)
{
	struct traced_call call;

	if (call_entered(ctx, &call))
		target_find(ctx, &call, &call.thread->target);
}

/* Not ready is a value other than 0. */
CALL_PROGRAM("uretprobe.multi", query_return)
{
	struct traced_call call;

	if (call_returned(ctx, &call) && !call_failed(ctx))
		gpu_was_waited_for(ctx, &call);
}

CALL_PROGRAM("uprobe.multi", event_enter)
{
	struct arguments args = ARGUMENTS(ctx);
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);
	struct ledger_event_key key;
	struct ledger_mark mark;

	if (!row || !process)
		return;
	key = event_key(process, argument(&args, row->arg[0]));
	mark = ledger_mark(&ledger_of(process)->ledger, slot_of(ctx, row, p, process));
	if (bpf_map_update_elem(&ledger_events, &key, &mark, BPF_ANY))
		__sync_fetch_and_add(&nr_dropped_ledger, 1);
}

CALL_PROGRAM("uprobe.multi", stream_wait_enter)
{
	struct arguments args = ARGUMENTS(ctx);
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);
	struct ledger_event_key key;
	struct ledger_mark *mark, copy;

	if (!row || !process)
		return;
	key = event_key(process, argument(&args, row->arg[0]));
	mark = bpf_map_lookup_elem(&ledger_events, &key);
	if (!mark)
		return;
	copy = *mark;
	/* A wait for work that is done changes nothing. */
	if (copy.is_captured || !ledger_mark_is_done(&ledger_of(process)->ledger, &copy))
		ledger_wait(&ledger_of(process)->ledger, slot_of(ctx, row, p, process), &copy);
}

CALL_PROGRAM("uprobe.multi", capture_enter)
{
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);

	if (row && process)
		ledger_capture(&ledger_of(process)->ledger, slot_of(ctx, row, p, process));
}

CALL_PROGRAM("uprobe.multi", capture_end_enter)
{
	struct process_state *process = process_find(bpf_get_current_task_btf());

	if (process)
		ledger_capture_end(&ledger_of(process)->ledger);
}

CALL_PROGRAM("uretprobe.multi", sync_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct open_collectives *open;
	bool is_done;

	if (!frame)
		return;
	is_done = gpu_is_done(ctx, &call);
	__sync_fetch_and_add(&call.process->nr_syncs[call.row->level & 1], 1);
	call.process->task.signals.last_sync_ns = call.now;
	/*
	 * A sync of the runtime calls a sync of the driver. Only the return of
	 * the outer call counts. A sync that failed shows nothing.
	 */
	if (call.thread->depth || call_failed(ctx))
		return;
	if (is_done)
		process_cross(call.p, call.process, BOUNDARY_SYNC_DONE, call.now);
	steps_follow(call.p, call.process, true, call.now);
	process_sample(call.process, HIST_SYNC_WAIT, call.now - frame->entered_ns);
	open = collectives_of(call.p, 0);
	if (!open)
		return;
	if (collectives_precede(open, frame->entered_ns))
		rank_waited(call.process, call.now - frame->entered_ns);
	collectives_done(call.process, open, call.now);
}

/* A collective of NCCL is work on a stream, unless it is captured into a graph. */
static void collective_queues(struct pt_regs *ctx, const struct traced_call *call)
{
	u32 slot = slot_of(ctx, call->row, call->p, call->process);

	if (work_queue(ctx, call, slot) && call->process->idle.since_ns)
		device_gets_work(call->process, call->now);
}

/* The account of a process begins with the first collective that did not fail. */
static void collective_feeds(const struct traced_call *call, u64 entered_ns, bool accepted)
{
	if (!accepted)
		work_failed(call);
	else if (call->thread->queued && !call->process->idle.since_ns)
		device_gets_work(call->process, entered_ns);
}

CALL_PROGRAM("uprobe.multi", collective_enter)
{
	struct traced_call call;

	if (!call_entered(ctx, &call))
		return;
	call.thread->futex_wait_ns = 0;
	process_cross(call.p, call.process, BOUNDARY_COLLECTIVE, call.now);
	call.process->step.had_collective = 1;
	collective_numbered(ctx, &call);
	if (call.row->runtime != RUNTIME_MPI)
		collective_queues(ctx, &call);
	else if (call.process->launcher_tid == (u32)call.p->pid)
		launcher_waits_for_ranks(call.process, true, call.now);
}

/* MPI counts are of type int. */
static u64 mpi_bytes(const struct call_frame *frame)
{
	u64 handle = frame->arg[1], size = 0;

	switch (mpi_datatype_kind(handle)) {
	case MPI_HANDLE_NUMBER: size = mpich_datatype_bytes(handle); break;
	case MPI_HANDLE_POINTER:
		bpf_probe_read_user(&size, sizeof(size),
				    (void *)(handle + OPEN_MPI_DATATYPE_SIZE_AT));
		break;
	default: break;
	}
	return (u32)frame->arg[0] * size;
}

/*
 * Records the duration of a collective, or queues it until a sync shows the
 * duration. Also records its wait for other ranks.
 */
static void collective_timed(const struct traced_call *call, u64 entered_ns, u32 operation)
{
	if (call->row->runtime == RUNTIME_MPI) {
		process_sample(call->process, HIST_COLLECTIVE + operation, call->now - entered_ns);
		/* The outer call includes the wait of a call inside it. */
		if (!call->thread->depth)
			rank_waited(call->process, call->now - entered_ns);
		return;
	}
	collective_queued(call->p, operation, entered_ns);
	if (call->thread->futex_wait_ns)
		rank_waited(call->process, call->thread->futex_wait_ns);
}

CALL_PROGRAM("uretprobe.multi", collective_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	bool accepted;
	u32 operation;

	if (!frame)
		return;
	operation = operation_of(call.row);
	accepted = collective_accepted(call.row->runtime, (s32)PT_REGS_RC(ctx));
	collective_returned(&call, frame, accepted);
	if (call.row->runtime != RUNTIME_MPI)
		collective_feeds(&call, frame->entered_ns, accepted);
	if (accepted) {
		__sync_fetch_and_add(&call.process->nr_collectives[operation], 1);
		__sync_fetch_and_add(&call.process->collective_bytes[operation],
				     call.row->runtime == RUNTIME_MPI
					     ? mpi_bytes(frame)
					     : collective_bytes(frame->arg[0], frame->arg[1]));
		collective_timed(&call, frame->entered_ns, operation);
	}
	if (call.row->runtime == RUNTIME_MPI) {
		if (call.process->launcher_tid == (u32)call.p->pid)
			launcher_waits_for_ranks(call.process, false, call.now);
		process_cross(call.p, call.process, BOUNDARY_COLLECTIVE_DONE, call.now);
	}
}
