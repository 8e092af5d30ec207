/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that fail leave no work in the ledger and begin no account. */
#include "signals/native.h"

#include "signals/failing.h"

#define SOME_ERROR  100
#define TO_DEVICE   1
#define TO_HOST	    2
#define STREAM	    ((void *)0x1000)
#define NR_REPEATED 3000 /* more than the launches of a second that are all timed */

static const char *failing_lib;

static void launch(void)
{
	static const struct failing_dim one = { 1, 1, 1 };

	cudaLaunchKernel(NULL, one, one, NULL, 0, STREAM);
}

static void copy_to_device(void)
{
	cudaMemcpyAsync(NULL, NULL, 1, TO_DEVICE, STREAM);
}

static void copy_to_host(void)
{
	cudaMemcpyAsync(NULL, NULL, 1, TO_HOST, STREAM);
}

static void copy_and_wait(void)
{
	cudaMemcpy(NULL, NULL, 1, TO_DEVICE);
}

static void copy_to_host_and_wait(void)
{
	cudaMemcpy(NULL, NULL, 1, TO_HOST);
}

static void set_memory(void)
{
	cudaMemsetAsync(NULL, 0, 1, STREAM);
}

static void reduce(void)
{
	ncclAllReduce(NULL, NULL, 1, 0, 0, NULL, STREAM);
}

static void sync_device(void)
{
	cudaDeviceSynchronize();
}

static void sync_stream(void)
{
	cudaStreamSynchronize(STREAM);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "launch", launch },
	{ "copy to the device", copy_to_device },
	{ "copy to the host", copy_to_host },
	{ "blocking copy to the device", copy_and_wait },
	{ "blocking copy to the host", copy_to_host_and_wait },
	{ "memset", set_memory },
	{ "collective", reduce },
	{ "device sync", sync_device },
	{ "stream sync", sync_stream },
};

static struct kernel *watch(void)
{
	struct kernel *kernel = native_kernel();
	struct library cuda = native_library(failing_lib, RUNTIME_CUDA, -1);
	struct library nccl = native_library(failing_lib, RUNTIME_NCCL, -1);

	nccl.slot = 1;
	if (!kernel->session_type) {
		kernel_free(kernel);
		print_message("# skipped: this kernel has no uprobe sessions\n");
		skip();
	}
	assert_int_equal(kernel_attach_library(kernel, &cuda), 0);
	assert_int_equal(kernel_attach_library(kernel, &nccl), 0);
	return kernel;
}

static void call_failing(void (*call)(void))
{
	failing_result = SOME_ERROR;
	call();
	failing_result = 0;
}

static u64 all_booked(const struct idle_account *account)
{
	u64 sum = account->busy_ns;

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		sum += idle_total(account, cause);
	return sum;
}

static void test_failing_calls_begin_no_account(void **state)
{
	struct kernel *kernel = watch();
	struct process_state process;

	for (u32 i = 0; i < NR_REPEATED; i++)
		for (size_t k = 0; k < ARRAY_SIZE(calls); k++)
			call_failing(calls[k].call);
	process = native_state(kernel, getpid());
	assert_int_equal(process.nr_launches[LEVEL_RUNTIME], NR_REPEATED);
	assert_int_equal(process.idle.since_ns, 0);
	assert_int_equal(all_booked(&process.idle), 0);
	assert_int_equal(process.step.nr_steps, 0);
	assert_int_equal(process.launcher_tid, 0);
	kernel_free(kernel);
}

/* The first call that succeeds begins the account. */
static void test_each_call_begins_the_account(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(calls); k++) {
		struct kernel *kernel = watch();
		bool feeds = calls[k].call != sync_device && calls[k].call != sync_stream &&
			     calls[k].call != copy_to_host &&
			     calls[k].call != copy_to_host_and_wait;
		struct process_state process;

		call_failing(calls[k].call);
		calls[k].call();
		process = native_state(kernel, getpid());
		print_message("# %s\n", calls[k].name);
		assert_int_equal(process.idle.since_ns != 0, feeds);
		kernel_free(kernel);
	}
}

static void test_failing_calls_leave_no_work(void **state)
{
	struct kernel *kernel = watch();
	struct process_state process;

	launch();
	sync_device();
	for (size_t k = 0; k < ARRAY_SIZE(calls); k++) {
		for (u32 i = 0; i < NR_REPEATED; i++)
			call_failing(calls[k].call);
		process = native_state(kernel, getpid());
		print_message("# %s\n", calls[k].name);
		assert_int_equal(process.idle.gpu, IDLE_GPU_DONE);
	}
	/* A call that succeeds does leave work. */
	launch();
	process = native_state(kernel, getpid());
	assert_int_equal(process.idle.gpu, IDLE_GPU_OPEN);
	kernel_free(kernel);
}

/* A sync covers all work that exists, also if a failed call came last. */
static void test_work_before_a_failing_call_is_completed(void **state)
{
	struct kernel *kernel = watch();
	struct process_state process;

	for (size_t k = 0; k < ARRAY_SIZE(calls); k++) {
		launch();
		call_failing(calls[k].call);
		process = native_state(kernel, getpid());
		print_message("# %s\n", calls[k].name);
		assert_int_equal(process.idle.gpu, IDLE_GPU_OPEN);
		sync_device();
		process = native_state(kernel, getpid());
		assert_int_equal(process.idle.gpu, IDLE_GPU_DONE);
	}
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failing_calls_begin_no_account),
		cmocka_unit_test(test_each_call_begins_the_account),
		cmocka_unit_test(test_failing_calls_leave_no_work),
		cmocka_unit_test(test_work_before_a_failing_call_is_completed),
	};

	if (argc != 2)
		return 2;
	failing_lib = argv[1];
	return cmocka_run_group_tests_name("failing", tests, NULL, NULL);
}
