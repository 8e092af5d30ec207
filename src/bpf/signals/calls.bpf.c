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
 * memory is read with helpers that may fail. A failed call is not counted.
 *
 * Accepted races: the thread that launches work writes the phase of its process.
 * If two threads of a process do so at the same moment, a few microseconds can be
 * booked to the wrong phase. Counts are atomic. The races of collectives are
 * described in collectives.bpf.h.
 */
#include "bpf/signals/collectives.bpf.h"
#include "bpf/signals/ledger.bpf.h"
#include "bpf/compat.bpf.h"
#include "core/comm.h"
#include "core/mpi.h"

struct thread_map threads SEC(".maps");
struct process_map processes SEC(".maps");
struct collective_map collectives SEC(".maps");
struct ledger_event_map ledger_events SEC(".maps");
struct hist_map hists SEC(".maps");
struct event_map events SEC(".maps");
struct collective_mapping_map collective_mappings SEC(".maps");
u64 nr_dropped_events, nr_dropped_processes, nr_dropped_frames, nr_dropped_samples,
	nr_dropped_ledger;
bool timeline_wanted;
struct phase_config phase_config = PHASE_CONFIG_DEFAULT;
bool ml_seen;
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

/* The account of idle time: core/idle.h. The GPU gets its first work since it was done. */
static void device_gets_work(struct process_state *process, u64 now)
{
	u64 done_ns = ledger_of(process)->done_ns;
	bool was_done = process->idle.since_ns && process->idle.gpu == IDLE_GPU_DONE;

	process_write_begin(process);
	idle_ends(&process->idle, now);
	process_write_end(process);
	if (was_done && now > done_ns)
		process_sample(process, HIST_IDLE, now - done_ns);
}

static void launcher_waits_for_ranks(struct process_state *process, bool inside, u64 now)
{
	process_write_begin(process);
	idle_set_collective(&process->idle, inside, now);
	process_write_end(process);
}

static u64 work_queued(struct pt_regs *ctx, const struct call_row *row, struct task_struct *p,
		       struct process_state *process)
{
	return ledger_queue(&ledger_of(process)->ledger, slot_of(ctx, row, p, process));
}

/*
 * This thread launches work or copies data to the GPU. Most launches find the process as the
 * launch before left it, and only the ledger changes. Work inside of another call belongs to
 * that call, which is in the ledger already.
 */
static void device_fed(struct pt_regs *ctx, const struct call_row *row, struct task_struct *p,
		       struct process_state *process, struct thread_state *thread)
{
	u64 now;

	if (!thread)
		thread = thread_get(p);
	if (!thread || (!thread->depth && !work_queued(ctx, row, p, process)))
		return;
	if (process->launcher_tid == (u32)p->pid && phase_is_busy(process->task.phase) &&
	    process->idle.since_ns && process->idle.gpu != IDLE_GPU_DONE)
		return;
	now = bpf_ktime_get_ns();
	thread->has_fed = 1;
	launcher_found(p, thread, process, now);
	process_cross(p, process, BOUNDARY_LAUNCH, now);
	/* Copies inside a blocking collective are complete when the collective returns. */
	if (!thread->depth || !process->idle.in_collective)
		device_gets_work(process, now);
}

/* Counts a launch. False if it was not counted, also because it is a part of another launch. */
static bool launch_counted(struct pt_regs *ctx, struct task_struct *p, struct thread_state *thread)
{
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);

	if (!row || !process || !thread || launch_is_inner(&thread->launch_timing, row->level))
		return false;
	__sync_fetch_and_add(&process->nr_launches[row->level & 1], 1);
	device_fed(ctx, row, p, process, thread);
	return true;
}

/* For kernels without uprobe sessions. */
CALL_PROGRAM("uprobe.multi", launch_enter)
{
	struct task_struct *p = bpf_get_current_task_btf();

	launch_counted(ctx, p, thread_get(p));
}

/* True if the return is to be observed. The call then stores its start time and weight. */
static bool launch_begins(struct pt_regs *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct thread_state *thread = thread_get(p);
	u64 now, *begun;

	if (!launch_counted(ctx, p, thread) || !thread || !launch_is_timed(&thread->launch_timing))
		return false;
	begun = compat_session_cookie(ctx);
	if (!begun)
		return false;
	now = bpf_ktime_get_ns();
	*begun = launch_begun(now, launch_weight(&thread->launch_timing, now));
	return true;
}

/* A launch that took long although its thread had the CPU found the queue full. */
static void launch_blocked(struct process_state *process, u64 begun, u32 weight, u64 now)
{
	struct thread_state *thread = thread_find(bpf_get_current_task_btf());
	u64 ns = now - begun;

	if (!thread || !launch_is_blocked(&thread->launch_timing, ns) ||
	    thread->running_since_ns > begun)
		return;
	process_write_begin(process);
	idle_blocked(&process->idle, ns * weight, now);
	process_write_end(process);
}

