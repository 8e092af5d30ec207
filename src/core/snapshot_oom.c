/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The other processes on the GPU of an out-of-memory error. */
#include <string.h>
#include "core/snapshot.h"

static u64 bytes_on(const struct snapshot_process *process, u32 gpu)
{
	for (u32 i = 0; i < process->nr_memory; i++)
		if (process->memory[i].gpu == gpu)
			return process->memory[i].book.current_bytes;
	return 0;
}

/* Keeps the list sorted, largest first. If it is full, the smallest one is not listed. */
static void add_other(struct snapshot_oom *oom, const struct snapshot_process *process, u64 bytes)
{
	u32 at = oom->nr_others;

	oom->others_bytes += bytes;
	oom->nr_holders++;
	if (at == OOM_OTHERS_MAX && oom->others[at - 1].bytes >= bytes)
		return;
	oom->nr_others = at < OOM_OTHERS_MAX ? at + 1 : OOM_OTHERS_MAX;
	for (at = oom->nr_others - 1; at > 0 && oom->others[at - 1].bytes < bytes; at--)
		oom->others[at] = oom->others[at - 1];
	oom->others[at] = (struct snapshot_oom_other){ .pid = process->pid,
						       .uid = process->uid,
						       .bytes = bytes };
	memcpy(oom->others[at].comm, process->comm, sizeof(process->comm));
}

void snapshot_oom_find_others(const struct snapshot *s, struct snapshot_process *process)
{
	struct snapshot_oom *oom = &process->oom;

	oom->others_bytes = 0;
	oom->nr_holders = oom->nr_others = 0;
	if (!oom->nr || oom->gpu == SNAPSHOT_GPU_UNKNOWN)
		return;
	oom->others_ns = s->monotonic_ns;
	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_process *other = &s->processes[i];
		u64 bytes = bytes_on(other, oom->gpu);

		if (other != process && !other->ended_ms && bytes)
			add_other(oom, other, bytes);
	}
}

void snapshot_oom_hide_others(struct snapshot_process *process)
{
	for (u32 i = 0; i < process->oom.nr_others; i++) {
		struct snapshot_oom_other *other = &process->oom.others[i];

		if (other->uid != process->uid)
			*other = (struct snapshot_oom_other){ .uid = SNAPSHOT_UID_UNKNOWN,
							      .bytes = other->bytes };
	}
}
