/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Out-of-memory errors that PyTorch reports, on the machine's own kernel. Arguments: a library with
 * the call; then a CUDA runtime, a libc10, which can be the real one, and the words of a command
 * that runs tests/answers/oom_job.py with them.
 */
#include "signals/native.h"

#include <sys/wait.h>
#include <unistd.h>
#include "collect/python_scan.h"
#include "core/python.h"
#include "signals/oom.h"

#define GIB (1ULL << 30)

static const char *oom_lib;
static char **real; /* the arguments for the tests with a job of Python, or NULL */

static struct kernel *probes_attach_to(const char *cuda, const char *c10)
{
	struct kernel *kernel = native_kernel();
	struct library runtime = native_library(cuda, RUNTIME_CUDA, -1);
	struct library torch = native_library(c10, RUNTIME_C10, -1);

	assert_int_equal(torch.probes.nr, 2);
	assert_int_equal(kernel_attach_library(kernel, &runtime), 0);
	torch.slot = 1;
	assert_int_equal(kernel_attach_library(kernel, &torch), 0);
	return kernel;
}

static struct kernel *probes_attach(void)
{
	return probes_attach_to(oom_lib, oom_lib);
}

static void fail_on(s8 number, u64 asked)
{
	oom_report_call((s64)asked, 30 * GIB, 36 * GIB,
			(struct oom_test_device){ OOM_TEST_CUDA, number });
}

static void last_report_is_kept(void **state)
{
	struct kernel *kernel = probes_attach();
	u64 before_ns = time_now_ns();
	struct oom_report oom;

	cudaSetDevice(0);
	fail_on(3, GIB);
	fail_on(2, 2 * GIB);
	oom = native_state(kernel, getpid()).oom;
	assert_int_equal(oom.nr, 2);
	assert_int_equal(oom.asked_bytes, 2 * GIB);
	assert_int_equal(oom.allocated_bytes, 30 * GIB);
	assert_int_equal(oom.reserved_bytes, 36 * GIB);
	assert_int_equal(oom.device, 2);
	assert_int_equal(oom.tid, gettid());
	assert_in_range(oom.time_ns, before_ns, time_now_ns());
	kernel_free(kernel);
}

static void reports_about_the_cpu_are_ignored(void **state)
{
	struct kernel *kernel = probes_attach();

	cudaSetDevice(0);
	oom_report_call(1, 2, 3, OOM_TEST_CPU);
	assert_int_equal(native_state(kernel, getpid()).oom.nr, 0);
	kernel_free(kernel);
}

static void device_without_a_number(void **state)
{
	struct kernel *kernel = probes_attach();

	cudaSetDevice(0);
	fail_on(-1, GIB);
	assert_int_equal(native_state(kernel, getpid()).oom.nr, 1);
	assert_int_equal(native_state(kernel, getpid()).oom.device, GPU_MAX);
	kernel_free(kernel);
}

static void process_without_gpu_is_not_followed(void **state)
{
	struct kernel *kernel = probes_attach();
	int ready[2];
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		fail_on(0, GIB);
		close(ready[1]);
		pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &(char){ 0 }, 1), 0);
	assert_int_equal(native_state(kernel, child).task.pid, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	kernel_free(kernel);
}

static void count_oom(void *ctx, const struct event *event)
{
	if (event->kind == EVENT_OOM && event->tgid == (u32)getpid())
		++*(u32 *)ctx;
}

/* The number of events of a process that fails again and again is bounded by time. */
static void error_is_an_event(void **state)
{
	struct kernel *kernel = probes_attach();
	u64 begin_ns = time_now_ns();
	u32 nr = 0;

	assert_int_equal(kernel_open_events(kernel, false, count_oom, &nr), 0);
	cudaSetDevice(0);
	for (u32 i = 0; i < 1000; i++)
		fail_on(0, GIB);
	kernel_read_events(kernel);
	assert_in_range(nr, 1, 1 + (time_now_ns() - begin_ns) / OOM_EVENT_NS);
	assert_int_equal(native_state(kernel, getpid()).oom.nr, 1000);
	kernel_free(kernel);
}

static pid_t run_job(int *ret_input, int *ret_output)
{
	int input[2], output[2];
	pid_t child;

	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		dup2(input[0], STDIN_FILENO);
		dup2(output[1], STDOUT_FILENO);
		execvp(real[2], real + 2);
		_exit(EXIT_FAILURE);
	}
	close(input[0]);
	close(output[1]);
	*ret_input = input[1];
	*ret_output = output[0];
	return child;
}

/* Does what a line says. */
static void order_job(int input, int output, const char *order)
{
	char done[8] = "";

	assert_int_equal(write(input, order, strlen(order)), strlen(order));
	assert_true(read(output, done, sizeof(done) - 1) > 0);
	assert_string_equal(done, "done\n");
}

static void set_python(struct kernel *kernel, pid_t pid)
{
	CLEANUP_FD int pidfd = library_open_process(pid);
	struct python_scan scan;

	assert_int_equal(python_scan("/proc", pid, &(struct python_cost){}, &scan), 0);
	assert_int_equal(kernel_set_python(kernel, pidfd,
					   &(struct oom_python){ .runtime = scan.runtime,
								 .offsets = scan.offsets }),
			 0);
}

