/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/kernel_internal.h"

/* Maximum number of reads of one process that changes while it is read. */
#define TRIES 20

static int read_records(struct kernel *kernel, void **ret, size_t *ret_size)
{
	CLEANUP_FD int fd = kernel_open_iterator(kernel->skel->progs.snapshot, NULL);

	return fd < 0 ? fd : file_read_iterator(fd, ret, ret_size);
}

/* The record at `data`, or NULL when the remaining data is too short. */
static const void *record_at(const char *data, size_t left, size_t *ret_size)
{
	static const size_t sizes[] = {
		[RECORD_PROCESS] = sizeof(struct process_record),
		[RECORD_THREAD] = sizeof(struct thread_record),
	};
	u32 kind;

	if (left < sizeof(kind))
		return NULL;
	memcpy(&kind, data, sizeof(kind));
	if (kind >= ARRAY_SIZE(sizes) || left < sizes[kind])
		return NULL;
	*ret_size = sizes[kind];
	return data;
}

/* Sorts the records into the two arrays. */
static void sort_records(const char *data, size_t size, struct kernel_snapshot *snapshot)
{
	size_t step = 0;

	for (size_t at = 0; record_at(data + at, size - at, &step); at += step) {
		if (step == sizeof(struct thread_record)) {
			memcpy(&snapshot->threads[snapshot->nr_threads++], data + at, step);
		} else {
			struct process_state *process =
				&snapshot->processes[snapshot->nr_processes++];

			memcpy(process, data + at + offsetof(struct process_record, process),
			       sizeof(*process));
		}
	}
}

/* Reads a process again that changed while it was read. No other process has to be read again. */
static void read_again(struct kernel *kernel, struct process_state *process)
{
	CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, process->task.pid, 0);
	struct process_state found;

	for (int i = 0; i < TRIES && pidfd >= 0; i++) {
		/* Another process may have its number by now. */
		if (kernel_read_process(kernel, pidfd, &found) < 0 ||
		    found.start_ns != process->start_ns)
			break;
		if (process_is_whole(&found)) {
			*process = found;
			return;
		}
	}
	kernel->nr_torn++;
}

int kernel_snapshot_take(struct kernel *kernel, struct kernel_snapshot *ret)
{
	CLEANUP_FREE void *data = NULL;
	struct kernel_snapshot snapshot = {};
	size_t size = 0;
	int err = read_records(kernel, &data, &size);

	if (err < 0)
		return err;
	/* One element more than needed, because calloc() with 0 elements may return NULL. */
	snapshot.processes =
		calloc(size / sizeof(struct process_record) + 1, sizeof(*snapshot.processes));
	snapshot.threads =
		calloc(size / sizeof(struct thread_record) + 1, sizeof(*snapshot.threads));
	if (!snapshot.processes || !snapshot.threads) {
		kernel_snapshot_done(&snapshot);
		return -ENOMEM;
	}
	sort_records(data, size, &snapshot);
	for (u32 i = 0; i < snapshot.nr_processes; i++)
		if (!process_is_whole(&snapshot.processes[i]))
			read_again(kernel, &snapshot.processes[i]);
	*ret = snapshot;
	return 0;
}

int kernel_snapshot_read(struct kernel *kernel, struct kernel_snapshot *ret)
{
	if (kernel_sweep_is_due(kernel))
		kernel_sweep(kernel);
	return kernel_snapshot_take(kernel, ret);
}

void kernel_snapshot_done(struct kernel_snapshot *snapshot)
{
	free(snapshot->processes);
	free(snapshot->threads);
	*snapshot = (struct kernel_snapshot){};
}

/* Reads all entries in one call: entries may be added or deleted between two calls. */
int kernel_read_culprits(struct kernel *kernel, struct kernel_culprit **ret, u32 *ret_nr)
{
	int fd = bpf_map__fd(kernel->skel->maps.culprits), err;
	u32 nr = bpf_map__max_entries(kernel->skel->maps.culprits), at;
	CLEANUP_FREE struct culprit_key *keys = calloc(nr, sizeof(*keys));
	CLEANUP_FREE u64 *values = calloc(nr, sizeof(*values));
	struct kernel_culprit *culprits;

	if (!keys || !values)
		return -ENOMEM;
	err = bpf_map_lookup_batch(fd, NULL, &at, keys, values, &nr, NULL);
	/* -ENOENT means that the last entry was reached. */
	if (err < 0 && err != -ENOENT)
		return err;
	culprits = calloc(nr + 1, sizeof(*culprits));
	if (!culprits)
		return -ENOMEM;
	for (u32 i = 0; i < nr; i++)
		culprits[i] = (struct kernel_culprit){ .key = keys[i], .ns = values[i] };
	*ret = culprits;
	*ret_nr = nr;
	return 0;
}
