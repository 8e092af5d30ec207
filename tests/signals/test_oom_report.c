/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Out-of-memory errors that PyTorch reports, on the machine's own kernel. Arguments: a library with
 * the call; then, to test a real one, a CUDA runtime, PyTorch's libc10 and the words of a command
 * that runs tests/answers/oom_job.py with them.
 */
#include "signals/native.h"

#include <sys/wait.h>
#include <unistd.h>
#include "signals/oom.h"

#define GIB (1ULL << 30)

static const char *oom_lib;
static char **real; /* the arguments for the test of a real library, or NULL */

static struct kernel *probes_attach_to(const char *cuda, const char *c10)
{
	struct kernel *kernel = native_kernel();
	struct library runtime = native_library(cuda, RUNTIME_CUDA, -1);
	struct library torch = native_library(c10, RUNTIME_C10, -1);

	assert_int_equal(torch.probes.nr, 1);
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

static void real_library_reports_the_same(void **state)
{
	static const char order[] = "oom 4294967296 3221225472 3221225477\n";
	CLEANUP_FD int input = -EBADF, output = -EBADF;
	struct oom_report oom;
	struct kernel *kernel;
	char done[8] = "";
	pid_t child;

	if (!real) {
		print_message("# skipped: no real library was given\n");
		skip();
	}
	kernel = probes_attach_to(real[0], real[1]);
	child = run_job(&input, &output);
	assert_int_equal(write(input, order, strlen(order)), strlen(order));
	assert_true(read(output, done, sizeof(done) - 1) > 0);
	oom = native_state(kernel, child).oom;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_string_equal(done, "done\n");
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
	};

	oom_lib = argc > 1 ? argv[1] : "";
	real = argc > 4 ? argv + 2 : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
