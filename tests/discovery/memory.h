/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The memory of another process, for struct python_memory. */
#include <errno.h>
#include <sys/uio.h>
#include "abi/types.h"

/* `ctx`: its pid. */
static inline long read_process(void *ctx, void *to, u32 size, u64 from)
{
	const struct iovec local = { to, size };
	const struct iovec remote = { (void *)(uintptr_t)from, size }; /* of another process */

	return process_vm_readv(*(pid_t *)ctx, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0
											  : -EFAULT;
}
