/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the programs on runtime calls. The attach cookie identifies the call.
 * call_rows gives its kind and the positions of its arguments. The frames of a
 * thread carry data from the entry of a call to its return.
 */
#include "bpf/signals/roles.bpf.h"

/*
 * A program on a user-space call can be preempted by another such program on the
 * same CPU, which the kernel does not expect. Since 6.13 both would use the same
 * per-CPU stack, and task storage cannot be created while the other program is
 * creating it. These functions disable and enable preemption.
 */
__hidden void cpu_hold(void);
__hidden void cpu_release(void);

#define CALL_PROGRAM(section, name)                                                                \
	static __always_inline void name##_undisturbed(struct pt_regs *ctx);                       \
	SEC(section) int name(struct pt_regs *ctx)                                                 \
	{                                                                                          \
		cpu_hold();                                                                        \
		name##_undisturbed(ctx);                                                           \
		cpu_release();                                                                     \
		return 0;                                                                          \
	}                                                                                          \
	static __always_inline void name##_undisturbed(struct pt_regs *ctx)

#if defined(__TARGET_ARCH_arm64)
#define REGISTER_ARGUMENTS   8
#define LAST_REGISTERS(ctx)  PT_REGS_PARM6(ctx), PT_REGS_PARM7(ctx), PT_REGS_PARM8(ctx)
#define STACK_ARGUMENTS(ctx) PT_REGS_SP(ctx)
#define RESULT_PLACE(ctx)    __PT_REGS_CAST(ctx)->regs[8]
#else
#define REGISTER_ARGUMENTS   6
#define LAST_REGISTERS(ctx)  PT_REGS_PARM6(ctx)
#define STACK_ARGUMENTS(ctx) (PT_REGS_SP(ctx) + 8) /* above the return address */
#define RESULT_PLACE(ctx)    PT_REGS_PARM1(ctx)
#endif

/* All registers are read first: the verifier allows no variable offset into them. */
struct arguments {
	u64 value[REGISTER_ARGUMENTS];
};

#define ARGUMENTS(ctx)                                                                             \
	{                                                                                          \
		{                                                                                  \
			PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx),                \
				PT_REGS_PARM4(ctx), PT_REGS_PARM5(ctx), LAST_REGISTERS(ctx),       \
		}                                                                                  \
	}

static inline u64 argument(const struct arguments *args, s8 position)
{
	u32 i = (u8)position;

	return i < REGISTER_ARGUMENTS ? args->value[i] : 0;
}

static inline const struct call_row *row_of(u64 cookie)
{
	/*
	 * Keep the compiler from computing the address before the check, and from reading the
	 * cookie again after it: the verifier of 6.1 would not know that it is the same value.
	 */
	barrier_var(cookie);
	if (cookie >= CALL_NR)
		return NULL;
	barrier_var(cookie);
	return &call_rows[cookie];
}

/* A call of a thread, at its entry or at its return. */
struct traced_call {
	u64 now;
	u64 cookie;
	struct task_struct *p;
	const struct call_row *row;
	struct thread_state *thread;
	struct process_state *process;
};

/* The barrier keeps the compiler from removing a mask that only the verifier needs. */
static inline struct call_frame *frame_at(struct thread_state *thread, u32 depth)
{
	barrier_var(depth);
	return &thread->frames[depth & (MAX_CALL_DEPTH - 1)];
}

static inline void frame_push(const struct traced_call *call, const struct arguments *args,
			      u64 result_place)
{
	const struct call_row *row = call->row;
	u32 depth = call->thread->depth++;
	struct call_frame *frame;

	if (depth >= MAX_CALL_DEPTH) {
		__sync_fetch_and_add(&nr_dropped_frames, 1);
		return;
	}
	frame = frame_at(call->thread, depth);
	frame->call = call->cookie;
	frame->comm = 0;
	frame->entered_ns = call->now;
	frame->arg[0] =
		row->arg[0] == ARG_RESULT_PLACE ? result_place : argument(args, row->arg[0]);
	frame->arg[1] = argument(args, row->arg[1]);
	frame->arg[2] = argument(args, row->arg[2]);
}

/* The frame of the call that returns. Skips the frames of calls that were left by longjmp. */
static inline struct call_frame *frame_pop(struct thread_state *thread, u32 call)
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

/* At the entry of a call whose return is traced. False if the call cannot be tracked. */
static inline bool call_entered(struct pt_regs *ctx, struct traced_call *call)
{
	struct arguments args = ARGUMENTS(ctx);
	u64 result_place = RESULT_PLACE(ctx);

	call->now = bpf_ktime_get_ns();
	call->cookie = bpf_get_attach_cookie(ctx);
	call->p = bpf_get_current_task_btf();
	call->row = row_of(call->cookie);
	call->thread = thread_get(call->p);
	call->process = process_get(call->p);
	if (!call->thread)
		__sync_fetch_and_add(&nr_dropped_frames, 1);
	if (!call->row || !call->thread || !call->process)
		return false;
	frame_push(call, &args, result_place);
	return true;
}

/* At the return of a call: the frame of its entry, or NULL if the entry was not seen. */
static inline struct call_frame *call_returned(struct pt_regs *ctx, struct traced_call *call)
{
	call->now = bpf_ktime_get_ns();
	call->cookie = bpf_get_attach_cookie(ctx);
	call->p = bpf_get_current_task_btf();
	call->row = row_of(call->cookie);
	call->thread = thread_find(call->p);
	call->process = process_find(call->p);
	if (!call->row || !call->thread || !call->process)
		return NULL;
	return frame_pop(call->thread, call->cookie);
}
