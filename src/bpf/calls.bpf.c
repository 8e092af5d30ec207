// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the GPU and collective runtimes.
 *
 * One program at the entry and one at the return of every traced function; which
 * function it is comes as the cookie, and call_rows says what it means and where
 * its arguments are. A launch costs an entry probe only.
 *
 * Trusts nothing that the process passes: arguments are numbers to count, user
 * memory is read with the helpers that may fail. A failed call counts nothing.
 *
 * Races that are accepted: a process's state is written by the thread that
 * feeds the device. Two threads of one process that do so at the same moment
 * can lose a count or book a few microseconds to the other's phase.
 */
#include "bpf/state.bpf.h"

struct thread_map threads SEC(".maps");
struct process_map processes SEC(".maps");
struct event_map events SEC(".maps");
u64 nr_dropped_events, nr_dropped_processes, nr_dropped_frames;

/* All of them are read first: the verifier allows no computed offset into the registers. */
struct arguments {
	u64 value[6];
};

#define ARGUMENTS(ctx)                                                                             \
	{                                                                                          \
		{                                                                                  \
			PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx),                \
				PT_REGS_PARM4(ctx), PT_REGS_PARM5(ctx), PT_REGS_PARM6(ctx),        \
		}                                                                                  \
	}

static u64 argument(const struct arguments *args, s8 position)
{
	u32 i = (u8)position;

	return i < 6 ? args->value[i] : 0;
}

/* Of a copy: whether it feeds the device. The runtime's kinds: 1 to the device, 3 within it. */
static bool feeds_device(const struct call_row *row, const struct arguments *args)
{
	u64 direction;

	if (row->detail != DETAIL_BY_ARGUMENT)
		return row->detail != DETAIL_TO_HOST;
	direction = argument(args, row->arg[1]);
	return direction != 0 && direction != 2;
}

static void launcher_found(struct task_struct *p, struct thread_state *thread,
			   struct process_state *process, u64 now)
{
	thread_set_role(p, thread, ROLE_LAUNCHER, now);
	process->launcher_tid = p->pid;
}

/* The barrier keeps the compiler from dropping a mask that only the verifier needs. */
static struct call_frame *frame_at(struct thread_state *thread, u32 depth)
{
	barrier_var(depth);
	return &thread->frames[depth & (MAX_CALL_DEPTH - 1)];
}

static void frame_push(struct thread_state *thread, u32 call, const struct call_row *row,
		       const struct arguments *args, u64 now)
{
	u32 depth = thread->depth++;
	struct call_frame *frame;

	if (depth >= MAX_CALL_DEPTH) {
		__sync_fetch_and_add(&nr_dropped_frames, 1);
		return;
	}
	frame = frame_at(thread, depth);
	frame->call = call;
	frame->entered_ns = now;
	frame->arg[0] = argument(args, row->arg[0]);
	frame->arg[1] = argument(args, row->arg[1]);
	frame->arg[2] = argument(args, row->arg[2]);
}

/* The frame of the call that returns. Calls that were left by longjmp are skipped over. */
static struct call_frame *frame_pop(struct thread_state *thread, u32 call)
{
	for (int i = 0; i < MAX_CALL_DEPTH; i++) {
		struct call_frame *frame;

		if (!thread->depth)
			return NULL;
		thread->depth--;
		frame = frame_at(thread, thread->depth);
		if (thread->depth < MAX_CALL_DEPTH && frame->call == call)
			return frame;
	}
	return NULL;
}

static const struct call_row *row_of(u64 cookie)
{
	return cookie < CALL_NR ? &call_rows[cookie] : NULL;
}

SEC("uprobe.multi")
int call_enter(struct pt_regs *ctx)
{
	struct arguments args = ARGUMENTS(ctx);
	u64 now = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx);
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(cookie);
	struct thread_state *thread = thread_get(p);
	struct process_state *process;

	if (!row || !thread)
		return 0;
	process = process_get(p, thread);
	if (!process)
		return 0;

	switch (row->kind) {
	case CALL_KIND_LAUNCH:
		launcher_found(p, thread, process, now);
		process->nr_launches[row->level & 1]++;
		process_cross(p, process, BOUNDARY_LAUNCH, now);
		return 0;
	case CALL_KIND_COPY:
		process->nr_copies[row->level & 1]++;
		if (feeds_device(row, &args)) {
			launcher_found(p, thread, process, now);
			process_cross(p, process, BOUNDARY_LAUNCH, now);
		}
		return 0;
	case CALL_KIND_SYNC:
		if (thread->role == ROLE_OTHER)
			thread_set_role(p, thread, ROLE_SYNC_WAITER, now);
		break;
	case CALL_KIND_COLLECTIVE: process_cross(p, process, BOUNDARY_COLLECTIVE, now); break;
	}
	if (call_wants_return(row))
		frame_push(thread, cookie, row, &args, now);
	return 0;
}

static void comm_joined(struct process_state *process, const struct call_frame *frame)
{
	process->nr_ranks = frame->arg[1];
	process->rank = frame->arg[2];
}

SEC("uretprobe.multi")
int call_return(struct pt_regs *ctx)
{
	u64 now = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx);
	struct task_struct *p = bpf_get_current_task_btf();
	const struct call_row *row = row_of(cookie);
	struct thread_state *thread = thread_find(p);
	bool succeeded = (int)PT_REGS_RC(ctx) == 0;
	struct process_state *process;
	struct call_frame *frame;

	if (!row || !thread)
		return 0;
	frame = frame_pop(thread, cookie);
	process = process_find(thread);
	if (!frame || !process)
		return 0;

	switch (row->kind) {
	case CALL_KIND_SYNC:
		process->nr_syncs[row->level & 1]++;
		process->task.signals.last_sync_ns = now;
		/* The runtime's sync calls the driver's: the program goes on after the outer one.
		 */
		if (!thread->depth)
			process_cross(p, process, BOUNDARY_SYNC_DONE, now);
		break;
	case CALL_KIND_COLLECTIVE:
		if (succeeded) {
			process->nr_collectives++;
			process->collective_bytes += collective_bytes(frame->arg[0], frame->arg[1]);
		}
		if (row->runtime == RUNTIME_MPI)
			process_cross(p, process, BOUNDARY_COLLECTIVE_DONE, now);
		break;
	case CALL_KIND_COMM_INIT:
		if (succeeded)
			comm_joined(process, frame);
		break;
	}
	return 0;
}
