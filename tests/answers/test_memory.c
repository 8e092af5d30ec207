/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the answer of zernel memory for snapshots with known accounts and errors. */
#include <errno.h>
#include <yyjson.h>

#include "answers/capture.h"
#include "answers/memory.h"
#include "base/cleanup.h"
#include "cli/memory/memory_print.h"
#include "cli/why/why_print.h"
#include "ipc/json.h"

#define GIB (1ULL << 30)

#define SET(member, text) snapshot_set_text(member, sizeof(member), text, strlen(text))

static struct snapshot_process *add(struct snapshot *s, u32 pid, u32 gpu, u64 bytes)
{
	struct snapshot_process *process = snapshot_add_process(s, pid);

	process->nr_memory = 1;
	process->memory[0] = (struct snapshot_memory){
		.gpu = gpu,
		.book = { .current_bytes = bytes, .peak_bytes = bytes + GIB, .nr_allocs = 5 },
	};
	process->launcher_tid = pid;
	SET(process->comm, "python3");
	return process;
}

static struct snapshot *make(void)
{
	struct snapshot *s;
	struct snapshot_gpu *gpu;

	assert_int_equal(snapshot_new(&SNAPSHOT_LIMITS_DEFAULT, &s), 0);
	s->monotonic_ns = 1000 * NSEC_PER_SEC;
	gpu = snapshot_add_gpu(s, 0);
	gpu->valid = SNAPSHOT_GPU_MEMORY_USED | SNAPSHOT_GPU_MEMORY_TOTAL;
	gpu->memory_used_bytes = 39 * GIB;
	gpu->memory_total_bytes = 40 * GIB;
	add(s, 11, SNAPSHOT_GPU_UNKNOWN, GIB);
	add(s, 12, 0, 8 * GIB);
	add(s, 13, 0, 30 * GIB)->oom = (struct snapshot_oom){
		.nr = 3,
		.time_ns = 1,
		.asked_bytes = 2 * GIB,
		.allocated_bytes = 27 * GIB,
		.reserved_bytes = 30 * GIB,
		.tid = 99,
	};
	snapshot_oom_find_others(s, &s->processes[2]);
	return s;
}

static const struct lines_frame frames[] = {
	{ "<module>", "/home/u/<b>\033[31m.py", 0, LINES_PYTHON },
	{ "Net.forward", "/home/u/model.py", 31, LINES_PYTHON },
	{ "guess", "guess.py", 7, LINES_UNKNOWN },
};
static const struct lines_stack stack = {
	.tid = 99, .is_cut = true, .nr_frames = 3, .frames = frames
};

static char *print_with(const struct snapshot *s, const char *who, bool json, int expected,
			const struct lines_stack *known)
{
	CLEANUP(memory_free_cleanup) struct memory_report *report = NULL;
	struct capture capture = capture_begin();
	struct term term = { .out = capture.out };

	assert_int_equal(memory_new(s, who, &report), 0);
	if (report->nr_ooms)
		report->ooms[0].stack = known;
	assert_int_equal(memory_print(report, json, &term), expected);
	return capture_end(&capture);
}

