/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Reads the stacks of real interpreters while they sleep, and compares them with what the
 * interpreters say themselves. Arguments: the script, and commands of interpreters. The environment
 * can name more of them, separated by colons.
 */
#include "discovery/support.h"

#include <sys/wait.h>
#include "collect/python_scan.h"
#include "collect/python_stack.h"
#include "discovery/memory.h"

#define NOBODY 65534

static char *script;
static const char *command;
static uid_t run_as; /* 0: this user */

struct interpreter {
	pid_t pid;
	FILE *out;
	int in;
};

static struct interpreter start(const char *name)
{
	struct interpreter child;
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	child.pid = fork();
	if (child.pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		setenv("PYTHONUTF8", "1", 1);
		if (run_as && setresuid(run_as, run_as, run_as) < 0)
			_exit(126);
		execl("/bin/sh", "sh", "-c", "exec $0 -c \"$1\" \"$2\"", command, script, name,
		      (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	child.in = in[1];
	child.out = fdopen(out[0], "r");
	return child;
}

static void stop(struct interpreter *child)
{
	close(child->in);
	fclose(child->out);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

/* The line of a frame, from all parts of its table. */
static u32 line_of(const struct python_memory *memory, const struct python_offsets *offsets,
		   const struct python_frame *frame, const struct python_code *first)
{
	static u8 table[PYTHON_PARTS_MAX * PYTHON_TABLE_BYTES];
	static struct python_code part;
	u32 size = first->table_bytes < sizeof(table) ? first->table_bytes : sizeof(table);

	for (u32 i = 0; (u64)i * PYTHON_TABLE_BYTES < size; i++) {
		assert_true(python_code_read(memory, offsets, frame->code, i, &part));
		memcpy(table + i * PYTHON_TABLE_BYTES, part.table, PYTHON_TABLE_BYTES);
	}
	return python_line(table, size, first->first_line, frame->instruction);
}

static void describe(const struct python_memory *memory, const struct python_offsets *offsets,
		     const struct python_frame *frame, char *ret, size_t size)
{
	static struct python_code code;
	char name[256], file[512];

	assert_true(python_code_read(memory, offsets, frame->code, 0, &code));
	python_text_print(&code.name, code.name_bytes, sizeof(code.name_bytes), name, sizeof(name));
	python_text_print(&code.file, code.file_bytes, sizeof(code.file_bytes), file, sizeof(file));
	snprintf(ret, size, "%u %s %s", line_of(memory, offsets, frame, &code), name, file);
}

/* The child has told its frames, and still runs the function that told them. */
static bool is_reporting(const struct python_memory *memory, const struct python_offsets *offsets,
			 const struct python_frame *frame)
{
	char text[1024];

	describe(memory, offsets, frame, text, sizeof(text));
	return strstr(text, " report ");
}

/* What zernel-discover reads for one look is the same. */
static void compare_scan(pid_t tid, const struct python_scan *scan,
			 const struct python_stack *stack)
{
	static struct python_stack_scan found;
	struct python_memory memory = { .read = read_process, .ctx = &tid };

	assert_int_equal(python_stack_scan("/proc", tid, &found), 0);
	assert_int_equal(found.uid, getuid());
	assert_int_equal(found.nr, stack->nr);
	assert_int_equal(found.is_cut, stack->is_cut);
	for (u32 i = 0; i < stack->nr; i++) {
		const struct python_place *place = &found.places[i];
		char expected[1024], got[2048];

		describe(&memory, &scan->offsets, &stack->frames[i], expected, sizeof(expected));
		snprintf(got, sizeof(got), "%u %s %s", place->line, place->function, place->file);
		assert_string_equal(got, expected);
	}
}

static void compare(struct interpreter *child, const struct python_scan *scan)
{
	static struct python_stack stack;
	pid_t tid;
	struct python_memory memory = { .read = read_process, .ctx = &tid };
	u32 nr;

	assert_int_equal(fscanf(child->out, "%d %u", &tid, &nr), 2);
	do
		assert_int_equal(
			python_stack_read(&memory, &scan->offsets, scan->runtime, (u32)tid, &stack),
			0);
	while (is_reporting(&memory, &scan->offsets, &stack.frames[0]));
	assert_int_equal(stack.is_cut, nr > PYTHON_FRAMES_MAX);
	assert_int_equal(stack.nr, nr < PYTHON_FRAMES_MAX ? nr : PYTHON_FRAMES_MAX);
	for (u32 i = 0; i < stack.nr; i++) {
		char got[1024], told[1024] = "";

		describe(&memory, &scan->offsets, &stack.frames[i], got, sizeof(got));
		assert_int_equal(fscanf(child->out, " %1023[^\n]", told), 1);
		assert_string_equal(got, told);
	}
	compare_scan(tid, scan, &stack);
}

/* The state is the command of the interpreter. */
static void stacks_are_told(void **state)
{
	static const char *const cases[] = { "plain", "thread", "fork", "generator",
					     "async", "deep",	"long" };

	command = *state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct interpreter child = start(cases[i]);
		struct python_scan scan = {};
		struct python_cost cost = {};
		int c = fgetc(child.out);

		assert_true(c != EOF); /* it says something as soon as it is there */
		ungetc(c, child.out);
		assert_int_equal(python_scan("/proc", child.pid, &cost, &scan), 0);
		assert_true(python_scan_is_valid(&scan));
		assert_true(cost.nr_files > 0 && cost.nr_bytes > 0);
		print_message("# %s: version %x, %s\n", command, scan.version, cases[i]);
		compare(&child, &scan);
		stop(&child);
	}
}

static void other_processes_have_no_interpreter(void **state)
{
	struct python_scan scan;
	struct python_cost cost = {};

	assert_int_equal(python_scan("/proc", getpid(), &cost, &scan), -ENOENT);
	/* The search costs the same if it fails. */
	assert_int_equal(cost.nr_files, 1);
	assert_true(cost.nr_bytes > 0);
}

/* Its user may not read its memory either. */
static void a_process_that_forbids_it_is_not_read(void **state)
{
	static struct python_stack_scan found;
	struct interpreter child;

	if (getuid()) {
		print_message("# skipped: only root can start a process of another user\n");
		skip();
	}
	command = *state;
	run_as = NOBODY;
	child = start("hidden");
	run_as = 0;
	assert_true(fgetc(child.out) != EOF);
	assert_int_equal(python_stack_scan("/proc", child.pid, &found), -EACCES);
	stop(&child);
}

#define INTERPRETERS_MAX 16
#define FIXED_TESTS	 2

int main(int argc, char **argv)
{
	struct CMUnitTest tests[FIXED_TESTS + INTERPRETERS_MAX] = {
		cmocka_unit_test(other_processes_have_no_interpreter),
		cmocka_unit_test_prestate(a_process_that_forbids_it_is_not_read, argv[2]),
	};
	char *more = getenv("ZERNEL_PYTHONS");
	CLEANUP_FREE void *text = NULL;
	size_t size, nr = FIXED_TESTS;
	int failed;

	/* An interpreter in another root cannot open the file. */
	if (argc < 3 || file_read(argv[1], FILE_BYTES_MAX, &text, &size) < 0)
		return 2;
	script = strndup(text, size);
	for (int i = 2; script && nr < ARRAY_SIZE(tests); i++) {
		char *name = i < argc ? argv[i] : strsep(&more, ":");

		if (!name)
			break;
		tests[nr++] = (struct CMUnitTest){ .name = name,
						   .test_func = stacks_are_told,
						   .initial_state = name };
	}
	failed = _cmocka_run_group_tests("python", tests, nr, NULL, NULL);
	free(script);
	return failed;
}
