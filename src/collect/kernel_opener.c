/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Opens uprobes of perf, for kernels without multi-uprobe links (6.6). Debian's kernels allow no
 * perf event without CAP_SYS_ADMIN (kernel.perf_event_paranoid is 3), and libraries appear long
 * after zerneld has dropped that capability. Therefore a child process keeps it, and can do nothing
 * else with it: its only system calls are those that receive a request, open a uprobe in the file
 * that came with the request, and reply with its descriptor.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "base/sandbox.h"
#include "base/socket.h"
#include "collect/kernel_internal.h"

#define PMU "/sys/bus/event_source/devices/uprobe/"

struct request {
	u64 offset;
	u32 type; /* of the PMU */
	u32 returns;
};

struct opener {
	pid_t child;
	int socket;
	u32 type;
};

static int open_uprobe(const struct request *request, int file)
{
	char path[32];
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = request->type,
		.config = request->returns ? 1 : 0,
		.uprobe_path = (u64)(uintptr_t)path,
		.probe_offset = request->offset,
		.disabled = 1, /* the BPF program runs nevertheless, and nothing else is wanted */
	};
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	/* The program runs on all CPUs, whichever the event names. */
	fd = (int)syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The child. It ends with the parent, whose end of the socket closes. */
static void serve(void)
{
	static const int calls[] = { __NR_recvmsg, __NR_sendmsg, __NR_perf_event_open, __NR_close,
				     __NR_exit_group };
	struct request request;
	int file, err = 0;

	if (sandbox_keep_capabilities(SANDBOX_CAP(CAP_SYS_ADMIN) | SANDBOX_CAP(CAP_PERFMON)) < 0 ||
	    sandbox_allow_calls(calls, ARRAY_SIZE(calls), 0) < 0)
		_exit(EXIT_FAILURE);
	while (err == 0 &&
	       socket_receive(0, 0, &request, sizeof(request), &file) == sizeof(request)) {
		CLEANUP_FD int library = file;
		CLEANUP_FD int fd = open_uprobe(&request, library);

		err = socket_send(0, 0, &fd, sizeof(fd), fd);
	}
	_exit(EXIT_SUCCESS);
}

int opener_new(struct opener **ret)
{
	CLEANUP_FREE struct opener *opener = calloc(1, sizeof(*opener));
	uint64_t type;
	int err;

	if (!opener)
		return -ENOMEM;
	err = file_read_number(PMU "type", &type);
	if (err < 0)
		return err;
	opener->type = (u32)type;
	opener->child = sandbox_fork("zerneld-opener", serve, &opener->socket);
	if (opener->child < 0)
		return opener->child;
	*ret = TAKE_PTR(opener);
	return 0;
}

struct opener *opener_free(struct opener *opener)
{
	if (!opener)
		return NULL;
	close(opener->socket);
	waitpid(opener->child, NULL, 0);
	free(opener);
	return NULL;
}

int opener_open(struct opener *opener, int file, unsigned long offset, bool returns)
{
	struct request request = { .offset = offset, .type = opener->type, .returns = returns };
	int err = socket_send(opener->socket, 0, &request, sizeof(request), file), result, fd;
	ssize_t size;

	if (err < 0)
		return err;
	size = socket_receive(opener->socket, 0, &result, sizeof(result), &fd);
	if (size != sizeof(result))
		return size < 0 ? (int)size : -EPIPE;
	return result < 0 ? result : fd;
}
