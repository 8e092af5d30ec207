/* SPDX-License-Identifier: GPL-2.0-or-later */

/* What the BPF programs know about the devices of a process, and what user space found out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"

static struct process_key key_of(const struct process_state *process)
{
	return (struct process_key){ .start_ns = process->start_ns, .tgid = process->task.pid };
}

/* The storage of a process begins with its state and ends with its claims. */
static int read_storage(const struct kernel *kernel, int pidfd, struct process_state *ret,
			struct gpu_claims *ret_claims)
{
	const struct bpf_map *map = kernel->skel->maps.processes;
	size_t size = bpf_map__value_size(map);
	CLEANUP_FREE char *storage = malloc(size);
	int err;

	if (!storage)
		return -ENOMEM;
	err = bpf_map__lookup_elem(map, &pidfd, sizeof(pidfd), storage, size, 0);
	if (err < 0)
		return err;
	memcpy(ret, storage, sizeof(*ret));
	if (ret_claims)
		memcpy(ret_claims, storage + size - sizeof(*ret_claims), sizeof(*ret_claims));
	return 0;
}

int kernel_read_process(const struct kernel *kernel, int pidfd, struct process_state *ret)
{
	return read_storage(kernel, pidfd, ret, NULL);
}

static u32 devices_with_memory(const struct process_state *process)
{
	u32 devices = 0;

	for (u32 level = 0; level < LEVEL_NR; level++)
		for (u32 i = 0; i < GPU_MAX; i++)
			if (process->books[level][i].current_bytes)
				devices |= 1U << i;
	return devices;
}

int kernel_read_gpu_facts(const struct kernel *kernel, const struct process_state *process,
			  struct gpu_facts *ret)
{
	CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, process->task.pid, 0);
	struct gpu_facts facts = { .holds = devices_with_memory(process) };
	struct process_state now;
	int err;

	if (pidfd < 0)
		return -errno;
	err = read_storage(kernel, pidfd, &now, &facts.claims);
	if (err < 0)
		return err;
	if (now.start_ns != process->start_ns)
		return -ESRCH;
	/* A process without an entry has opened no GPU. */
	(void)bpf_map__lookup_elem(kernel->skel->maps.gpu_holders, &pidfd, sizeof(pidfd),
				   &facts.opened, sizeof(facts.opened), 0);
	*ret = facts;
	return 0;
}

void kernel_set_gpu_numbers(struct kernel *kernel, const struct process_state *process,
			    const struct gpu_numbers *numbers)
{
	struct process_key key = key_of(process);

	bpf_map__update_elem(kernel->skel->maps.gpu_numbers, &key, sizeof(key), numbers,
			     sizeof(*numbers), BPF_ANY);
}

int kernel_gpu_numbers(const struct kernel *kernel, const struct process_state *process,
		       struct gpu_numbers *ret)
{
	struct process_key key = key_of(process);

	return bpf_map__lookup_elem(kernel->skel->maps.gpu_numbers, &key, sizeof(key), ret,
				    sizeof(*ret), 0);
}
