/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * zernel-gpu: the only process that runs the vendor's library. It has no capability and no file
 * but a socket to zerneld, and runs as a user of its own. zerneld kills it when it does not answer.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/sandbox.h"
#include "collect/gpu_message.h"

/*
 * What NVML and the C library need: files, memory, threads, the driver's ioctl() and the socket of
 * nvidia-persistenced. The virtual GPU of the lab also creates a file. The library is not ours, so
 * another call fails instead of ending the process. execve() is not in the list: the library would
 * start nvidia-modprobe, which could not load a module as this user.
 */
/* clang-format off */
static const int calls[] = {
	SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_lseek,
	SYS_openat, SYS_close, SYS_close_range, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs,
	SYS_fstatfs, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_getcwd,
	SYS_fcntl, SYS_dup, SYS_dup3, SYS_pipe2, SYS_eventfd2, SYS_ioctl, SYS_ppoll,
	SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_flock, SYS_ftruncate, SYS_fchmod, SYS_mmap, SYS_munmap,
	SYS_mprotect, SYS_mremap, SYS_madvise, SYS_mlock, SYS_munlock, SYS_brk, SYS_mincore,
	SYS_membarrier, SYS_get_mempolicy, SYS_clone, SYS_clone3, SYS_exit, SYS_exit_group,
	SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_set_tid_address, SYS_gettid, SYS_getpid,
	SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getgroups, SYS_tgkill,
	SYS_prctl, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
	SYS_rt_sigtimedwait, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_setaffinity,
	SYS_getcpu, SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep,
	SYS_gettimeofday, SYS_timerfd_create, SYS_timerfd_settime, SYS_uname, SYS_sysinfo,
	SYS_getrandom, SYS_prlimit64, SYS_getrusage, SYS_restart_syscall, SYS_socket, SYS_connect,
	SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_shutdown, SYS_getsockopt,
	SYS_setsockopt, SYS_getsockname, SYS_getpeername,
#if defined(__x86_64__)
	SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_poll, SYS_select,
	SYS_epoll_wait, SYS_dup2, SYS_pipe, SYS_arch_prctl, SYS_time,
#endif
};
/* clang-format on */

int main(void)
{
	if (sandbox_enter("zernel-gpu") < 0 || sandbox_keep_capabilities(0) < 0 ||
	    sandbox_allow_calls(calls, ARRAY_SIZE(calls), EPERM) < 0)
		return EXIT_FAILURE;
	gpu_serve(STDIN_FILENO, &gpu_nvml_ops, &gpu_config_system);
	/* Without the destructors of the vendor's library, which can hang too. */
	_exit(EXIT_SUCCESS);
}
