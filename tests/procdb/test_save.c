/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests base/file.h: a save that is killed or fails at every operation. */
#include "base/macros.h"
#include "procdb/support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"

#define SIZE_LIMIT (1UL << 20)

/* Small enough that a save takes several writes. */
#define WRITE_MAX 200

enum fault { FAULT_NONE, FAULT_KILL_BEFORE, FAULT_KILL_AFTER, FAULT_KILL_HALFWAY, FAULT_ERROR };

/* The operation that fails, and how. Static because the signatures of libc have no context. */
static struct {
	enum fault fault;
	int at;
	int error;
	int nr_done;
} plan;

static bool strikes(enum fault fault)
{
	return plan.fault == fault && plan.nr_done == plan.at;
}

/* True if the operation must not be executed. */
static bool before(void)
{
	plan.nr_done++;
	if (strikes(FAULT_KILL_BEFORE))
		raise(SIGKILL);
	if (!strikes(FAULT_ERROR))
		return false;
	errno = plan.error;
	return true;
}

static int after(int result)
{
	if (strikes(FAULT_KILL_AFTER))
		raise(SIGKILL);
	return result;
}

static int faulty_open(const char *path, int flags, mode_t mode)
{
	return before() ? -1 : after(file_ops_system.open(path, flags, mode));
}

static ssize_t faulty_write(int fd, const void *data, size_t size)
{
	size = size < WRITE_MAX ? size : WRITE_MAX;
	if (before())
		return -1;
	if (strikes(FAULT_KILL_HALFWAY)) {
		(void)!file_ops_system.write(fd, data, size / 2);
		raise(SIGKILL);
	}
	return after((int)file_ops_system.write(fd, data, size));
}

static int faulty_fsync(int fd)
{
	return before() ? -1 : after(file_ops_system.fsync(fd));
}

/* As on Linux, the descriptor is closed even if close() returns an error. */
static int faulty_close(int fd)
{
	bool fails = before();
	int r = file_ops_system.close(fd);

	return fails ? -1 : after(r);
}

static int faulty_rename(const char *from, const char *to)
{
	return before() ? -1 : after(file_ops_system.rename(from, to));
}

static int faulty_unlink(const char *path)
{
	return before() ? -1 : after(file_ops_system.unlink(path));
}

static const struct file_ops faulty_ops = {
	.open = faulty_open,
	.write = faulty_write,
	.fsync = faulty_fsync,
	.close = faulty_close,
	.rename = faulty_rename,
	.unlink = faulty_unlink,
};

/* Two encoded databases, and a directory for their files. */
struct fixture {
	char directory[64];
	char path[96];
	char temporary[104];
	u8 content[2][4096];
	size_t size[2];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	u64 rng = 7;

	assert_non_null(f);
	snprintf(f->directory, sizeof(f->directory), "/tmp/zernel-test-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	snprintf(f->path, sizeof(f->path), "%s/procdb", f->directory);
	snprintf(f->temporary, sizeof(f->temporary), "%s.new", f->path);
	for (int i = 0; i < 2; i++) {
		CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);

		db_fill_random(db, &rng, 80 + 40 * (unsigned int)i, EPOCH_S);
		assert_int_equal(
			procdb_encode(db, f->content[i], sizeof(f->content[i]), &f->size[i]), 0);
		assert_true(f->size[i] > 3 * WRITE_MAX);
	}
	assert_int_not_equal(f->size[0], f->size[1]);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", f->directory);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static int save(const struct fixture *f, const struct file_ops *ops, int which)
{
	return file_save(ops, f->path, f->content[which], f->size[which], 0600);
}

static bool content_is(const struct fixture *f, int which)
{
	CLEANUP_FREE void *data = NULL;
	size_t size = 0;

	assert_int_equal(file_read(f->path, SIZE_LIMIT, &data, &size), 0);
	return size == f->size[which] && memcmp(data, f->content[which], size) == 0;
}

/* Saves in a child that is killed at an operation. Returns true if the save completed instead. */
static bool save_in_child(const struct fixture *f, enum fault fault, int at)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		plan = (__typeof__(plan)){ .fault = fault, .at = at };
		_exit(save(f, &faulty_ops, 1) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return true;
	}
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return false;
}

static void test_killed_at_every_operation(void **state)
{
	static const enum fault faults[] = { FAULT_KILL_BEFORE, FAULT_KILL_AFTER,
					     FAULT_KILL_HALFWAY };
	const struct fixture *f = *state;
	int nr_killed = 0, nr_old = 0, nr_new = 0;

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		for (int at = 1; at <= 40; at++) {
			assert_int_equal(save(f, &file_ops_system, 0), 0);
			if (save_in_child(f, faults[i], at)) {
				assert_true(content_is(f, 1));
				continue;
			}
			nr_killed++;
			nr_old += content_is(f, 0);
			nr_new += content_is(f, 1);
			/* The leftovers of the killed save do not stop the next save. */
			assert_true(save_in_child(f, FAULT_NONE, 0));
			assert_true(content_is(f, 1));
			assert_int_equal(access(f->temporary, F_OK), -1);
		}
	assert_int_equal(nr_old + nr_new, nr_killed);
	/* open, writes, fsync, close and half of rename; then the directory. */
	assert_true(nr_old > 20);
	assert_int_equal(nr_new, 1 + 3 + 3);
}

