// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The snapshot that user space mirrors: iterates over all tasks and writes the
 * records of ML processes, the process with its leader, then each thread. It
 * changes only collective_mapped and holds_gpu, which are kept outside of the state
 * and would otherwise show only at the next check. A process that is written at the
 * same moment shows it by its write counts.
 */
#include "bpf/signals/ranks.bpf.h"

SEC("iter/task")
int snapshot(struct bpf_iter__task *ctx)
{
	static const u64 process_head = RECORD_PROCESS;
	struct task_struct *p = ctx->task;
	struct process_state *process;
	struct thread_record thread;

	if (!p)
		return 0;
	process = process_find(p);
	if (!process)
		return 0;
	if (p->pid == p->tgid) {
		process->task.signals.collective_mapped = collective_is_mapped(p);
		process->holds_gpu = holds_gpu(p);
		bpf_seq_write(ctx->meta->seq, (void *)&process_head, sizeof(process_head));
		bpf_seq_write(ctx->meta->seq, process, sizeof(*process));
	}
	thread_describe(p, &thread);
	bpf_seq_write(ctx->meta->seq, &thread, sizeof(thread));
	return 0;
}
