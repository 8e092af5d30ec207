/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Opens uprobes of perf, for kernels without multi-uprobe links (6.6). Debian's kernels allow no
 * perf event without CAP_SYS_ADMIN (kernel.perf_event_paranoid is 3), and libraries appear long
 * after zerneld has dropped that capability. Therefore a child process keeps it, and can do nothing
 * else with it: its only system calls are those that receive a request, open a uprobe in the file
 * that came with the request, and reply with its descriptor.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/kernel_internal.h"

#define PMU "/sys/bus/event_source/devices/uprobe/"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

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

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* Sends data, and a descriptor unless it is negative. */
static int send_with(int socket, const void *data, size_t size, int fd)
{
	struct iovec part = { .iov_base = (void *)data, .iov_len = size };
	union control control = {};
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		*header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fd)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Receives exactly `size` bytes; *ret_fd is negative without a descriptor. */
static int receive_with(int socket, void *data, size_t size, int *ret_fd)
{
	struct iovec part = { .iov_base = data, .iov_len = size };
	union control control = {};
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	ssize_t nr = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);

	if (nr < 0)
		return -errno;
	*ret_fd = -EBADF;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return (size_t)nr == size ? 0 : -EPIPE;
}

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

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};

	if (syscall(__NR_capget, &header, sets) < 0)
		return -errno;
	for (u32 i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		u32 kept = 0;

		if (i == CAP_TO_INDEX(CAP_SYS_ADMIN))
			kept |= CAP_TO_MASK(CAP_SYS_ADMIN);
		if (i == CAP_TO_INDEX(CAP_PERFMON))
			kept |= CAP_TO_MASK(CAP_PERFMON);
		sets[i].permitted &= kept;
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	return syscall(__NR_capset, &header, sets) < 0 ? -errno : 0;
}

/* Every other system call ends the process. */
static int restrict_calls(void)
{
#define ALLOW(call)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),                                           \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(__NR_recvmsg),
		ALLOW(__NR_sendmsg),
		ALLOW(__NR_perf_event_open),
		ALLOW(__NR_close),
		ALLOW(__NR_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
#undef ALLOW
	struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

/*
 * The child. It ends with the parent, whose end of the socket closes. It must not keep other files
 * of the parent open: BPF programs stay attached as long as their descriptors exist.
 */
static _Noreturn void serve(int socket)
{
	struct request request;
	int file, err = 0;

	prctl(PR_SET_NAME, "zerneld-opener");
	if (dup2(socket, 0) < 0 || syscall(__NR_close_range, 1, ~0U, 0) < 0 ||
	    drop_capabilities() < 0 || restrict_calls() < 0)
		_exit(EXIT_FAILURE);
	while (err == 0 && receive_with(0, &request, sizeof(request), &file) == 0) {
		CLEANUP_FD int library = file;
		CLEANUP_FD int fd = open_uprobe(&request, library);

		err = send_with(0, &fd, sizeof(fd), fd);
	}
	_exit(EXIT_SUCCESS);
}

/* Each probe has a descriptor, and one library can have 200 of them. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int opener_new(struct opener **ret)
{
	CLEANUP_FREE struct opener *opener = calloc(1, sizeof(*opener));
	int sockets[2], err;
	uint64_t type;

	if (!opener)
		return -ENOMEM;
	err = file_read_number(PMU "type", &type);
	if (err < 0)
		return err;
	opener->type = (u32)type;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	opener->socket = sockets[0];
	opener->child = fork();
	if (opener->child == 0)
		serve(sockets[1]);
	err = -errno;
	close(sockets[1]);
	if (opener->child < 0) {
		close(sockets[0]);
		return err;
	}
	raise_file_limit();
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
	int err = send_with(opener->socket, &request, sizeof(request), file), result, fd;

	if (err == 0)
		err = receive_with(opener->socket, &result, sizeof(result), &fd);
	if (err < 0)
		return err;
	return result < 0 ? result : fd;
}