/* Every operation fails once. The error is reported and no temporary file is left. */
static void test_failure_of_every_operation(void **state)
{
	static const int errors[] = { ENOSPC, EIO, EDQUOT };
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		int nr_operations, nr_reported = 0;

		assert_int_equal(save(f, &file_ops_system, 0), 0);
		plan = (__typeof__(plan)){ .fault = FAULT_NONE };
		/* Uses the same content as below, because longer content needs more writes. */
		assert_int_equal(save(f, &faulty_ops, 1), 0);
		nr_operations = plan.nr_done;
		for (int at = 1; at <= nr_operations; at++) {
			int r;

			plan = (__typeof__(plan)){ FAULT_ERROR, at, errors[i], 0 };
			assert_int_equal(save(f, &file_ops_system, 0), 0);
			r = save(f, &faulty_ops, 1);
			nr_reported += r == -errors[i];
			assert_true(r == 0 || r == -errors[i]);
			assert_int_equal(access(f->temporary, F_OK), -1);
			/* Three operations on the directory follow the rename. */
			assert_true(content_is(f, at > nr_operations - 3));
		}
		/* Only the failure of closing the directory is ignored. */
		assert_int_equal(nr_reported, nr_operations - 1);
	}
}

static ssize_t interrupted_write(int fd, const void *data, size_t size)
{
	if (plan.nr_done++ % 2 == 0) {
		errno = EINTR;
		return -1;
	}
	return file_ops_system.write(fd, data, size < 7 ? size : 7);
}

static void test_short_and_interrupted_writes(void **state)
{
	const struct fixture *f = *state;
	struct file_ops ops = file_ops_system;

	ops.write = interrupted_write;
	plan = (__typeof__(plan)){};
	assert_int_equal(save(f, &ops, 0), 0);
	assert_true(content_is(f, 0));
	assert_true(plan.nr_done > 100);
}

static void test_read_limits(void **state)
{
	const struct fixture *f = *state;
	CLEANUP_FREE void *data = NULL;
	char fifo[128];
	size_t size = 0;

	assert_int_equal(save(f, &file_ops_system, 0), 0);
	assert_int_equal(file_read(f->path, f->size[0] - 1, &data, &size), -EFBIG);
	assert_int_equal(file_read(f->temporary, SIZE_LIMIT, &data, &size), -ENOENT);
	assert_int_equal(file_read(f->directory, SIZE_LIMIT, &data, &size), -EINVAL);
	snprintf(fifo, sizeof(fifo), "%s/fifo", f->directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(file_read(fifo, SIZE_LIMIT, &data, &size), -EINVAL);
	assert_null(data);
	assert_int_equal(file_read(f->path, f->size[0], &data, &size), 0);
	assert_int_equal(size, f->size[0]);
}

/* The save must not follow a symbolic link at the temporary path. */
static void test_link_at_the_temporary_path_is_not_followed(void **state)
{
	const struct fixture *f = *state;
	char target[128];
	struct stat st;

	snprintf(target, sizeof(target), "%s/victim", f->directory);
	assert_int_equal(symlink(target, f->temporary), 0);
	assert_int_equal(save(f, &file_ops_system, 1), 0);
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(lstat(f->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_set_aside(void **state)
{
	const struct fixture *f = *state;

	for (int n = 1; n <= 2; n++) {
		CLEANUP_FREE char *name = NULL;
		char expected[128];

		assert_int_equal(save(f, &file_ops_system, 0), 0);
		assert_int_equal(file_set_aside(&file_ops_system, f->path, &name), 0);
		snprintf(expected, sizeof(expected), "%s.bad-%d", f->path, n);
		assert_string_equal(name, expected);
		assert_int_equal(access(f->path, F_OK), -1);
		assert_int_equal(access(name, F_OK), 0);
	}
	/* Setting aside a missing file fails and leaves no placeholder. */
	CLEANUP_FREE char *none = NULL;
	assert_int_equal(file_set_aside(&file_ops_system, f->path, &none), -ENOENT);
	assert_null(none);
	assert_int_equal(save(f, &file_ops_system, 0), 0);
	assert_int_equal(file_set_aside(&file_ops_system, f->path, &none), 0);
	assert_string_equal(strrchr(none, '-'), "-3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed_at_every_operation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failure_of_every_operation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short_and_interrupted_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link_at_the_temporary_path_is_not_followed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_set_aside, setup, teardown),
	};

	return cmocka_run_group_tests_name("save", tests, NULL, NULL);
}
