/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Discovery, end to end: a library is found when a child of this test maps it, and from
 * then on the BPF programs count every call. No other process is watched.
 */
#include "discovery/support.h"
#include "signals/native.h"

#include "daemon/manager.h"
#include "support/timing.h"

#define NR_CALLS     1000
#define MAX_FOUND_NS NSEC_PER_SEC
#define MAX_GAP_NS   (2 * NSEC_PER_SEC)
#define PATIENCE_NS  (60 * NSEC_PER_SEC) /* ends a test that would hang */
#define POLL_MS	     5

static const char *lib_dir, *program, *static_program;
static char scratch[] = "/tmp/found.XXXXXX";

struct watch {
	struct kernel *kernel;
	struct manager *manager;
};

static void on_event(void *ctx, const struct event *event)
{
}

static void on_attach_error(void *ctx, const struct library *library, int err)
{
	print_message("# %s: %s\n", library->name, strerror(-err));
}

/* Watches the process and the children that it starts from now on. */
static struct watch watch_process(pid_t pid)
{
	static const struct manager_handler handler = { on_event, on_attach_error };
	struct watch watch = { .kernel = native_kernel() };
	int err = manager_new(watch.kernel, pid, false, &handler, NULL, &watch.manager);

	if (err == -EACCES || err == -EPERM || err == -ENOENT) {
		print_message("# skipped: cannot open perf events: %s\n", strerror(-err));
		kernel_free(watch.kernel);
		skip();
	}
	assert_int_equal(err, 0);
	return watch;
}

static struct watch watch_start(void)
{
	return watch_process(getpid());
}

static void watch_end(struct watch *watch)
{
	assert_int_equal(manager_nr_lost_maps(watch->manager), 0);
	manager_free(watch->manager);
	kernel_free(watch->kernel);
}

/* Processes events until `nr_libraries` are attached; returns that time. */
static u64 watch_until(struct watch *watch, u32 nr_libraries)
{
	u64 begin = time_of_ns(CLOCK_MONOTONIC), now = begin;

	while (manager_libraries(watch->manager).nr_libraries != nr_libraries) {
		assert_true(manager_poll(watch->manager, POLL_MS) >= 0);
		now = time_of_ns(CLOCK_MONOTONIC);
		assert_true(now - begin < PATIENCE_NS);
	}
	return now;
}

/* The same for one more library, whose mapping began after `since_ns`. */
static void watch_found(struct watch *watch, u32 nr_libraries, u64 since_ns)
{
	u64 found = watch_until(watch, nr_libraries);

	print_message("# attached %.2f ms after the start of the mapping\n",
		      (double)(found - since_ns) / NSEC_PER_MSEC);
	timing_assert(found - since_ns <= MAX_FOUND_NS);
}

static u64 launches_of(struct watch *watch, pid_t pid, enum call_level level)
{
	return native_state(watch->kernel, pid).nr_launches[level];
}

static void test_late_open(void **state)
{
	struct watch watch = watch_start();
	char answer[256];

	for (u32 round = 0; round < 3; round++) {
		struct child child = child_start(program);
		u64 begun = (u64)child_ask(&child, answer, sizeof(answer), "open %s/libcuda.so.1",
					   lib_dir);

		assert_string_equal(answer, "ok");
		watch_found(&watch, 1, begun);
		child_do(&child, "call cuLaunchKernel %u", NR_CALLS);
		assert_int_equal(launches_of(&watch, child.pid, LEVEL_DRIVER), NR_CALLS);
		/* The next child finds the library attached. */
		child_end(&child);
	}
	watch_end(&watch);
}

/*
 * A new zerneld takes over a job that runs: the time without probes begins when the former one has
 * ended, and ends when the libraries of the job are attached.
 */
static void test_gap_of_a_restart(void **state)
{
	struct child child = child_start(program);
	struct watch watch;
	u64 begin, cpu, gap;

	child_do(&child, "open %s/libcuda.so.1", lib_dir);
	child_do(&child, "open %s/libcudart.so.12", lib_dir);
	begin = time_of_ns(CLOCK_MONOTONIC);
	cpu = time_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	watch = watch_process(child.pid);
	gap = watch_until(&watch, 2) - begin;
	cpu = time_of_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	print_message("# attached %.0f ms after the start, with %.0f ms of CPU time\n",
		      (double)gap / NSEC_PER_MSEC, (double)cpu / NSEC_PER_MSEC);
	timing_assert(gap <= MAX_GAP_NS);
	child_do(&child, "call cuLaunchKernel %u", NR_CALLS);
	assert_int_equal(launches_of(&watch, child.pid, LEVEL_DRIVER), NR_CALLS);
	child_end(&child);
	watch_end(&watch);
}

/* The child has its own root and mount namespace, with its own copy of the library. */
static void test_another_root(void **state)
{
	struct watch watch = watch_start();
	struct child child = child_start(program);
	char answer[256];
	u64 begun;

	child_ask(&child, answer, sizeof(answer), "root %s/libcuda.so.1 %s", lib_dir, scratch);
	if (strcmp(answer, "ok")) {
		child_end(&child);
		watch_end(&watch);
		print_message("# skipped: cannot create a mount namespace: %s\n", answer);
		skip();
	}
	begun = (u64)child_ask(&child, answer, sizeof(answer), "open /libcuda.so.1");
	assert_string_equal(answer, "ok");
	watch_found(&watch, 1, begun);
	child_do(&child, "call cuLaunchKernel %u", NR_CALLS);
	assert_int_equal(launches_of(&watch, child.pid, LEVEL_DRIVER), NR_CALLS);
	child_end(&child);
	watch_end(&watch);
}

