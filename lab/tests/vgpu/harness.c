/* SPDX-License-Identifier: GPL-2.0-only */
#include "harness.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[64];
static char truth[96];

void harness_start(const char *devices, const char *memory_bytes)
{
	char shm[96];

	snprintf(dir, sizeof(dir), "/tmp/vgpu-test-XXXXXX");
	if (!mkdtemp(dir))
		abort();
	snprintf(shm, sizeof(shm), "%s/shm", dir);
	snprintf(truth, sizeof(truth), "%s/truth", dir);
	setenv("VGPU_SHM", shm, 1);
	setenv("VGPU_TRUTH", truth, 1);
	setenv("VGPU_DEVICES", devices, 1);
	setenv("VGPU_MEMORY_BYTES", memory_bytes, 1);
	setenv("VGPU_BANDWIDTH", "1e9", 1);
	setenv("VGPU_NCCL_BANDWIDTH", "1e9", 1);
	setenv("VGPU_NUMA", "0,1", 1);
	/* A test that hangs must not hang the run. */
	alarm(50);
	unsetenv("VGPU_KERNEL_NS");
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("HIP_VISIBLE_DEVICES");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

int harness_end(int result)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return result;
}

const char *harness_truth_dir(void)
{
	return truth;
}

u64 cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

void sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

void child_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "# %s:%d: %s\n", file, line, what);
	_exit(1);
}

pid_t child_start(child_fn fn, int index)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(40);
		fn(index);
		exit(0);
	}
	return pid;
}

void child_join(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void children_run(child_fn fn, unsigned int nr)
{
	pid_t pids[64];

	for (unsigned int i = 0; i < nr; i++)
		pids[i] = child_start(fn, (int)i);
	for (unsigned int i = 0; i < nr; i++)
		child_join(pids[i]);
}