static void assert_text(const struct python_text *text, const u8 *bytes, u32 size,
			const char *expected_end)
{
	char all[4 * PYTHON_FILE_BYTES];

	python_text_print(text, bytes, size, all, sizeof(all));
	assert_true(strlen(all) >= strlen(expected_end));
	assert_string_equal(all + strlen(all) - strlen(expected_end), expected_end);
}

/* The line of the job that has this text. */
static u32 line_with(const char *wanted)
{
	char **path = real;
	char line[256];
	u32 nr = 0;
	FILE *file;

	while (!strstr(*path, "oom_job.py"))
		path++;
	file = fopen(*path, "re");
	assert_non_null(file);
	do {
		assert_non_null(fgets(line, sizeof(line), file));
		nr++;
	} while (!strstr(line, wanted));
	fclose(file);
	return nr;
}

static void assert_frame(struct kernel *kernel, const struct process_state *process, u32 index,
			 const char *function, u32 line)
{
	CLEANUP_FREE struct oom_frame *frame = malloc(sizeof(*frame));
	const struct python_code *code = &frame->code;

	assert_int_equal(kernel_take_oom_frame(kernel, process, index, frame), 0);
	assert_int_equal(frame->nr_frames, 3);
	assert_int_equal(frame->is_cut, 0);
	assert_true(frame->is_named);
	assert_text(&code->name, code->name_bytes, sizeof(code->name_bytes), function);
	assert_text(&code->file, code->file_bytes, sizeof(code->file_bytes), "oom_job.py");
	assert_int_equal(python_line(code->table, code->part_bytes, code->first_line,
				     frame->frame.instruction),
			 line);
}

/* Attaches the probes and starts the job, or skips the test. */
static struct kernel *start_job(pid_t *child, int *input, int *output)
{
	struct kernel *kernel;

	if (!real) {
		print_message("# skipped: no job was given\n");
		skip();
	}
	kernel = probes_attach_to(real[0], real[1]);
	*child = run_job(input, output);
	return kernel;
}

static void stack_of_the_thread_is_kept(void **state)
{
	CLEANUP_FD int input = -EBADF, output = -EBADF;
	CLEANUP_FREE struct oom_frame *frame = malloc(sizeof(*frame));
	struct process_state process;
	struct kernel *kernel;
	pid_t child;

	kernel = start_job(&child, &input, &output);
	order_job(input, output, "launch\n");
	/* Without a known interpreter, the report has no stack. */
	order_job(input, output, "oom 1 2 3\n");
	process = native_state(kernel, child);
	assert_int_equal(process.oom.nr, 1);
	assert_int_equal(kernel_take_oom_frame(kernel, &process, 0, frame), -ENOENT);
	set_python(kernel, child);
	order_job(input, output, "oom 1 2 3\n");
	process = native_state(kernel, child);
	assert_int_equal(process.oom.nr, 2);
	assert_frame(kernel, &process, 0, "oom", line_with("report(*map(int"));
	assert_frame(kernel, &process, 1, "main", line_with("\"oom\": oom}[name]"));
	assert_frame(kernel, &process, 2, "<module>", line_with("main(*sys.argv"));
	assert_int_equal(kernel_take_oom_frame(kernel, &process, 3, frame), -ENOENT);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	kernel_free(kernel);
}

static void real_library_reports_the_same(void **state)
{
	CLEANUP_FD int input = -EBADF, output = -EBADF;
	struct usage usage = {};
	struct oom_report oom;
	struct kernel *kernel;
	pid_t child;

	kernel = start_job(&child, &input, &output);
	assert_int_equal(
		kernel_begin_usage(kernel, (u32)child,
				   &(struct usage_process){ .begin_ns = time_now_ns(),
							    .part_ns = 3600 * NSEC_PER_SEC }),
		0);
	order_job(input, output, "oom 4294967296 3221225472 3221225477\n");
	order_job(input, output, "use 3221225471 3221225478\n");
	oom = native_state(kernel, child).oom;
	kernel_read_usage(kernel, &(struct usage_key){ .tgid = (u32)child }, &usage);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(usage.parts[0].nr, 1);
	assert_int_equal(usage.parts[0].allocated_bytes, 3 * GIB - 1);
	assert_int_equal(usage.parts[0].reserved_bytes, 3 * GIB + 6);
	assert_int_equal(oom.nr, 1);
	assert_int_equal(oom.asked_bytes, 4 * GIB);
	assert_int_equal(oom.allocated_bytes, 3 * GIB);
	assert_int_equal(oom.reserved_bytes, 3 * GIB + 5);
	assert_int_equal(oom.device, 0);
	assert_int_equal(oom.tid, child);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_report_is_kept),
		cmocka_unit_test(reports_about_the_cpu_are_ignored),
		cmocka_unit_test(device_without_a_number),
		cmocka_unit_test(process_without_gpu_is_not_followed),
		cmocka_unit_test(error_is_an_event),
		cmocka_unit_test(real_library_reports_the_same),
		cmocka_unit_test(stack_of_the_thread_is_kept),
	};

	oom_lib = argc > 1 ? argv[1] : "";
	real = argc > 4 ? argv + 2 : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
