/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps the stack of the current task for lines.bpf.c, with the code of its frames. The programs
 * run with interrupts disabled, so one scratch memory for each CPU is enough.
 */
#include "bpf/signals/lines_tables.bpf.h"
#include "bpf/signals/python.bpf.h"

/* Code objects that are copied in one run, so that a run is short. */
#define COPIES_MAX 16
/* Frames and further parts of tables that one run looks at. */
#define NAME_STEPS (2 * PYTHON_FRAMES_MAX)

struct scratch {
	u64 ticked_ns; /* the last tick of this CPU */
	struct python_frame_copy frame;
	struct lines_stack_value stack;
	struct python_code code;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} lines_scratch SEC(".maps");

static struct scratch *scratch_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&lines_scratch, &zero);
}

/* Reads the stack of the current thread into the scratch memory. Returns its hash, or 0. */
static u64 stack_read(const struct lines_process *process, u64 runtime, struct away *away,
		      u32 native_id, struct scratch *scratch)
{
	struct walk walk = { .offsets = &process->offsets,
			     .copy = &scratch->frame,
			     .stack = &scratch->stack.stack };

	if (!stack_of_python(runtime, &away->state, native_id, &walk))
		return 0;
	return (walk.hash ^ scratch->stack.stack.is_cut) ?: 1;
}

struct naming {
	const struct python_offsets *offsets;
	struct scratch *scratch;
	u64 at;	  /* the frame */
	u64 part; /* of its table */
	u64 nr_copied;
	struct lines_process *process;
	struct lines_stack_key key;
	u64 nr_failed;
};

static bool has_part(const struct python_code *code, u32 part)
{
	return part < PYTHON_PARTS_MAX && code->table_bytes > part * PYTHON_TABLE_BYTES;
}

/* Copies a part of the code of a frame, unless it is known. Returns whether there are more parts.
 */
static bool name_part(struct naming *naming, const struct python_frame *frame)
{
	struct python_code *code = &naming->scratch->code, *known;
	struct lines_code_key key = { .code = frame->code,
				      .lines = frame->lines,
				      .tgid = naming->key.tgid,
				      .part = naming->part,
				      .owner = naming->key.owner };

	known = bpf_map_lookup_elem(&lines_codes, &key);
	if (known)
		return has_part(known, key.part + 1);
	naming->nr_copied++;
	if (!python_code_read(&own_memory, naming->offsets, frame->code, key.part, code) ||
	    !share_add(&lines_codes, &key, code, &naming->process->used.nr_codes, LINES_CODES)) {
		naming->nr_failed++;
		return false;
	}
	return has_part(code, key.part + 1);
}

static int name_step(u32 i, struct naming *naming)
{
	const struct python_stack *stack = &naming->scratch->stack.stack;
	u64 at = naming->at;

	if (at >= stack->nr || naming->nr_copied >= COPIES_MAX)
		return 1;
	barrier_var(at);
	if (name_part(naming, &stack->frames[at & (PYTHON_FRAMES_MAX - 1)])) {
		naming->part++;
	} else {
		naming->part = 0;
		naming->at = at + 1;
	}
	return 0;
}

/*
 * Copies the code of the stack in the scratch memory that is not known yet. Returns whether all of
 * it is known now.
 */
static bool stack_name(struct lines_process *process, struct away *away, struct scratch *scratch,
		       const struct lines_stack_key *key)
{
	struct naming naming = {
		.offsets = &process->offsets, .scratch = scratch, .process = process, .key = *key
	};

	naming.at = compat_unknown(0);
	naming.part = compat_unknown(0);
	naming.nr_copied = compat_unknown(0);
	naming.nr_failed = compat_unknown(0);
	bpf_loop(NAME_STEPS, name_step, &naming, 0);
	/* A copy that failed for another reason is tried again at the next sample. */
	if (naming.nr_failed && process->used.nr_codes >= LINES_CODES)
		sample_dropped(process, away);
	return naming.at >= scratch->stack.stack.nr && !naming.nr_failed;
}

/* Keeps the stack in the scratch memory. */
static bool stack_keep(struct lines_process *process, struct away *away, struct scratch *scratch,
		       const struct lines_stack_key *key)
{
	struct lines_stack_value *known = bpf_map_lookup_elem(&lines_stacks, key);

	if (known && known->is_named)
		return true;
	scratch->stack.is_named = stack_name(process, away, scratch, key);
	if (known) {
		known->is_named = scratch->stack.is_named;
		return true;
	}
	return share_add(&lines_stacks, key, &scratch->stack, &process->used.nr_stacks,
			 LINES_STACKS);
}

/* Parents that are looked at: another loader, or a fork server, can start a loader. */
#define PARENT_LEVELS 2

/*
 * The address of the interpreter in another program than that of the process: a loader that was
 * spawned, or a fork server and its children. If both run the same executable file, and the
 * interpreter is linked into it, it is as far from the beginning of the code. 0: not known.
 */
static u64 runtime_in_program(struct mm_struct *mm, struct mm_struct *of_process, u64 runtime)
{
	u64 code = BPF_CORE_READ(of_process, start_code);
	u64 end = BPF_CORE_READ(of_process, end_data);
	struct inode *file = BPF_CORE_READ(of_process, exe_file, f_inode);

	if (!file || BPF_CORE_READ(mm, exe_file, f_inode) != file || runtime < code ||
	    runtime >= end)
		return 0;
	return runtime - code + BPF_CORE_READ(mm, start_code);
}

/*
 * The address of the interpreter in the memory of the current task; 0: it has none, or not a known
 * one. It is the same in a copy of the process. A task that has executed a program is no copy, and
 * neither are its children. The flag of other threads than the first says nothing.
 */
static u64 runtime_of(struct task_struct *p, u32 tgid, u64 runtime)
{
	struct task_struct *at = p->group_leader;
	bool is_copy = true;

	if ((u32)p->tgid == tgid)
		return runtime;
	for (u32 i = 0; i < PARENT_LEVELS && runtime; i++) {
		is_copy &= !!(BPF_CORE_READ(at, flags) & PF_FORKNOEXEC);
		at = BPF_CORE_READ(at, real_parent, group_leader);
		if ((u32)BPF_CORE_READ(at, tgid) == tgid)
			return is_copy ? runtime
				       : runtime_in_program(p->mm, BPF_CORE_READ(at, mm), runtime);
	}
	return 0;
}

/*
 * Reads the stack of the current task and keeps it. Where it cannot be read, the time still
 * counts. A thread spends a small part of its time here at most, however often it leaves its CPU
 * and whatever its memory contains.
 */
static void take_stack(struct task_struct *p, const struct process_state *process,
		       struct lines_process *python, struct away *away, struct lines_stack_key *ret)
{
	struct scratch *scratch = scratch_get();
	u64 now = bpf_ktime_get_ns();

	*ret = (struct lines_stack_key){ .tgid = p->tgid, .owner = process->task.pid };
	away->is_dropped = 0;
	if (!scratch || reads_too_much(&away->budget, now)) {
		sample_dropped(python, away);
		return;
	}
	/* Memory with the rights of another user is not read for those who may see the process. */
	if (is_of_user(p, process->uid))
		ret->hash = stack_read(python, runtime_of(p, ret->owner, python->runtime), away,
				       native_id_of(p), scratch);
	if (!ret->hash) {
		__sync_fetch_and_add(&python->counts.nr_unreadable, 1);
	} else if (!stack_keep(python, away, scratch, ret)) {
		ret->hash = 0;
		sample_dropped(python, away);
	}
	away->budget.read_ns += bpf_ktime_get_ns() - now;
}
