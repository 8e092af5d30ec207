/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Tests the side-band events of children of this test only: a late dlopen() must be
 * attached within a second, a fork must be known, and an exit must detach.
 */
#include "base/time.h"
#include "discovery/support.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "collect/mmap_events.h"
#include "support/timing.h"

#define PATIENCE_NS 60000000000LL

static const char *lib_dir, *program, *static_program;

#define CLEANUP_EVENTS CLEANUP(mmap_events_free_cleanup)

/* Handles the events like zerneld, and counts them. */
struct watch {
	struct recorder recorder;
	struct library_set *set;
	int nr_maps, nr_execs, nr_forks, nr_exits;
	pid_t last_fork;
	u64 last_device, last_inode;
};

static void on_map(void *ctx, pid_t pid, const char *name, u64 device, u64 inode)
{
	struct watch *watch = ctx;

	if (library_runtime_of(name) < 0)
		return;
	watch->nr_maps++;
	watch->last_device = device;
	watch->last_inode = inode;
	if (watch->set)
		library_set_scan_process(watch->set, pid);
}

static void on_exec(void *ctx, pid_t pid)
{
	struct watch *watch = ctx;

	watch->nr_execs++;
	if (watch->set)
		library_set_exec_process(watch->set, pid);
}

static void on_fork(void *ctx, pid_t parent, pid_t child)
{
	struct watch *watch = ctx;

	watch->nr_forks++;
	watch->last_fork = child;
	if (watch->set)
		library_set_fork_process(watch->set, parent, child);
}

static void on_exit_of(void *ctx, pid_t pid)
{
	struct watch *watch = ctx;

	watch->nr_exits++;
	if (watch->set)
		library_set_forget_process(watch->set, pid);
}

static const struct mmap_handler handler = { on_map, on_exec, on_fork, on_exit_of };

static long long now_ns(void)
{
	return (long long)time_now_ns();
}

/* Handles events until the counter reaches `wanted`. Returns the time. */
static long long serve_until(struct mmap_events *events, const int *counter, int wanted)
{
	long long deadline = now_ns() + PATIENCE_NS;
	struct pollfd fd = { .fd = mmap_events_fd(events), .events = POLLIN };

	while (*counter < wanted && now_ns() < deadline) {
		assert_true(poll(&fd, 1, 100) >= 0);
		mmap_events_read(events);
	}
	/* More events are fine: a sanitizer forks a helper process when a child exits. */
	assert_true(*counter >= wanted);
	return now_ns();
}

/*
 * Handles events until no process is left. Events of different CPUs are not ordered: the fork of a
 * helper process can arrive after its exit.
 */
static void serve_until_empty(struct mmap_events *events, struct watch *watch)
{
	long long deadline = now_ns() + PATIENCE_NS;
	struct pollfd fd = { .fd = mmap_events_fd(events), .events = POLLIN };

	while (library_set_count(watch->set).nr_processes && now_ns() < deadline) {
		assert_true(poll(&fd, 1, 100) >= 0);
		mmap_events_read(events);
		library_set_scan_process(watch->set, watch->last_fork);
	}
	assert_int_equal(library_set_count(watch->set).nr_processes, 0);
}

static struct mmap_events *watch_start(struct watch *watch, pid_t pid)
{
	struct mmap_events *events = NULL;
	int err = mmap_events_new(pid, &handler, watch, &events);