static void launch_ends(struct pt_regs *ctx)
{
	u64 now = bpf_ktime_get_ns(), *begun = compat_session_cookie(ctx);
	struct process_state *process = process_find(bpf_get_current_task_btf());

	if (!process || !begun)
		return;
	process_sample_times(process, HIST_LAUNCH, launch_ns(*begun, now),
			     launch_begun_weight(*begun));
	launch_blocked(process, launch_begun_ns(*begun), launch_begun_weight(*begun), now);
}

/* Entry and return of a launch. The kernel skips the return unless the entry returns 0. */
SEC("uprobe.multi") int launch_session(struct pt_regs *ctx)
{
	bool wanted = false;

	cpu_hold();
	if (compat_session_is_return(ctx))
		launch_ends(ctx);
	else
		wanted = launch_begins(ctx);
	cpu_release();
	return wanted ? 0 : 1;
}

/*
 * Whether a copy feeds the GPU. Kinds of the runtime: 1 is to the device, 3 is
 * within the device.
 */
static bool feeds_device(const struct call_row *row, const struct arguments *args)
{
	u64 direction;

	if (row->detail != DETAIL_BY_ARGUMENT)
		return row->detail != DETAIL_TO_HOST;
	direction = argument(args, row->arg[1]);
	return direction != 0 && direction != 2;
}

static void copy_counted(struct pt_regs *ctx, const struct call_row *row, struct task_struct *p,
			 struct process_state *process)
{
	struct arguments args = ARGUMENTS(ctx);
	u32 slot;

	__sync_fetch_and_add(&process->nr_copies[row->level & 1], 1);
	if (feeds_device(row, &args)) {
		device_fed(ctx, row, p, process, thread_find(p));
		return;
	}
	if (!process->idle.since_ns)
		return;
	/* A copy to the host is queued as well, but it does not begin a phase. */
	slot = slot_of(ctx, row, p, process);
	step_result(&process->step, slot, ledger_queue(&ledger_of(process)->ledger, slot));
	gpu_settle(process, bpf_ktime_get_ns());
}

CALL_PROGRAM("uprobe.multi", copy_enter)
{
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);

	if (row && process)
		copy_counted(ctx, row, p, process);
}

/* Work that is no launch: a memset, a callback on the host. */
CALL_PROGRAM("uprobe.multi", work_enter)
{
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);

	if (row && process)
		device_fed(ctx, row, p, process, thread_find(p));
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

/* A copy that returns when it is done: it is queued, and then waited for. */
CALL_PROGRAM("uprobe.multi", copy_wait_enter)
{
	struct traced_call call;
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(bpf_get_current_task_btf());

	if (!row || !process)
		return;
	copy_counted(ctx, row, bpf_get_current_task_btf(), process);
	if (!call_entered(ctx, &call))
		return;
	target_stream(ctx, &call, &call.thread->target);
	if (!target_is_done(call.process, &call.thread->target))
		gpu_wait_begins(&call);
}

/* A call that waited has returned. True when the GPU has no work any more. */
static bool gpu_is_done(struct pt_regs *ctx, const struct traced_call *call)
{
	if (PT_REGS_RC(ctx) == 0)
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
	if (!call->thread->depth)
		steps_follow(call->p, call->process, false, call->now);
}

CALL_PROGRAM("uretprobe.multi", copy_wait_return)
{
	struct traced_call call;

	if (call_returned(ctx, &call))
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

	if (call_returned(ctx, &call) && PT_REGS_RC(ctx) == 0)
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
	 * the outer call counts.
	 */
	if (call.thread->depth)
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

static u32 operation_of(const struct call_row *row)
{
	u32 operation = row->detail - COLLECTIVE_FIRST;

	barrier_var(operation);
	return operation & (COLLECTIVE_NR - 1);
}

/* A collective of NCCL is work on a stream, unless it is captured into a graph. */
static void collective_queues(struct pt_regs *ctx, const struct traced_call *call)
{
	if (work_queued(ctx, call->row, call->p, call->process))
		device_gets_work(call->process, call->now);
}

CALL_PROGRAM("uprobe.multi", collective_enter)
{
	struct traced_call call;

	if (!call_entered(ctx, &call))
		return;
	call.thread->futex_wait_ns = 0;
	process_cross(call.p, call.process, BOUNDARY_COLLECTIVE, call.now);
	call.process->step.had_collective = 1;
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
	u32 operation;

	if (!frame)
		return;
	operation = operation_of(call.row);
	if (collective_accepted(call.row->runtime, (s32)PT_REGS_RC(ctx))) {
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
