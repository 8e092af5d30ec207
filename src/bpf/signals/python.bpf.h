/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the stack of the current task in its CPython interpreter, for lines.bpf.c and oom.bpf.c.
 * Trusts nothing in the memory of the process: core/python.h.
 */
#include "bpf/compat.bpf.h"
#include "core/python.h"

/* Reading stacks may take an eighth of the time, and so much at once. */
#define READ_PART     8
#define READ_BURST_NS (5 * NSEC_PER_MSEC)

static const struct python_memory own_memory;

static bool reads_too_much(struct python_budget *budget, u64 now)
{
	u64 since = budget->paid_ns, read = budget->read_ns;
	u64 paid = now > since ? (now - since) / READ_PART : 0;

	/* Each value is read once, because a second value could make the difference negative. */
	barrier_var(read);
	read -= paid < read ? paid : read;
	budget->read_ns = read;
	budget->paid_ns = now;
	return read > READ_BURST_NS;
}

struct search {
	const struct python_offsets *offsets;
	struct python_search search;
};

static int search_step(u32 i, struct search *search)
{
	return !python_search_step(&own_memory, search->offsets, &search->search);
}

/*
 * The state of a thread in its interpreter. Most threads keep it: *known is the last one. 0: it has
 * none, or it is behind the threads that are looked at, and then *ret_cut is 1.
 */
static u64 find_state(const struct python_offsets *offsets, u64 runtime, u64 *known, u32 native_id,
		      u32 *ret_cut)
{
	struct search search = { .offsets = offsets };

	if (python_is_thread(&own_memory, offsets, *known, native_id))
		return *known;
	search.search.native_id = native_id;
	python_search_begin(&own_memory, offsets, runtime, &search.search);
	search.search.found = compat_unknown(0);
	bpf_loop(PYTHON_THREADS_MAX, search_step, &search, 0);
	*known = search.search.found;
	*ret_cut = python_search_is_cut(&search.search);
	return *known;
}

#define HASH_PRIME 0x100000001b3ULL

struct walk {
	const struct python_offsets *offsets;
	struct python_frame_copy *copy;
	struct python_stack *stack;
	u64 frame;
	u64 hash; /* of the frames that were read */
};

static u64 hash_frame(u64 hash, const struct python_frame *frame)
{
	hash = (hash ^ frame->code) * HASH_PRIME;
	hash = (hash ^ frame->lines) * HASH_PRIME;
	return (hash ^ frame->instruction) * HASH_PRIME;
}

static int walk_step(u32 i, struct walk *walk)
{
	u64 nr = walk->stack->nr;

	walk->frame =
		python_walk_step(&own_memory, walk->offsets, walk->frame, walk->copy, walk->stack);
	if (walk->stack->nr != nr) {
		barrier_var(nr);
		walk->hash =
			hash_frame(walk->hash, &walk->stack->frames[nr & (PYTHON_FRAMES_MAX - 1)]);
	}
	return !walk->frame;
}

/*
 * Returns whether the stack has frames that could be read. Without any, it is cut if there was one
 * that could not, or may have been one in a thread that was not found. `runtime` 0: there is no
 * interpreter. The caller sets the offsets of the walk, and the memory for a frame and for the
 * stack.
 */
static bool stack_of_python(u64 runtime, u64 *known, u32 native_id, struct walk *walk)
{
	u32 is_cut = 0;
	u64 state = runtime ? find_state(walk->offsets, runtime, known, native_id, &is_cut) : 0;

	walk->stack->nr = 0;
	walk->stack->is_cut = is_cut;
	if (!state)
		return false;
	walk->hash = compat_unknown(0);
	walk->frame = python_innermost(&own_memory, walk->offsets, state);
	bpf_loop(PYTHON_STEPS_MAX, walk_step, walk, 0);
	if (walk->frame)
		walk->stack->is_cut = 1;
	return walk->stack->nr;
}

/* The thread ID that the process itself knows: that of its innermost namespace. */
static u32 native_id_of(struct task_struct *p)
{
	struct pid *pid = p->thread_pid;
	u32 level = BPF_CORE_READ(pid, level), nr = 0;

	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * bpf_core_type_size(struct upid));
	return nr;
}

/* Whether the task has memory, and only the rights of this user. */
static bool is_of_user(struct task_struct *p, u32 uid)
{
	const struct cred *cred = p->cred;

	return p->mm && !(p->flags & PF_EXITING) && cred && cred->uid.val == uid &&
	       cred->euid.val == uid && cred->suid.val == uid;
}
