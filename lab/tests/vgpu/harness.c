/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness.h"

#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANG_SECONDS 200

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
	/* A test that hangs must not block the run, also on a machine with few free CPUs. */
	alarm(HANG_SECONDS);
	unsetenv("VGPU_KERNEL_NS");
	unsetenv("VGPU_QUEUE");
	unsetenv("VGPU_SM_PERCENT");
	unsetenv("VGPU_GPM");
	unsetenv("VGPU_MINORS");
	unsetenv("VGPU_MIG");
	unsetenv("VGPU_CONTAINER");
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

/* The name of the writer depends on the vendor. */
void harness_log(pid_t pid, struct truth_file *ret)
{
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*.%d.truth", truth, pid);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	assert_int_equal(truth_read(found.gl_pathv[0], ret), 0);
	globfree(&found);
	assert_int_equal(ret->header.nr_dropped, 0);
}

static const struct truth_record *launch_of(const struct truth_file *file,
					    const struct truth_record *busy)
{
	for (u64 i = 0; i < file->nr_records; i++)
		if (file->records[i].kind == TRUTH_LAUNCH && file->records[i].c == busy->c)
			return &file->records[i];
	fail_msg("work without a launch");
	return NULL;
}

void work_read(u64 since_ns, const void *stream, struct work *ret, u32 nr)
{
	struct truth_file file;
	u32 found = 0;

	harness_log(getpid(), &file);
	for (u64 i = 0; i < file.nr_records; i++) {
		const struct truth_record *busy = &file.records[i], *launch;

		if (busy->kind != TRUTH_BUSY || busy->b != (u64)stream)
			continue;
		launch = launch_of(&file, busy);
		if (launch->start_ns < since_ns)
			continue;
		assert_true(found < nr);
		ret[found++] = (struct work){ launch->start_ns, launch->end_ns, busy->start_ns,
					      busy->end_ns };
	}
	truth_file_done(&file);
	assert_int_equal(found, nr);
}

void work_check(const struct work *work, u64 ready_ns, u64 duration_ns)
{
	assert_int_equal(work->end_ns - work->start_ns, duration_ns);
	assert_true(work->start_ns >= ready_ns && work->start_ns >= work->entered_ns);
	assert_true(work->start_ns <= ready_ns || work->start_ns <= work->returned_ns);
}

u64 work_busy_ns(pid_t pid, u32 device, u64 from_ns, u64 to_ns)
{
	struct truth_file file;
	u64 busy_ns = 0, reached = from_ns;

	harness_log(pid, &file);
	for (u64 i = 0; i < file.nr_records; i++) {
		const struct truth_record *r = &file.records[i];
		u64 start = r->start_ns > reached ? r->start_ns : reached;
		u64 end = r->end_ns < to_ns ? r->end_ns : to_ns;

		if (r->kind != TRUTH_BUSY || r->a != device || end <= start)
			continue;
		busy_ns += end - start;
		reached = end;
	}
	truth_file_done(&file);
	return busy_ns;
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
		alarm(HANG_SECONDS);
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
