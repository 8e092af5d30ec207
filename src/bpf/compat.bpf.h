/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All differences between kernels, each tagged with the version that introduced
 * it. The choice is made at load time by what the running kernel provides, never
 * by its version number.
 */
#include "bpf/kernel.h"

/* Names in 6.12; removed in 6.17. */
extern void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice,
			     u64 enq_flags) __ksym __weak;
extern void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				   u64 enq_flags) __ksym __weak;
extern bool scx_bpf_consume(u64 dsq_id) __ksym __weak;
extern bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				      u64 dsq_id, u64 enq_flags) __ksym __weak;

/* 6.13 */
extern void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice,
			       u64 enq_flags) __ksym __weak;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				     u64 enq_flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym __weak;
extern bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			     u64 enq_flags) __ksym __weak;

extern bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
				   u64 enq_flags) __ksym __weak;
extern void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym __weak;

/* 6.19: the arguments do not fit into registers, so they are passed in a struct. */
struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
} __attribute__((preserve_access_index));

extern bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
				       struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;

/* 6.19: plain stores to the task are deprecated. */
extern bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;

/*
 * 6.7: before, the verifier examined the callback of bpf_loop() for one round only. It believed
 * that each round begins with the values that the context had before the loop, and removed code
 * that only a later round reaches. A value that rounds change must therefore begin as one that the
 * verifier does not know.
 */
static inline u64 compat_unknown(u64 value)
{
	static volatile u64 zero;

	return value + zero;
}

static inline void compat_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert))
		scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags);
	else
		scx_bpf_dispatch(p, dsq_id, slice, enq_flags);
}

static inline void compat_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
					   u64 enq_flags)
{
	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime)) {
		struct scx_bpf_dsq_insert_vtime_args args = {
			.dsq_id = dsq_id,
			.slice = slice,
			.vtime = vtime,
			.enq_flags = enq_flags,
		};

		__scx_bpf_dsq_insert_vtime(p, &args);
	} else if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime)) {
		scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, enq_flags);
	} else {
		scx_bpf_dispatch_vtime(p, dsq_id, slice, vtime, enq_flags);
	}
}

static inline bool compat_dsq_move_to_local(u64 dsq_id)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local))
		return scx_bpf_dsq_move_to_local(dsq_id);
	return scx_bpf_consume(dsq_id);
}

static inline bool compat_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
				   u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move))
		return scx_bpf_dsq_move(it, p, dsq_id, enq_flags);
	return scx_bpf_dispatch_from_dsq(it, p, dsq_id, enq_flags);
}

/* Where the kernel has cpu.max for schedulers (6.17), it has this function. */
static inline bool compat_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					 u64 dsq_id, u64 vtime)
{
	if (!bpf_ksym_exists(scx_bpf_dsq_move_vtime))
		return false;
	scx_bpf_dsq_move_set_vtime(it, vtime);
	return scx_bpf_dsq_move_vtime(it, p, dsq_id, 0);
}

static inline void compat_set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

/* 6.10 */
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

static inline void compat_preempt_disable(void)
{
	if (bpf_ksym_exists(bpf_preempt_disable))
		bpf_preempt_disable();
}

static inline void compat_preempt_enable(void)
{
	if (bpf_ksym_exists(bpf_preempt_enable))
		bpf_preempt_enable();
}

/*
 * 6.13: for programs that run at the entry and the return of a call. From 7.0
 * they take the context.
 */
extern bool bpf_session_is_return(void) __ksym __weak;
extern u64 *bpf_session_cookie(void) __ksym __weak;
extern bool bpf_session_is_return___ctx(void *ctx) __ksym __weak;
extern u64 *bpf_session_cookie___ctx(void *ctx) __ksym __weak;

static inline bool compat_session_is_return(void *ctx)
{
	if (bpf_ksym_exists(bpf_session_is_return___ctx))
		return bpf_session_is_return___ctx(ctx);
	return bpf_session_is_return();
}

/* Memory that a call keeps from its entry to its return. */
static inline u64 *compat_session_cookie(void *ctx)
{
	if (bpf_ksym_exists(bpf_session_cookie___ctx))
		return bpf_session_cookie___ctx(ctx);
	return bpf_session_cookie();
}

/* Why a task sleeps, by the system call that it is in. */
enum sleep_kind {
	SLEEP_OTHER,
	SLEEP_FUTEX,
	SLEEP_NOT_FOR_DATA, /* nanosleep, or a wait for a child process */
};

#if defined(__TARGET_ARCH_x86)
#define SYSCALL_OF(regs)	((struct pt_regs___zernel_x86 *)(regs))->orig_ax
#define SYSCALL_NANOSLEEP	35
#define SYSCALL_SCHED_YIELD	24
#define SYSCALL_FUTEX		202
#define SYSCALL_CLOCK_NANOSLEEP 230
#define SYSCALL_WAIT4		61
#define SYSCALL_WAITID		247
#elif defined(__TARGET_ARCH_arm64)
#define SYSCALL_OF(regs)	((struct pt_regs___zernel_arm64 *)(regs))->syscallno
#define SYSCALL_NANOSLEEP	101
#define SYSCALL_SCHED_YIELD	124
#define SYSCALL_FUTEX		98
#define SYSCALL_CLOCK_NANOSLEEP 115
#define SYSCALL_WAIT4		260
#define SYSCALL_WAITID		95
#endif

struct pt_regs___zernel_x86 {
	unsigned long orig_ax;
} __attribute__((preserve_access_index));

struct pt_regs___zernel_arm64 {
	s32 syscallno;
} __attribute__((preserve_access_index));

/* The system call that a task is in; negative if it was interrupted in user mode. */
static inline s32 compat_syscall(struct task_struct *p)
{
	return (s32)SYSCALL_OF(bpf_task_pt_regs(p));
}

static inline enum sleep_kind compat_sleep_kind(struct task_struct *p)
{
	switch (compat_syscall(p)) {
	case SYSCALL_FUTEX: return SLEEP_FUTEX;
	case SYSCALL_NANOSLEEP:
	case SYSCALL_CLOCK_NANOSLEEP:
	case SYSCALL_WAIT4:
	case SYSCALL_WAITID: return SLEEP_NOT_FOR_DATA;
	default: return SLEEP_OTHER;
	}
}

/* False on kernels without CONFIG_PSI. */
static inline bool compat_in_memstall(struct task_struct *p)
{
	return bpf_core_field_exists(p->in_memstall) &&
	       BPF_CORE_READ_BITFIELD_PROBED(p, in_memstall);
}