static char *print(const struct snapshot *s, const char *who, bool json, int expected)
{
	return print_with(s, who, json, expected, NULL);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static void processes_by_gpu_and_bytes(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = print(s, NULL, false, 0);

	assert_has(text, "GPU 0: 39.0 GiB used of 40.0 GiB, by the driver\n");
	assert_has(text, "  0   13  python3  30.0 GiB  31.0 GiB   75.0%       5      0\n"
			 "  0   12  python3   8.0 GiB   9.0 GiB   20.0%       5      0\n"
			 "  ?   11  python3   1.0 GiB   2.0 GiB       -       5      0\n");
}

static void error_is_explained(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = print(s, "13", false, 0);

	assert_has(text, "python3 (13) was out of memory at ");
	assert_has(text,
		   ": it asked for 2.0 GiB on GPU 0. PyTorch had reserved 30.0 GiB and allocated "
		   "27.0 GiB of it; 3.0 GiB (10 %) was unused, enough for the request");
	assert_has(text, "Other processes held 8.0 GiB of it: python3 (12) 8.0 GiB.");
	assert_has(text, "It was the last of 3 errors.");
}

/* It is not said that memory was fragmented if there was not enough. */
static void fragmentation_is_named_only_if_it_is_the_cause(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	char text[MEMORY_SENTENCE_LEN];

	s->processes[2].oom.asked_bytes = 4 * GIB;
	memory_oom_sentence(&s->processes[2], text);
	assert_null(strstr(text, "fragment"));
	s->processes[2].oom.asked_bytes = 3 * GIB;
	memory_oom_sentence(&s->processes[2], text);
	assert_has(text, "(fragmentation)");
	/* The report of a hostile process. */
	s->processes[2].oom.allocated_bytes = 31 * GIB;
	memory_oom_sentence(&s->processes[2], text);
	assert_has(text, "0 B (0 %) was unused.");
}

static void unknown_gpu_and_hidden_processes(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	struct snapshot_oom *oom = &s->processes[2].oom;
	char text[MEMORY_SENTENCE_LEN];

	oom->others[0].pid = 0;
	memory_oom_sentence(&s->processes[2], text);
	assert_has(text, "held 8.0 GiB of it: a process of another user 8.0 GiB.");
	oom->nr_holders = 0;
	memory_oom_sentence(&s->processes[2], text);
	assert_has(text, "No other process that Zernel follows held memory of it.");
	oom->gpu = SNAPSHOT_GPU_UNKNOWN;
	oom->others_ns = 0;
	memory_oom_sentence(&s->processes[2], text);
	assert_has(text, "on an unknown GPU.");
	assert_null(strstr(text, "ther process"));
}

/* A frame whose names could not be read is never shown with a name. */
static void stack_is_shown(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *with = print_with(s, "13", false, 0, &stack);
	CLEANUP_FREE char *without = print(s, "13", false, 0);

	assert_has(with, "It was the last of 3 errors.\nStack of thread 99, innermost call first:\n"
			 "  [unknown]\n  Net.forward() model.py:31\n  <module> <b>?[31m.py\n"
			 "  further calls are cut\n");
	assert_null(strstr(without, "Stack"));
}

static void json_has_the_stack(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = print_with(s, NULL, true, 0, &stack);
	CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
	yyjson_val *oom = yyjson_ptr_get(yyjson_doc_get_root(doc), "/out_of_memory/0/oom");

	assert_int_equal(yyjson_arr_size(yyjson_obj_get(oom, "stack")), 3);
	assert_true(yyjson_equals_str(yyjson_ptr_get(oom, "/stack/1/function"), "Net.forward"));
	assert_true(yyjson_equals_str(yyjson_ptr_get(oom, "/stack/1/file"), "/home/u/model.py"));
	assert_int_equal(yyjson_get_uint(yyjson_ptr_get(oom, "/stack/1/line")), 31);
	assert_true(yyjson_get_bool(yyjson_obj_get(oom, "stack_is_cut")));
}

static void json_has_all(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = print(s, NULL, true, 0);
	CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
	yyjson_val *root = yyjson_doc_get_root(doc), *oom;

	assert_int_equal(yyjson_arr_size(yyjson_obj_get(root, "processes")), 3);
	assert_int_equal(yyjson_get_uint(yyjson_ptr_get(root, "/gpus/0/total_bytes")), 40 * GIB);
	oom = yyjson_ptr_get(root, "/out_of_memory/0/oom");
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(oom, "asked_bytes")), 2 * GIB);
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(oom, "unused_bytes")), 3 * GIB);
	assert_int_equal(yyjson_get_uint(yyjson_ptr_get(oom, "/others/0/pid")), 12);
}

static void no_memory(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP_FREE char *text = print(s, "99", false, -ENOENT);

	assert_has(text, "No matching process holds GPU memory");
}

static void ended_job_shows_its_error(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make();
	CLEANUP(memory_free_cleanup) struct memory_report *report = NULL;
	struct capture capture = capture_begin();
	struct term term = { .out = capture.out };
	CLEANUP_FREE char *text = NULL;

	assert_int_equal(memory_new(s, NULL, &report), 0);
	report->ooms[0].stack = &stack;
	s->processes[2].job = snapshot_add_job(s, "/slurm/job_71", "slurm-71");
	why_print_ended(s, report, false, &term);
	text = capture_end(&capture);
	assert_has(text, "slurm-71 ended ");
	assert_has(text, "python3 (13) was out of memory at ");
	assert_has(text, "  Net.forward() model.py:31\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_by_gpu_and_bytes),
		cmocka_unit_test(error_is_explained),
		cmocka_unit_test(fragmentation_is_named_only_if_it_is_the_cause),
		cmocka_unit_test(unknown_gpu_and_hidden_processes),
		cmocka_unit_test(stack_is_shown),
		cmocka_unit_test(json_has_the_stack),
		cmocka_unit_test(json_has_all),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(ended_job_shows_its_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
