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
struct ledger_map ledgers SEC(".maps");
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
static void device_gets_work(struct process_state *process, const struct process_ledger *ledger,
			     u64 now)
{
	bool was_done = process->idle.since_ns && process->idle.gpu == IDLE_GPU_DONE;

	process_write_begin(process);
	idle_ends(&process->idle, now);
	process_write_end(process);
	if (was_done && now > ledger->done_ns)
		process_sample(process, HIST_IDLE, now - ledger->done_ns);
}

static void launcher_waits_for_ranks(struct process_state *process, bool inside, u64 now)
{
	process_write_begin(process);
	idle_set_collective(&process->idle, inside, now);
	process_write_end(process);
}

/*
 * This thread launches work or copies data to the GPU. Most launches find the process as the
 * launch before left it, and only the ledger changes.
 */
static void device_fed(struct pt_regs *ctx, const struct call_row *row, struct task_struct *p,
		       struct process_state *process)
{
	struct process_ledger *ledger = ledger_of(p);
	struct thread_state *thread;
	u64 now;

	if (!ledger)
		return;
	if (process->launcher_tid == (u32)p->pid && phase_is_busy(process->task.phase) &&
	    process->idle.since_ns && process->idle.gpu != IDLE_GPU_DONE) {
		thread = thread_find(p);
		if (thread && !thread->depth)
			ledger_queue(&ledger->ledger,
				     ledger_slot(&ledger->ledger, stream_of(ctx, row, p)));
		return;
	}
	now = bpf_ktime_get_ns();
	thread = thread_get(p);
	if (!thread)
		return;
	/* Work inside of another call belongs to that call, which is in the ledger already. */
	if (!thread->depth &&
	    !ledger_queue(&ledger->ledger, ledger_slot(&ledger->ledger, stream_of(ctx, row, p))))
		return;
	thread->has_fed = 1;
	launcher_found(p, thread, process, now);
	process_cross(p, process, BOUNDARY_LAUNCH, now);
	/* Copies inside a blocking collective are complete when the collective returns. */
	if (!thread->depth || !process->idle.in_collective)
		device_gets_work(process, ledger, now);
}

/*
 * Counts a launch. Returns the API level that was called; LEVEL_NR if the launch
 * was not counted.
 */
static u32 launch_counted(struct pt_regs *ctx, struct task_struct *p)
{
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);

	if (!row || !process)
		return LEVEL_NR;
	__sync_fetch_and_add(&process->nr_launches[row->level & 1], 1);
	device_fed(ctx, row, p, process);
	return row->level & 1;
}

/* For kernels without uprobe sessions. */
CALL_PROGRAM("uprobe.multi", launch_enter)
{
	launch_counted(ctx, bpf_get_current_task_btf());
}

/*
 * Whether to trace the return. If so, the session cookie stores the start time
 * and the weight.
 */
static bool launch_begins(struct pt_regs *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 level = launch_counted(ctx, p), weight;
	struct thread_state *thread = level < LEVEL_NR ? thread_find(p) : NULL;
	u64 now, *begun;

	if (!thread)
		return false;
	now = bpf_ktime_get_ns();
	weight = launch_weight(&thread->launch_timing, level, now, bpf_get_prandom_u32());
	begun = weight ? compat_session_cookie(ctx) : NULL;
	if (!begun)
		return false;
	*begun = launch_begun(now, weight);
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
	struct process_ledger *ledger;

	__sync_fetch_and_add(&process->nr_copies[row->level & 1], 1);
	if (feeds_device(row, &args)) {
		device_fed(ctx, row, p, process);
		return;
	}
	/* A copy to the host is work that is queued, but the GPU needs to be fed by other calls. */
	ledger = ledger_of(p);
	if (ledger && process->idle.since_ns)
		ledger_queue(&ledger->ledger, ledger_slot(&ledger->ledger, stream_of(ctx, row, p)));
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
		device_fed(ctx, row, p, process);
}

static void gpu_waited_for(struct pt_regs *ctx, const struct traced_call *call)
{
	struct process_ledger *ledger = ledger_of(call->p);

	if (!ledger)
		return;
	target_find(ctx, call, ledger, &call->thread->target);
	if (!target_is_done(ledger, &call->thread->target))
		gpu_wait_begins(call, ledger);
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
	struct process_ledger *ledger;
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(bpf_get_current_task_btf());

	if (!row || !process)
		return;
	copy_counted(ctx, row, bpf_get_current_task_btf(), process);
	if (!call_entered(ctx, &call))
		return;
	ledger = ledger_of(call.p);
	if (!ledger)
		return;
	call.thread->target.kind = DETAIL_STREAM;
	call.thread->target.mark = ledger_mark(
		&ledger->ledger, ledger_slot(&ledger->ledger, stream_of(ctx, row, call.p)));
	if (!target_is_done(ledger, &call.thread->target))
		gpu_wait_begins(&call, ledger);
}

