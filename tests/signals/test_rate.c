/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 10,000 launches per second, with a sync after every hundred: nothing may be dropped, and
 * every call must be counted. Prints the cost for the process.
 */
#include "signals/native.h"

#include <errno.h>
#include "vgpu/include/vgpu_cudart.h"

#define LAUNCHES_PER_SECOND 10000
#define LAUNCHES_PER_SYNC   100
#define BURST_NS	    (NSEC_PER_SEC / LAUNCHES_PER_SECOND * LAUNCHES_PER_SYNC)

static const char *cudart;
static u32 nr_seconds;

static u64 no_events;

static void on_event(void *ctx, const struct event *event)
{
	no_events += event->kind == EVENT_NR;
}

/* Returns the CPU time in ns per launch. After a late burst, the next burst starts immediately. */
static double seconds_run(u32 seconds)
{
	static const dim3 one = { 1, 1, 1 };
	u64 kernel_ns = 1000, begin = time_of_ns(CLOCK_THREAD_CPUTIME_ID);
	u64 due = time_of_ns(CLOCK_MONOTONIC);
	u32 nr = seconds * LAUNCHES_PER_SECOND;
	void *args[] = { &kernel_ns };

	for (u32 i = 1; i <= nr; i++) {
		cudaLaunchKernel((const void *)vgpu_busy, one, one, args, 0, NULL);
		if (i % LAUNCHES_PER_SYNC)
			continue;
		cudaDeviceSynchronize();
		due += BURST_NS;
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				       &(struct timespec){ .tv_sec = (time_t)(due / NSEC_PER_SEC),
							   .tv_nsec = (long)(due % NSEC_PER_SEC) },
				       NULL) == EINTR)
			;
	}
	return (double)(time_of_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / nr;
}

static void test_ten_thousand_launches_per_second(void **state)
{
	struct kernel *kernel = native_kernel();
	struct library library = native_library(cudart, RUNTIME_CUDA, -1);
	double before, during, after, bare;
	struct process_state process;
	struct kernel_drops drops;

	/* Blocking syncs, so that only calls and probes use CPU time. */
	assert_int_equal(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync), cudaSuccess);
	assert_int_equal(kernel_open_events(kernel, false, on_event, NULL), 0);
	before = seconds_run(1);
	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	during = seconds_run(nr_seconds);
	process = native_state(kernel, getpid());
	kernel_detach_library(kernel, &library);
	after = seconds_run(1);

	bare = before < after ? before : after;
	drops = kernel_drops(kernel);
	print_message(
		"# %u s at %u launches/s: %.0f ns of CPU time per launch, %.0f without probes; the "
		"probes take %.2f %% of the wall time of the process\n",
		nr_seconds, LAUNCHES_PER_SECOND, during, bare,
		(during - bare) * LAUNCHES_PER_SECOND / 1e7);
	assert_int_equal(process.nr_launches[LEVEL_RUNTIME], nr_seconds * LAUNCHES_PER_SECOND);
	assert_int_equal(process.nr_syncs[LEVEL_RUNTIME],
			 nr_seconds * LAUNCHES_PER_SECOND / LAUNCHES_PER_SYNC);
	assert_int_equal(drops.nr_events + drops.nr_processes + drops.nr_frames + drops.nr_ledger +
				 drops.nr_samples,
			 0);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ten_thousand_launches_per_second),
	};

	if (argc != 3)
		return 2;
	cudart = argv[1];
	nr_seconds = (u32)atoi(argv[2]);
	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
