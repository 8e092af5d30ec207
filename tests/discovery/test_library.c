/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests with real processes and files when libraries are attached and detached. */
#include "discovery/support.h"

static const char *lib_dir, *program, *static_program;
static char scratch[] = "/tmp/discovery.XXXXXX";

static struct library_set *set_make(struct recorder *recorder)
{
	struct library_set *set = NULL;

	assert_int_equal(library_set_new("/proc", &recorder_ops, recorder, &set), 0);
	return set;
}

static void lib_path(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", lib_dir, name);
}

static void scratch_path(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", scratch, name);
}

static void require_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("# skipped: mount namespaces and map_files need root\n");
	skip();
}

static void test_two_users_one_attachment(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	struct child first = child_start(program), second = child_start(program);
	char path[4096];

	lib_path(path, sizeof(path), "libcuda.so.1");
	child_do(&first, "open %s", path);
	assert_int_equal(library_set_scan_process(set, first.pid), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(recorder.last.runtime, RUNTIME_CUDA_DRIVER);
	assert_string_equal(recorder.last.name, "libcuda.so.1");
	assert_true(recorder.last.probes.nr > 20);

	assert_int_equal(library_set_scan_process(set, second.pid), 0);
	assert_int_equal(library_set_count(set).nr_processes, 1);
	child_do(&second, "open %s", path);
	assert_int_equal(library_set_scan_process(set, second.pid), 0);
	assert_int_equal(library_set_scan_process(set, second.pid), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(library_set_count(set).nr_processes, 2);

	child_end(&first);
	library_set_forget_process(set, first.pid);
	library_set_forget_process(set, first.pid);
	assert_int_equal(recorder.nr_detached, 0);
	child_end(&second);
	/* Without an event, the next scan finds that the process has exited. */
	assert_int_equal(library_set_scan_process(set, second.pid), -ESRCH);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);
	assert_int_equal(library_set_count(set).nr_libraries, 0);
	assert_int_equal(library_set_count(set).nr_processes, 0);
}

static void test_late_open_and_close(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	struct child child = child_start(program);
	char path[4096];

	/* libcudart loads libcuda, like the library of the vendor. */
	lib_path(path, sizeof(path), "libcudart.so.12");
	child_do(&child, "open %s", path);
	assert_int_equal(library_set_scan_process(set, child.pid), 0);
	assert_int_equal(recorder.nr_attached, 2);
	child_do(&child, "close");
	assert_int_equal(library_set_scan_process(set, child.pid), 0);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 2);
	child_do(&child, "open %s", path);
	assert_int_equal(library_set_scan_process(set, child.pid), 0);
	assert_int_equal(recorder.nr_attached, 4);
	child_end(&child);
	set = library_set_free(set);
	assert_int_equal(recorder.nr_detached, 4);
}

static void test_forked_child_is_a_user(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	struct child child = child_start(program);
	char path[4096], answer[64];
	pid_t forked;

	lib_path(path, sizeof(path), "libcuda.so.1");
	child_do(&child, "open %s", path);
	assert_int_equal(library_set_scan_process(set, child.pid), 0);
	child_ask(&child, answer, sizeof(answer), "fork");
	forked = atoi(answer);
	assert_true(forked > 0);
	assert_int_equal(library_set_fork_process(set, child.pid, forked), 0);
	library_set_forget_process(set, child.pid);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 0);
	/* A scan of the fork finds the same uses that it inherited. */
	assert_int_equal(library_set_scan_process(set, forked), 0);
	assert_int_equal(recorder.nr_detached, 0);
	library_set_forget_process(set, forked);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);
	child_end(&child);
}

static void test_static_runtime(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	struct child child = child_start(static_program);
	char line[16];
	struct stat st;

	assert_non_null(fgets(line, sizeof(line), child.from));
	assert_int_equal(library_set_scan_process(set, child.pid), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_true(recorder.last.is_executable);
	assert_int_equal(recorder.last.runtime, RUNTIME_CUDA);
	assert_int_equal(recorder.last.probes.nr, 3);
	assert_int_equal(stat(static_program, &st), 0);
	assert_int_equal(recorder.attached.st_ino, st.st_ino);
	child_end(&child);
	assert_int_equal(library_set_scan_process(set, child.pid), -ESRCH);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);
}