/* A call that waited has returned. True when the GPU has no work any more. */
static bool gpu_is_done(struct pt_regs *ctx, const struct traced_call *call)
{
	struct process_ledger *ledger = ledger_of(call->p);

	if (!ledger)
		return false;
	if (PT_REGS_RC(ctx) == 0)
		target_complete(ledger, &call->thread->target);
	/* The sync of the runtime calls that of the driver. The wait ends with the outer call. */
	if (call->thread->depth)
		return false;
	gpu_wait_ends(call, ledger);
	return gpu_settle(call->process, ledger, call->now);
}

CALL_PROGRAM("uretprobe.multi", copy_wait_return)
{
	struct traced_call call;

	if (call_returned(ctx, &call) && gpu_is_done(ctx, &call))
		process_cross(call.p, call.process, BOUNDARY_SYNC_DONE, call.now);
}

CALL_PROGRAM("uprobe.multi", query_enter)
{
	struct traced_call call;
	struct process_ledger *ledger;

	if (!call_entered(ctx, &call))
		return;
	ledger = ledger_of(call.p);
	if (ledger)
		target_find(ctx, &call, ledger, &call.thread->target);
}

/* Not ready is a value other than 0. */
CALL_PROGRAM("uretprobe.multi", query_return)
{
	struct traced_call call;

	if (call_returned(ctx, &call) && PT_REGS_RC(ctx) == 0 && gpu_is_done(ctx, &call))
		process_cross(call.p, call.process, BOUNDARY_SYNC_DONE, call.now);
}

CALL_PROGRAM("uprobe.multi", event_enter)
{
	struct arguments args = ARGUMENTS(ctx);
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);
	struct process_ledger *ledger = process ? ledger_of(p) : NULL;
	struct ledger_event_key key;
	struct ledger_mark mark;

	if (!row || !ledger)
		return;
	key = event_key(process, argument(&args, row->arg[0]));
	mark = ledger_mark(&ledger->ledger, ledger_slot(&ledger->ledger, stream_of(ctx, row, p)));
	if (bpf_map_update_elem(&ledger_events, &key, &mark, BPF_ANY))
		__sync_fetch_and_add(&nr_dropped_ledger, 1);
}

CALL_PROGRAM("uprobe.multi", stream_wait_enter)
{
	struct arguments args = ARGUMENTS(ctx);
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_get(p);
	struct process_ledger *ledger = process ? ledger_of(p) : NULL;
	struct ledger_event_key key;
	struct ledger_mark *mark, copy;

	if (!row || !ledger)
		return;
	key = event_key(process, argument(&args, row->arg[0]));
	mark = bpf_map_lookup_elem(&ledger_events, &key);
	if (!mark)
		return;
	copy = *mark;
	/* A wait for work that is done changes nothing. */
	if (copy.is_captured || !ledger_mark_is_done(&ledger->ledger, &copy))
		ledger_wait(&ledger->ledger, ledger_slot(&ledger->ledger, stream_of(ctx, row, p)),
			    &copy);
}

static struct process_ledger *ledger_of_capture(struct pt_regs *ctx, u32 *ret_slot)
{
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_ledger *ledger = row && process_get(p) ? ledger_of(p) : NULL;

	if (ledger)
		*ret_slot = ledger_slot(&ledger->ledger, stream_of(ctx, row, p));
	return ledger;
}

CALL_PROGRAM("uprobe.multi", capture_enter)
{
	u32 slot = 0;
	struct process_ledger *ledger = ledger_of_capture(ctx, &slot);

	if (ledger)
		ledger_capture(&ledger->ledger, slot);
}

CALL_PROGRAM("uprobe.multi", capture_end_enter)
{
	u32 slot = 0;
	struct process_ledger *ledger = ledger_of_capture(ctx, &slot);

	if (ledger)
		ledger_capture_end(&ledger->ledger);
}

static u64 all_levels(const u64 counts[LEVEL_NR])
{
	return counts[LEVEL_RUNTIME] + counts[LEVEL_DRIVER];
}

static __noinline int steps_follow(struct task_struct *p, struct process_state *process, u64 now)
{
	struct step_end end = {};
	bool ended;

	if (!p || !process)
		return 0;
	process_write_begin(process);
	ended = step_sync(&process->step, all_levels(process->nr_launches),
			  all_levels(process->nr_copies), now);
	process_write_end(process);
	if (!ended)
		return 0;
	for (u32 i = 0; i < STEP_JUDGE_MAX; i++) {
		process_write_begin(process);
		ended = step_judge(&process->step, &end);
		process_write_end(process);
		if (!ended)
			continue;
		event_send(EVENT_STEP, p, process->step.nr_steps, end.at_ns);
		if (end.length_ns)
			process_sample(process, HIST_STEP, end.length_ns);
	}
	return 0;
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
	steps_follow(call.p, call.process, call.now);
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
	struct process_ledger *ledger = ledger_of(call->p);

	if (ledger &&
	    ledger_queue(&ledger->ledger,
			 ledger_slot(&ledger->ledger, stream_of(ctx, call->row, call->p))))
		device_gets_work(call->process, ledger, call->now);
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
