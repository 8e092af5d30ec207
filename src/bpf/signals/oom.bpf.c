// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Out-of-memory errors, as PyTorch itself reports them: core/oom.h. A process that uses no GPU is
 * not followed because of one.
 *
 * The Python stack of the thread is read at the error: after it, the thread is elsewhere. User
 * space has found the interpreter before. Nothing is read until PyTorch reports an error. Trusts
 * nothing in the memory of the process: python.bpf.h. The frames stay until user space takes them,
 * also those of an earlier error, which have another time. Of errors of several threads at the same
 * time, the one whose stack is read is reported. A tenant has a part of the table, and reading
 * takes a part of the time of a process, however often it fails. A stack that is not kept as a
 * whole is counted, but not the error of a thread without Python frames, such as those that run
 * backward functions. With more threads than are looked at, such an error is counted too.
 */
#include "bpf/signals/memory.bpf.h"
#include "bpf/signals/python.bpf.h"
#include "core/oom.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, OOM_PROCESSES_MAX *OOM_FRAMES_MAX);
	__type(key, struct oom_frame_key);
	__type(value, struct oom_frame);
} oom_frames SEC(".maps");

u64 nr_dropped_stacks;

/* Errors at one moment whose stacks are read: the ranks of a job fail together. */
#define OOM_SCRATCHES 16
/* A power of two, so that the verifier can check a masked index. */
_Static_assert((OOM_SCRATCHES & (OOM_SCRATCHES - 1)) == 0, "a mask selects one");

struct oom_scratch {
	u64 is_used;
	struct python_frame_copy copy;
	struct python_stack stack;
	struct oom_frame frame;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OOM_SCRATCHES);
	__type(key, u32);
	__type(value, struct oom_scratch);
} oom_scratches SEC(".maps");

struct keeping {
	const struct python_offsets *offsets;
	struct oom_scratch *scratch;
	struct oom_frame_key key;
	u64 group; /* the tenants of the process */
	u64 uid;
	u64 has_failed;
};

/*
 * Returns whether there is room for the frame. User space can take the frame of an earlier error
 * meanwhile, and put back one that belongs to a later state. Only the update that adds the frame to
 * the table counts it.
 */
static bool put_frame(const struct keeping *keeping, const struct oom_frame *frame)
{
	if (!bpf_map_update_elem(&oom_frames, &keeping->key, frame, BPF_EXIST))
		return true;
	if (!tenant_has_stacks(keeping->uid, keeping->group))
		return false;
	if (bpf_map_update_elem(&oom_frames, &keeping->key, frame, BPF_NOEXIST))
		return !bpf_map_update_elem(&oom_frames, &keeping->key, frame, BPF_EXIST);
	tenant_add_stacks(keeping->uid, keeping->group, 1);
	return true;
}

/* Without room for a frame, the outer ones are missing too. */
static int keep_frame(u32 i, struct keeping *keeping)
{
	const struct python_stack *stack = &keeping->scratch->stack;
	struct oom_frame *frame = &keeping->scratch->frame;

	if (i >= stack->nr)
		return 1;
	frame->frame = stack->frames[i & (PYTHON_FRAMES_MAX - 1)];
	frame->is_named =
		python_code_read(&own_memory, keeping->offsets, frame->frame.code, 0, &frame->code);
	keeping->key.index = i;
	keeping->has_failed = !put_frame(keeping, frame);
	return keeping->has_failed;
}

/* Returns false if frames were lost. */
static bool keep_stack(struct task_struct *p, const struct process_state *process,
		       const struct oom_python *python, struct oom_scratch *scratch, u64 time_ns)
{
	struct keeping keeping = { .offsets = &python->offsets,
				   .scratch = scratch,
				   .key = { .start_ns = process->start_ns,
					    .tgid = process->task.pid },
				   .group = process->group,
				   .uid = process->uid };
	struct walk walk = { .offsets = &python->offsets,
			     .copy = &scratch->copy,
			     .stack = &scratch->stack };
	u64 state = compat_unknown(0);

	if (!is_of_user(p, process->uid))
		return false;
	if (!stack_of_python(python->runtime, &state, native_id_of(p), &walk))
		return !scratch->stack.is_cut;
	keeping.has_failed = compat_unknown(0);
	scratch->frame.time_ns = time_ns;
	scratch->frame.nr_frames = scratch->stack.nr;
	scratch->frame.is_cut = scratch->stack.is_cut;
	bpf_loop(OOM_FRAMES_MAX, keep_frame, &keeping, 0);
	return !keeping.has_failed;
}

/* The scratch memory that is free, or NULL. One for each CPU would take 2 MB on 384 CPUs. */
static struct oom_scratch *scratch_claim(void)
{
	u32 first = bpf_get_smp_processor_id();

	for (u32 i = 0; i < OOM_SCRATCHES; i++) {
		u32 place = (first + i) & (OOM_SCRATCHES - 1);
		struct oom_scratch *scratch = bpf_map_lookup_elem(&oom_scratches, &place);

		if (scratch && __sync_val_compare_and_swap(&scratch->is_used, 0, 1) == 0)
			return scratch;
	}
	return NULL;
}

static bool take_stack(struct task_struct *p, const struct process_state *process,
		       struct oom_python *python, u64 time_ns)
{
	struct oom_scratch *scratch;
	bool is_kept;

	if (reads_too_much(&python->budget, time_ns))
		return false;
	scratch = scratch_claim();
	if (!scratch)
		return false;
	is_kept = keep_stack(p, process, python, scratch, time_ns);
	__sync_fetch_and_add(&python->budget.read_ns, bpf_ktime_get_ns() - time_ns);
	__sync_lock_test_and_set(&scratch->is_used, 0);
	return is_kept;
}

/* Returns whether an event is due. */
static bool keep_report(struct process_state *process, const struct oom_report *report,
			bool is_counted_only)
{
	bool is_due = false;

	process_write_begin(process);
	if (is_counted_only && process->oom.nr)
		process->oom.nr++;
	else
		is_due = oom_add(&process->oom, report);
	process_write_end(process);
	return is_due;
}

static bool keep_error(struct task_struct *p, struct process_state *process,
		       const struct oom_report *report)
{
	struct task_struct *leader = p->group_leader;
	struct oom_python *python = leader ? bpf_task_storage_get(&pythons, leader, NULL, 0) : NULL;
	bool is_other, is_kept, is_due;

	if (!python)
		return keep_report(process, report, false);
	is_other = __sync_val_compare_and_swap(&python->is_read, 0, 1);
	is_kept = !is_other && take_stack(p, process, python, report->time_ns);
	is_due = keep_report(process, report, is_other);
	if (!is_other)
		__sync_lock_test_and_set(&python->is_read, 0);
	if (!is_kept)
		__sync_fetch_and_add(&nr_dropped_stacks, 1);
	return is_due;
}

CALL_PROGRAM("uprobe.multi", oom_enter)
{
	struct arguments args = ARGUMENTS(ctx);
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct task_struct *p = bpf_get_current_task_btf();
	struct process_state *process = process_find(p);
	struct oom_report report = {};
	u64 device;

	if (!row || !process)
		return;
	device = argument(&args, row->arg[2] + 1);
	if (!oom_is_gpu(device))
		return;
	report.time_ns = bpf_ktime_get_ns();
	report.asked_bytes = argument(&args, row->arg[0]);
	report.allocated_bytes = argument(&args, row->arg[1]);
	report.reserved_bytes = argument(&args, row->arg[2]);
	report.device = oom_device(device);
	report.tid = p->pid;
	if (keep_error(p, process, &report))
		report_send(EVENT_OOM, p, report.time_ns);
}
