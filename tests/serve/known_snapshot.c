/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Prints a snapshot with known values: a job of 8 ranks on 8 GPUs, each with launches of 1,
 * 2 ... 100 us and all-reduces of 1, 2 ... 100 ms.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/snapshot.h"
#include "ipc/snapshot_json.h"

#define NR_RANKS 8

static void fill(struct hist *hist, u64 unit_ns)
{
	for (u64 i = 1; i <= 100; i++)
		hist_record(hist, i * unit_ns);
}

static void add_rank(struct snapshot *snapshot, u32 rank, u32 job)
{
	struct snapshot_process *process = snapshot_add_process(snapshot, 1000 + rank);

	process->job = job;
	process->start_ns = 1000000 + rank;
	process->nr_ranks = 1;
	process->rank = (s32)rank;
	process->phase = PHASE_GPU_COMPUTE;
	process->launcher_tid = process->pid;
	process->task = (struct snapshot_task){
		.known = 1, .is_ml = 1, .io_wait_permille = 125, .gpu = rank, .last_sync_ns = 5
	};
	process->nr_memory = 1;
	process->memory[0].gpu = rank;
	book_alloc(&process->memory[0].book, 1ULL << 30);
	snapshot_set_text(process->comm, sizeof(process->comm), "train", 5);
	fill(snapshot_add_hist(snapshot, &process->hists, HIST_LAUNCH), 1000);
	fill(snapshot_add_hist(snapshot, &process->hists, HIST_COLLECTIVE), 1000000);
	snapshot_add_thread(snapshot, process->pid, ROLE_LAUNCHER)->pid = process->pid;
}

int main(void)
{
	const struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	struct snapshot *snapshot;
	size_t length;
	char *text;
	u32 job;

	if (snapshot_new(&limits, &snapshot) < 0)
		return EXIT_FAILURE;
	job = snapshot_add_job(snapshot, "/job", "train");
	snapshot->time_ms = 1;
	snapshot->monotonic_ns = 1;
	for (u32 rank = 0; rank < NR_RANKS; rank++)
		add_rank(snapshot, rank, job);
	if (snapshot_to_json(snapshot, &text, &length) < 0)
		return EXIT_FAILURE;
	puts(text);
	free(text);
	snapshot_free(snapshot);
	return EXIT_SUCCESS;
}
