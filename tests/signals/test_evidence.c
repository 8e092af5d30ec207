/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The evidence that a process uses a GPU, from its open files. /dev/full is the GPU here: it opens
 * without an effect. Only processes of the test are looked at.
 */
#include "signals/native.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "collect/gpu_devices.h"

#define MANY_FILES 5000

static struct kernel *kernel_with_gpu(void)
{
	struct kernel *kernel = native_kernel();
	struct gpu_devices devices;

	assert_int_equal(gpu_devices_find("/proc", "/dev/full", &devices), 0);
	kernel_set_gpu_devices(kernel, &devices);
	return kernel;
}

/* Runs `open_files` in a child and returns whether there is evidence for the child. */
static bool proven(struct kernel *kernel, void (*open_files)(void))
{
	int opened[2], done[2], status, pidfd;
	char byte = 0;
	bool ret;
	pid_t pid;

	assert_int_equal(pipe(opened), 0);
	assert_int_equal(pipe(done), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(done[1]);
		open_files();
		if (write(opened[1], &byte, 1) != 1 || read(done[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(opened[1]);
	assert_int_equal(read(opened[0], &byte, 1), 1);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0);
	ret = kernel_holds_gpu(kernel, pid, pidfd);
	close(opened[0]);
	close(done[0]);
	close(done[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(pidfd);
	return ret;
}

static void must_open(const char *path, int flags)
{
	if (open(path, flags, 0600) < 0)
		_exit(2);
}

static void open_nothing(void)
{
}

static void open_gpu(void)
{
	must_open("/dev/full", O_RDONLY);
}

static void open_path(void)
{
	must_open("/dev/full", O_PATH);
}

static void open_other(void)
{
	must_open("/dev/null", O_RDWR);
	must_open("/dev/zero", O_RDWR);
}

static void open_named(void)
{
	must_open("/tmp/nvidia0", O_RDWR | O_CREAT);
	unlink("/tmp/nvidia0");
}

/* The work for one process is bounded, so a device behind many files is not found. */
static void open_late(void)
{
	const struct rlimit limit = { 2 * MANY_FILES, 2 * MANY_FILES };

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		_exit(2);
	for (int i = 0; i < MANY_FILES; i++)
		if (dup(0) < 0)
			_exit(2);
	must_open("/dev/full", O_RDONLY);
}

static void test_open_files(void **state)
{
	static const struct {
		const char *what;
		void (*open_files)(void);
		bool proven;
	} cases[] = {
		{ "nothing", open_nothing, false },
		{ "a GPU", open_gpu, true },
		{ "a GPU with O_PATH", open_path, false },
		{ "other devices", open_other, false },
		{ "a regular file with the name of a GPU", open_named, false },
		{ "a GPU after many files", open_late, false },
	};
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = kernel_with_gpu();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (proven(kernel, cases[i].open_files) != cases[i].proven)
			fail_msg("%s", cases[i].what);
}

static void test_a_child_inherits_the_open_file(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = kernel_with_gpu();
	CLEANUP_FD int fd = open("/dev/full", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(proven(kernel, open_nothing));
}

/* Only in a guest, because the program sees the opens of the whole machine. */
static void test_an_open_is_seen_at_once(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = NULL;
	CLEANUP_FD int fd = -EBADF, pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct gpu_opened opened;

	if (!getenv("ZERNEL_IN_GUEST")) {
		print_message("# skipped: not in a guest\n");
		skip();
	}
	kernel = kernel_with_gpu();
	assert_true(kernel_has(kernel, FEATURE_DEVICE_OPENS));
	assert_int_equal(kernel_attach_devices(kernel), 0);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(bpf_map__lookup_elem(kernel->skel->maps.gpu_holders, &pidfd, sizeof(pidfd),
					      &opened, sizeof(opened), 0),
			 -ENOENT);
	close(fd);
	fd = open("/dev/full", O_RDONLY | O_CLOEXEC);
	assert_int_equal(bpf_map__lookup_elem(kernel->skel->maps.gpu_holders, &pidfd, sizeof(pidfd),
					      &opened, sizeof(opened), 0),
			 0);
	assert_int_equal(opened.files[GPU_FILE_OTHER], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_files),
		cmocka_unit_test(test_a_child_inherits_the_open_file),
		cmocka_unit_test(test_an_open_is_seen_at_once),
	};

	return cmocka_run_group_tests_name("evidence", tests, NULL, NULL);
}
