// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mirror's source: walks the machine's tasks and writes down those of ML
 * processes, the process with its leader, then each of its threads. Changes
 * nothing; a process that is written in that very moment shows it by its counts.
 */
#include "bpf/state.bpf.h"

static void write_thread(struct seq_file *seq, struct task_struct *p)
{
	struct thread_state *thread = thread_find(p);
	struct thread_record record = {
		.kind = RECORD_THREAD,
		.tgid = p->tgid,
		.tid = p->pid,
		.start_ns = p->start_boottime,
	};

	if (thread) {
		record.role = thread->role;
		record.runqueue_wait_ns = thread->runqueue_wait_ns;
		record.io_wait_ns = thread->io_wait_ns;
	}
	bpf_probe_read_kernel(record.comm, sizeof(record.comm), p->comm);
	bpf_seq_write(seq, &record, sizeof(record));
}

SEC("iter/task")
int snapshot(struct bpf_iter__task *ctx)
{
	static const u64 process_head = RECORD_PROCESS;
	struct task_struct *p = ctx->task;
	struct process_state *process;

	if (!p)
		return 0;
	process = process_find(p);
	if (!process)
		return 0;
	if (p->pid == p->tgid) {
		bpf_seq_write(ctx->meta->seq, (void *)&process_head, sizeof(process_head));
		bpf_seq_write(ctx->meta->seq, process, sizeof(*process));
	}
	write_thread(ctx->meta->seq, p);
	return 0;
}