	if (err == -EACCES || err == -EPERM || err == -ENOENT || err == -ENOSYS) {
		print_message("# skipped: the kernel does not allow perf events: %s\n",
			      strerror(-err));
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_equal(library_set_new("/proc", &recorder_ops, &watch->recorder, &watch->set), 0);
	return events;
}

static void test_late_open(void **state)
{
	struct watch watch = {};
	struct child child = child_start(program);
	CLEANUP_EVENTS struct mmap_events *events = watch_start(&watch, child.pid);
	char answer[256];
	long long begun, attached, slowest = 0;
	struct stat st;

	for (int i = 0; i < 5; i++) {
		begun = child_ask(&child, answer, sizeof(answer), "open %s/libcuda.so.1", lib_dir);
		assert_string_equal(answer, "ok");
		attached = serve_until(events, &watch.recorder.nr_attached, i + 1);
		if (attached - begun > slowest)
			slowest = attached - begun;
		child_do(&child, "close");
		assert_int_equal(library_set_scan_process(watch.set, child.pid), 0);
		drop_unused(watch.set);
		assert_int_equal(watch.recorder.nr_detached, i + 1);
	}
	print_message("# from before dlopen() to attached: slowest of 5 %.2f ms\n",
		      (double)slowest / 1e6);
	timing_assert((u64)slowest < NSEC_PER_SEC);
	snprintf(answer, sizeof(answer), "%s/libcuda.so.1", lib_dir);
	assert_int_equal(stat(answer, &st), 0);
	assert_int_equal(watch.last_inode, st.st_ino);
	assert_int_equal(mmap_events_lost(events), 0);
	child_end(&child);
	library_set_free(watch.set);
}

static void test_fork_and_exit(void **state)
{
	struct watch watch = {};
	struct child child = child_start(program);
	CLEANUP_EVENTS struct mmap_events *events = watch_start(&watch, child.pid);
	char answer[64];

	child_do(&child, "open %s/libcuda.so.1", lib_dir);
	serve_until(events, &watch.recorder.nr_attached, 1);
	child_ask(&child, answer, sizeof(answer), "fork");
	serve_until(events, &watch.nr_forks, 1);
	assert_int_equal(watch.last_fork, atoi(answer));
	assert_int_equal(library_set_count(watch.set).nr_processes, 2);
	library_set_forget_process(watch.set, child.pid);
	assert_int_equal(watch.recorder.nr_detached, 0);
	child_end(&child);
	serve_until_empty(events, &watch);
	drop_unused(watch.set);
	assert_int_equal(watch.recorder.nr_detached, 1);
	assert_int_equal(watch.recorder.nr_attached, 1);
	library_set_free(watch.set);
}

/* A shell that executes another program after the watch has started. */
static void test_exec(void **state)
{
	struct watch watch = {};
	struct child child = child_start("/bin/sh");
	CLEANUP_EVENTS struct mmap_events *events = NULL;
	char line[16];

	/* Waits for the exec of the shell itself, which the test must not see. */
	fputs("echo up\n", child.to);
	fflush(child.to);
	assert_non_null(fgets(line, sizeof(line), child.from));
	events = watch_start(&watch, child.pid);
	fprintf(child.to, "exec %s\n", static_program);
	fflush(child.to);
	assert_non_null(fgets(line, sizeof(line), child.from));
	serve_until(events, &watch.nr_execs, 1);
	assert_int_equal(watch.recorder.nr_attached, 1);
	assert_true(watch.recorder.last.is_executable);
	child_end(&child);
	serve_until_empty(events, &watch);
	drop_unused(watch.set);
	assert_int_equal(watch.recorder.nr_detached, 1);
	library_set_free(watch.set);
}

/* Uses one CPU, so that there is one ring. */
static void pin(pid_t pid)
{
	cpu_set_t allowed, one;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(pid, sizeof(allowed), &allowed), 0);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
}

/* Unread records overflow the ring, and the loss must be counted. */
static void test_loss_is_counted(void **state)
{
	struct watch watch = {};
	struct child child = child_start(program);
	CLEANUP_EVENTS struct mmap_events *events = watch_start(&watch, child.pid);

	pin(child.pid);
	for (int i = 0; i < 1500; i++) {
		child_do(&child, "open %s/libcuda.so.1", lib_dir);
		child_do(&child, "close");
	}
	mmap_events_read(events);
	assert_in_range(watch.nr_maps, 1, 1499);
	/* The kernel reports lost records with the next record in the same ring. */
	child_do(&child, "open %s/libcuda.so.1", lib_dir);
	serve_until(events, &watch.nr_maps, watch.nr_maps + 1);
	print_message("# %d seen, %llu lost\n", watch.nr_maps, mmap_events_lost(events));
	assert_true(watch.nr_maps + mmap_events_lost(events) >= 1501);
	child_end(&child);
	library_set_free(watch.set);
}

/* Truncated records of every length, which the kernel never writes. */
static void test_cut_records(void **state)
{
	struct {
		struct perf_event_header header;
		u8 body[88];
	} record = {};
	struct watch watch = {};

	memset(record.body, 1, sizeof(record.body) - 8);
	memcpy(record.body + 64, "/libcuda.so", 12);
	for (u32 type = 0; type < PERF_RECORD_MAX + 2; type++) {
		record.header.type = type;
		record.header.misc = PERF_RECORD_MISC_COMM_EXEC;
		for (size_t size = 0; size <= sizeof(record); size++) {
			CLEANUP_FREE u8 *cut = malloc(size + !size);

			memcpy(cut, &record, size);
			mmap_events_decode(cut, size, &handler, &watch);
		}
	}
	/* A name is valid only with its zero: from 8 + 64 + 12 bytes on. */
	assert_int_equal(watch.nr_maps, (int)(sizeof(record) - (8 + 64 + 12) + 1));
	assert_int_equal(watch.last_device, makedev(0x1010101, 0x1010101));
	assert_true(watch.nr_execs > 0 && watch.nr_exits > 0 && watch.nr_forks == 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_open),   cmocka_unit_test(test_fork_and_exit),
		cmocka_unit_test(test_exec),	    cmocka_unit_test(test_loss_is_counted),
		cmocka_unit_test(test_cut_records),
	};

	if (argc != 4)
		return 2;
	lib_dir = argv[1];
	program = argv[2];
	static_program = argv[3];
	return cmocka_run_group_tests_name("mmap events", tests, NULL, NULL);
}
