/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/kernel_internal.h"

/* Maximum number of reads; a snapshot is read again when a process changed during the read. */
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

/* Sorts the records into the two arrays. False: a process changed while it was read. */
static bool sort_records(const char *data, size_t size, struct kernel_snapshot *snapshot)
{
	bool whole = true;
	size_t step = 0;

	for (size_t at = 0; record_at(data + at, size - at, &step); at += step) {
		if (step == sizeof(struct thread_record)) {
			memcpy(&snapshot->threads[snapshot->nr_threads++], data + at, step);
		} else {
			struct process_state *process =
				&snapshot->processes[snapshot->nr_processes++];

			memcpy(process, data + at + offsetof(struct process_record, process),
			       sizeof(*process));
			whole &= process_is_whole(process);
		}
	}
	return whole;
}

static int snapshot_try(struct kernel *kernel, struct kernel_snapshot *ret)
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
	err = sort_records(data, size, &snapshot) ? 0 : -EAGAIN;
	if (err < 0)
		kernel_snapshot_done(&snapshot);
	else
		*ret = snapshot;
	return err;
}

int kernel_snapshot_take(struct kernel *kernel, struct kernel_snapshot *ret)
{
	int err = -EAGAIN;

	for (int i = 0; i < TRIES && err == -EAGAIN; i++)
		err = snapshot_try(kernel, ret);
	return err;
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
