/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <sys/syscall.h>
#include <bpf/bpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"

int kernel_read_comms(struct kernel *kernel, pid_t pid, struct comms *ret)
{
	CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0)
		return -errno;
	return bpf_map__lookup_elem(kernel->skel->maps.process_comms, &pidfd, sizeof(pidfd), ret,
				    sizeof(*ret), 0);
}
