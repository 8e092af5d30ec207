/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <sys/syscall.h>
#include <bpf/bpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"

static int read_comms(struct kernel *kernel, int pidfd, struct comms *ret)
{
	return bpf_map__lookup_elem(kernel->skel->maps.process_comms, &pidfd, sizeof(pidfd), ret,
				    sizeof(*ret), 0);
}

int kernel_read_comms(struct kernel *kernel, pid_t pid, struct comms *ret)
{
	CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	return pidfd < 0 ? -errno : read_comms(kernel, pidfd, ret);
}

int kernel_read_comms_of(struct kernel *kernel, const struct process_state *process,
			 struct comms *ret)
{
	CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, process->task.pid, 0);
	struct process_state found;
	int err;

	if (pidfd < 0)
		return -errno;
	err = kernel_read_process(kernel, pidfd, &found);
	if (err < 0)
		return err;
	return found.start_ns == process->start_ns ? read_comms(kernel, pidfd, ret) : -ESRCH;
}

void kernel_read_sequence(struct kernel *kernel, const struct process_state *process,
			  const struct comms *comms, u32 place, struct sequence *ret)
{
	struct sequence_key key = {
		.start_ns = process->start_ns,
		.tgid = process->task.pid,
		.comm = place,
	};
	int err = bpf_map__lookup_elem(kernel->skel->maps.sequences, &key, sizeof(key), ret,
				       sizeof(*ret), 0);

	if (err < 0 || ret->made_ns != comms->comm[place].since_ns)
		*ret = (struct sequence){};
}

static bool comms_have_group(const struct comms *comms, u64 group)
{
	for (u32 i = 0; i < COMMS_MAX; i++)
		if (comms->comm[i].state != COMM_FREE && comms->comm[i].group == group)
			return true;
	return false;
}

/* Removes the groups of running processes from the list. Returns the number of groups left. */
static u32 keep_deserted(struct kernel *kernel, const struct kernel_snapshot *snapshot, u64 *groups,
			 u32 nr)
{
	for (u32 p = 0; p < snapshot->nr_processes && nr; p++) {
		struct comms comms;
		u32 kept = 0;

		if (kernel_read_comms(kernel, (pid_t)snapshot->processes[p].task.pid, &comms) < 0)
			continue;
		for (u32 i = 0; i < nr; i++)
			if (!comms_have_group(&comms, groups[i]))
				groups[kept++] = groups[i];
		nr = kept;
	}
	return nr;
}

static u32 note_groups(const struct kernel *kernel, u64 *groups, u32 max)
{
	struct bpf_map *map = kernel->skel->maps.comm_groups;
	u64 key, at;
	u32 nr = 0;

	for (int err = bpf_map__get_next_key(map, NULL, &key, sizeof(key)); err == 0 && nr < max;
	     err = bpf_map__get_next_key(map, &at, &key, sizeof(key)))
		at = groups[nr++] = key;
	return nr;
}

u32 kernel_nr_groups(const struct kernel *kernel)
{
	u64 groups[SPLITS_MAX];

	return note_groups(kernel, groups, SPLITS_MAX);
}

/*
 * A rank joins its group before the group is visible, so the groups are listed before their
 * ranks are read. A rank that joins a dead group in between loses nothing, because a split
 * without all of its ranks stays unknown.
 */
int kernel_sweep_groups(struct kernel *kernel)
{
	struct kernel_snapshot snapshot = {};
	u64 groups[SPLITS_MAX];
	u32 nr = note_groups(kernel, groups, SPLITS_MAX);
	int err = nr ? kernel_snapshot_take(kernel, &snapshot) : 0;

	if (err == 0)
		nr = keep_deserted(kernel, &snapshot, groups, nr);
	for (u32 i = 0; i < nr && err == 0; i++)
		bpf_map__delete_elem(kernel->skel->maps.comm_groups, &groups[i], sizeof(*groups),
				     0);
	kernel_snapshot_done(&snapshot);
	return err;
}
