/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/sandbox.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX 128

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED false
#endif

int sandbox_enter(const char *name)
{
	if (prctl(PR_SET_NAME, name) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	return 0;
}

pid_t sandbox_fork(const char *name, void (*run)(void), int *ret_socket)
{
	int sockets[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, name);
		if (dup2(sockets[1], STDIN_FILENO) == STDIN_FILENO &&
		    syscall(SYS_close_range, 1, ~0U, 0) == 0)
			run();
		_exit(EXIT_FAILURE);
	}
	err = -errno;
	close(sockets[1]);
	if (pid < 0) {
		close(sockets[0]);
		return err;
	}
	*ret_socket = sockets[0];
	return pid;
}

void sandbox_bound_capabilities(u64 mask)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(mask & SANDBOX_CAP(cap)))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int sandbox_keep_capabilities(u64 mask)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};

	sandbox_bound_capabilities(mask);
	if (syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	for (u32 i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		sets[i].permitted &= (u32)(mask >> (32 * i));
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &header, sets) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

int sandbox_allow_calls(const int *calls, u32 nr, int error)
{
	const u32 otherwise =
		error ? SECCOMP_RET_ERRNO | (u32)error : (u32)SECCOMP_RET_KILL_PROCESS;
	struct sock_filter filter[5 + 2 * CALLS_MAX] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .len = 4, .filter = filter };

	if (IS_SANITIZED)
		return 0;
	if (nr > CALLS_MAX)
		return -E2BIG;
	for (u32 i = 0; i < nr; i++) {
		filter[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								     (u32)calls[i], 0, 1);
		filter[program.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

static int lower(int resource, u64 value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return -errno;
	if (limit.rlim_max > value)
		limit.rlim_max = value;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

int sandbox_limit(u64 memory_bytes, u64 nr_files)
{
	int err = IS_SANITIZED ? 0 : lower(RLIMIT_AS, memory_bytes);

	if (err == 0)
		err = lower(RLIMIT_NOFILE, nr_files);
	return err < 0 ? err : lower(RLIMIT_CORE, 0);
}
