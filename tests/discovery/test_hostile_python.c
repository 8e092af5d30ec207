/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Reads the stacks of processes that look like an interpreter and whose memory is hostile
 * (lab/framework/hostile_python.c). The argument is that program.
 */
#include "discovery/support.h"

#include <sys/prctl.h>
#include "base/macros.h"
#include "collect/python_scan.h"
#include "collect/python_stack.h"
#include "discovery/memory.h"

/* Each step reads a few members. */
#define READS_MAX  (8 * (PYTHON_THREADS_MAX + PYTHON_STEPS_MAX) + 16)
#define TORN_READS 200

static const char *program;

struct counter {
	pid_t pid;
	u32 nr_reads;
};

static long read_counted(void *ctx, void *to, u32 size, u64 from)
{
	struct counter *counter = ctx;

	counter->nr_reads++;
	return read_process(&counter->pid, to, size, from);
}

/* Returns when its memory is built. */
static pid_t start(const char *kind)
{
	int out[2];
	char line[16];
	pid_t pid;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		/* A test that fails leaves no process behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		execl(program, program, kind, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	assert_true(read(out[0], line, sizeof(line)) > 0);
	close(out[0]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Texts end, and have no control characters. */
static void check_text(const char *text, size_t size)
{
	assert_non_null(memchr(text, '\0', size));
	for (; *text; text++)
		assert_true((u8)*text >= ' ' && *text != 0x7f);
}

static u32 nr_reads_of(pid_t pid)
{
	static struct python_stack stack;
	struct counter counter = { .pid = pid };
	const struct python_memory memory = { .read = read_counted, .ctx = &counter };
	struct python_scan scan;

	assert_int_equal(python_scan("/proc", pid, &(struct python_cost){}, &scan), 0);
	assert_true(python_scan_is_valid(&scan));
	if (python_stack_read(&memory, &scan.offsets, scan.runtime, (u32)pid, &stack) == 0)
		assert_true(stack.nr > 0 && stack.nr <= PYTHON_FRAMES_MAX);
	assert_true(counter.nr_reads <= READS_MAX);
	return counter.nr_reads;
}

/* Returns the error of one look. */
static int look(pid_t pid, struct python_stack_scan *ret)
{
	int err = python_stack_scan("/proc", pid, ret);

	for (u32 i = 0; err == 0 && i < ret->nr; i++) {
		check_text(ret->places[i].function, sizeof(ret->places[i].function));
		check_text(ret->places[i].file, sizeof(ret->places[i].file));
	}
	return err;
}

static void each_kind_is_bounded(void **state)
{
	static const struct {
		const char *kind;
		int err;
		u32 nr, is_cut;
		const char *function; /* of all frames; empty: not known */
	} rows[] = {
		{ "plain", 0, 3, 0, "fake" }, { "cycle", 0, PYTHON_FRAMES_MAX, 1, "fake" },
		{ "entries", -EFAULT },	      { "deep", 0, PYTHON_FRAMES_MAX, 1, "fake" },
		{ "threads", -E2BIG },	      { "interpreters", -E2BIG },
		{ "frames", 0, 64, 1, "" },   { "names", 0, 3, 0, "" },
		{ "lengths", 0, 3, 0, "" },
	};
	static struct python_stack_scan found;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		pid_t pid = start(rows[i].kind);

		print_message("# %s: %u reads\n", rows[i].kind, nr_reads_of(pid));
		assert_int_equal(look(pid, &found), rows[i].err);
		for (u32 k = 0; rows[i].err == 0 && k < found.nr; k++) {
			assert_string_equal(found.places[k].function, rows[i].function);
			assert_int_equal(found.places[k].line, *rows[i].function ? 7 : 0);
		}
		if (rows[i].err == 0) {
			assert_int_equal(found.nr, rows[i].nr);
			assert_int_equal(found.is_cut, rows[i].is_cut);
		}
		stop(pid);
	}
}

/* Every result is allowed, except an answer that is not bounded. */
static void memory_that_changes_is_bounded(void **state)
{
	static struct python_stack_scan found;
	pid_t pid = start("torn");
	u32 nr_failed = 0;

	for (u32 i = 0; i < TORN_READS; i++) {
		nr_reads_of(pid);
		nr_failed += look(pid, &found) < 0;
	}
	print_message("# %u of %u looks failed\n", nr_failed, TORN_READS);
	stop(pid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_bounded),
		cmocka_unit_test(memory_that_changes_is_bounded),
	};

	if (argc != 2)
		return 2;
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
