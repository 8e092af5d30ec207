/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/process.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

pid_t fork_tied(void)
{
	pid_t parent = getpid();
	pid_t pid;

	/* Otherwise parent and child would both print the buffered output. */
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The parent may have ended before the prctl(). */
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

void *shared_alloc(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

void *shared_join(const char *path, size_t bytes, void (*init)(void *map, const void *arg),
		  const void *arg)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	void *map = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	/* The others wait for the lock until the first process has filled the memory. */
	if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 &&
	    (st.st_size || ftruncate(fd, (off_t)bytes) == 0))
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED && !st.st_size)
		init(map, arg);
	/* The mapping keeps the file open, and with it the lock. */
	flock(fd, LOCK_UN);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

void futex_wait(u32 *word, u32 expected, u64 timeout_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(timeout_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(timeout_ns % NSEC_PER_SEC),
	};

	syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ns ? &ts : NULL, NULL, 0);
}

void futex_wake_all(u32 *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