/*
 * The process still uses the old file, which has no name left, and not the new file of that
 * name.
 */
static void test_replaced_on_disk(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	struct child child = child_start(program);
	char from[4096], path[4096], other[4096];
	struct stat mapped, now;

	require_root();
	lib_path(from, sizeof(from), "libcuda.so.1");
	scratch_path(path, sizeof(path), "libcuda.so.1");
	scratch_path(other, sizeof(other), "other");
	copy_file(from, path);
	copy_file(from, other);
	assert_int_equal(stat(path, &mapped), 0);
	child_do(&child, "open %s", path);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(stat(path, &now), 0);
	assert_int_not_equal(now.st_ino, mapped.st_ino);

	assert_int_equal(library_set_scan_process(set, child.pid), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(recorder.attached.st_ino, mapped.st_ino);
	assert_int_equal(recorder.attached.st_nlink, 0);
	assert_string_equal(recorder.last.name, "libcuda.so.1");
	child_end(&child);
}

static void test_another_root(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	struct child inside, outside;
	char from[4096], answer[256];

	require_root();
	lib_path(from, sizeof(from), "libcuda.so.1");
	inside = child_start(program);
	child_ask(&inside, answer, sizeof(answer), "root %s %s", from, scratch);
	if (strcmp(answer, "ok")) {
		child_end(&inside);
		print_message("# skipped: cannot create a mount namespace: %s\n", answer);
		skip();
	}
	child_do(&inside, "open /libcuda.so.1");
	assert_int_equal(library_set_scan_process(set, inside.pid), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_true(recorder.last.probes.nr > 20);

	/* The copy in the new root is a different file. */
	outside = child_start(program);
	child_do(&outside, "open %s", from);
	assert_int_equal(library_set_scan_process(set, outside.pid), 0);
	assert_int_equal(recorder.nr_attached, 2);
	child_end(&inside);
	library_set_forget_process(set, inside.pid);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);
	child_end(&outside);
}

/* Two containers of one image share the lower inode, so the library is attached once. */
static void test_shared_layer(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	char from[4096], lower[4096], path[8192], upper[4096], answer[256];
	struct child children[2];
	struct stat seen[2];

	require_root();
	lib_path(from, sizeof(from), "libcuda.so.1");
	scratch_path(lower, sizeof(lower), "layer");
	scratch_path(upper, sizeof(upper), "container");
	assert_int_equal(mkdir(lower, 0755), 0);
	assert_int_equal(mkdir(upper, 0755), 0);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", lower);
	copy_file(from, path);
	for (int i = 0; i < 2; i++) {
		children[i] = child_start(program);
		child_ask(&children[i], answer, sizeof(answer), "overlay %s %s", lower, upper);
		if (strcmp(answer, "ok")) {
			for (int k = 0; k <= i; k++)
				child_end(&children[k]);
			print_message("# skipped: cannot mount overlayfs: %s\n", answer);
			skip();
		}
		child_do(&children[i], "open /libcuda.so.1");
		snprintf(path, sizeof(path), "/proc/%d/root/libcuda.so.1", children[i].pid);
		assert_int_equal(stat(path, &seen[i]), 0);
		assert_int_equal(library_set_scan_process(set, children[i].pid), 0);
	}
	print_message("# devices %#lx and %#lx, inode %lu\n", (unsigned long)seen[0].st_dev,
		      (unsigned long)seen[1].st_dev, (unsigned long)seen[0].st_ino);
	assert_true(seen[0].st_dev != seen[1].st_dev);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(library_set_count(set).nr_processes, 2);
	for (int i = 0; i < 2; i++)
		child_end(&children[i]);
}

static int make_scratch(void **state)
{
	return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
	remove_tree(scratch);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_users_one_attachment),
		cmocka_unit_test(test_late_open_and_close),
		cmocka_unit_test(test_forked_child_is_a_user),
		cmocka_unit_test(test_static_runtime),
		cmocka_unit_test(test_replaced_on_disk),
		cmocka_unit_test(test_another_root),
		cmocka_unit_test(test_shared_layer),
	};

	if (argc != 4)
		return 2;
	lib_dir = argv[1];
	program = argv[2];
	static_program = argv[3];
	return cmocka_run_group_tests_name("library", tests, make_scratch, remove_scratch);
}