static void test_static_runtime(void **state)
{
	struct watch watch = watch_start();
	u64 begun = time_of_ns(CLOCK_MONOTONIC), before;
	struct child child = child_start(static_program);
	char line[16];

	assert_non_null(fgets(line, sizeof(line), child.from));
	watch_found(&watch, 1, begun);
	/* The call at its start may happen before the probes are attached. */
	before = launches_of(&watch, child.pid, LEVEL_RUNTIME);
	assert_in_range(before, 0, 1);
	fprintf(child.to, "%u\n", NR_CALLS);
	fflush(child.to);
	assert_non_null(fgets(line, sizeof(line), child.from));
	assert_string_equal(line, "done\n");
	assert_int_equal(launches_of(&watch, child.pid, LEVEL_RUNTIME), before + NR_CALLS);
	child_end(&child);
	watch_end(&watch);
}

/* Where the driver is probed, a launch of the runtime is not counted twice. */
static void test_launches_at_one_level(void **state)
{
	struct watch watch = watch_start();
	struct child child = child_start(program);

	child_do(&child, "open %s/libcuda.so.1", lib_dir);
	child_do(&child, "open %s/libcudart.so.12", lib_dir);
	watch_until(&watch, 2);
	child_do(&child, "call cuLaunchKernel 1");
	child_do(&child, "call cudaLaunchKernel %u", NR_CALLS);
	assert_int_equal(launches_of(&watch, child.pid, LEVEL_RUNTIME), 0);
	child_end(&child);
	watch_end(&watch);
}

/* The old process runs the old, deleted file; the new process maps the new file. */
static void test_replaced_on_disk(void **state)
{
	struct watch watch = watch_start();
	struct child old = child_start(program), new = child_start(program);
	char from[4096], path[4096], other[4096];
	u64 begun;

	snprintf(from, sizeof(from), "%s/libcuda.so.1", lib_dir);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", scratch);
	snprintf(other, sizeof(other), "%s/other", scratch);
	copy_file(from, path);
	copy_file(from, other);
	begun = time_of_ns(CLOCK_MONOTONIC);
	child_do(&old, "open %s", path);
	assert_int_equal(rename(other, path), 0);
	watch_found(&watch, 1, begun);
	begun = time_of_ns(CLOCK_MONOTONIC);
	child_do(&new, "open %s", path);
	watch_found(&watch, 2, begun);
	child_do(&old, "call cuLaunchKernel %u", NR_CALLS);
	child_do(&new, "call cuLaunchKernel %u", 2 * NR_CALLS);
	assert_int_equal(launches_of(&watch, old.pid, LEVEL_DRIVER), NR_CALLS);
	assert_int_equal(launches_of(&watch, new.pid, LEVEL_DRIVER), 2 * NR_CALLS);
	child_end(&old);
	child_end(&new);
	watch_end(&watch);
}

static bool has_collective(struct watch *watch, pid_t pid)
{
	return native_state(watch->kernel, pid).task.signals.collective_mapped;
}

static void watch_until_collective(struct watch *watch, pid_t pid)
{
	u64 begin = time_of_ns(CLOCK_MONOTONIC);

	while (!has_collective(watch, pid)) {
		assert_true(manager_poll(watch->manager, POLL_MS) >= 0);
		assert_true(time_of_ns(CLOCK_MONOTONIC) - begin < PATIENCE_NS);
	}
}

/* A library is detected by its name even without traceable calls, and buffers by their names. */
static void test_collectives_without_probes(void **state)
{
	struct watch watch = watch_start();
	struct child named = child_start(program), buffered = child_start(program);
	char from[4096], library[4096], buffers[] = "/dev/shm/nccl-XXXXXX";
	CLEANUP_FD int fd = mkstemp(buffers);

	assert_true(fd >= 0);
	snprintf(from, sizeof(from), "%s/libcuda.so.1", lib_dir);
	snprintf(library, sizeof(library), "%s/libnccl-hidden.so", scratch);
	copy_file(from, library);
	child_do(&named, "open %s", from);
	child_do(&buffered, "open %s", from);
	watch_until(&watch, 1);
	child_do(&named, "call cuLaunchKernel 1");
	child_do(&buffered, "call cuLaunchKernel 1");
	assert_false(has_collective(&watch, named.pid));
	assert_false(has_collective(&watch, buffered.pid));
	child_do(&named, "open %s", library);
	child_do(&buffered, "map %s", buffers);
	assert_int_equal(unlink(buffers), 0);
	watch_until_collective(&watch, named.pid);
	watch_until_collective(&watch, buffered.pid);
	assert_int_equal(manager_libraries(watch.manager).nr_libraries, 1);
	child_end(&named);
	child_end(&buffered);
	watch_end(&watch);
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
		cmocka_unit_test(test_late_open),
		cmocka_unit_test(test_gap_of_a_restart),
		cmocka_unit_test(test_another_root),
		cmocka_unit_test(test_static_runtime),
		cmocka_unit_test(test_launches_at_one_level),
		cmocka_unit_test(test_replaced_on_disk),
		cmocka_unit_test(test_collectives_without_probes),
	};

	if (argc != 4)
		return 2;
	lib_dir = argv[1];
	program = argv[2];
	static_program = argv[3];
	return cmocka_run_group_tests_name("found", tests, make_scratch, remove_scratch);
}
