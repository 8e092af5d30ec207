/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * zernel-discover: the process that reads files of other users for zerneld. Its argument is the
 * task: each task is a process of its own, with the capabilities that the task needs.
 */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/sandbox.h"
#include "collect/gpu_message.h"
#include "collect/library_message.h"

/* The descriptors of DRM drivers: /proc/PID/fdinfo, and the NUMA node of a GPU in /sys. */
static void read_fdinfo(void)
{
	gpu_serve(STDIN_FILENO, &gpu_fdinfo_ops, &gpu_config_system);
}

/* Their mappings and libraries, and the names of their jobs. */
static void read_libraries(void)
{
	scan_serve(STDIN_FILENO, "/proc", JOB_LOGS);
}

/* clang-format off */
static const int calls[] = {
	SYS_openat2, SYS_fstatfs,
	SYS_read, SYS_pread64, SYS_openat, SYS_close, SYS_fstat, SYS_newfstatat, SYS_lseek,
	SYS_getdents64, SYS_fcntl, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
	SYS_brk, SYS_futex, SYS_getrandom, SYS_clock_gettime, SYS_sendmsg, SYS_recvmsg,
	SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit_group,
};
/* clang-format on */

static const struct {
	const char *name;
	u64 capabilities;
	void (*run)(void);
} tasks[] = {
	{ "fdinfo", SANDBOX_CAP(CAP_SYS_PTRACE), read_fdinfo },
	{ "libraries",
	  SANDBOX_CAP(CAP_SYS_PTRACE) | SANDBOX_CAP(CAP_DAC_READ_SEARCH) |
		  SANDBOX_CAP(CAP_CHECKPOINT_RESTORE),
	  read_libraries },
};

int main(int argc, char **argv)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(tasks) && (argc != 2 || strcmp(argv[1], tasks[i].name) != 0))
		i++;
	if (i == ARRAY_SIZE(tasks)) {
		fputs("zernel-discover: only zerneld starts this program\n", stderr);
		return 2;
	}
	if (sandbox_enter("zernel-discover") < 0 ||
	    sandbox_keep_capabilities(tasks[i].capabilities) < 0 ||
	    sandbox_allow_calls(calls, ARRAY_SIZE(calls), 0) < 0)
		return EXIT_FAILURE;
	tasks[i].run();
	_exit(EXIT_SUCCESS);
}
