/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 300,000 launches per second by four threads, each on a stream of its own: every launch is
 * counted, or its loss is. Streams beyond the bound of the ledger are counted as drops. Prints
 * what the probes cost the process.
 */
#include "signals/native.h"

#include <errno.h>
#include <pthread.h>
#include "signals/failing.h"

#define NR_THREADS	    4
#define LAUNCHES_PER_SECOND 300000
#define BURSTS_PER_SECOND   1000
#define LAUNCHES_PER_BURST  (LAUNCHES_PER_SECOND / NR_THREADS / BURSTS_PER_SECOND)
#define BURSTS_PER_SYNC	    20
#define NR_STREAMS	    1000 /* more than the ledger has */

static const char *failing_lib;
static u32 nr_seconds;

static void launch_on(u64 stream)
{
	static const struct failing_dim one = { 1, 1, 1 };

	cudaLaunchKernel(NULL, one, one, NULL, 0, (void *)stream);
}

struct launcher {
	pthread_t thread;
	u64 stream;
	u32 nr_bursts;
	u64 cpu_ns;
};

/* After a late burst, the next burst starts immediately. */
static void *launcher_run(void *argument)
{
	struct launcher *launcher = argument;
	u64 begin = time_of_ns(CLOCK_THREAD_CPUTIME_ID), due = time_of_ns(CLOCK_MONOTONIC);

	for (u32 burst = 1; burst <= launcher->nr_bursts; burst++) {
		struct timespec until;

		for (u32 i = 0; i < LAUNCHES_PER_BURST; i++)
			launch_on(launcher->stream);
		if (burst % BURSTS_PER_SYNC == 0)
			cudaStreamSynchronize((void *)launcher->stream);
		due += NSEC_PER_SEC / BURSTS_PER_SECOND;
		until = (struct timespec){ .tv_sec = (time_t)(due / NSEC_PER_SEC),
					   .tv_nsec = (long)(due % NSEC_PER_SEC) };
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			;
	}
	launcher->cpu_ns = time_of_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	return NULL;
}

struct flood {
	double cpu_ns; /* per launch */
	double per_second;
};

static struct flood flood_run(u32 seconds)
{
	struct launcher launchers[NR_THREADS] = {};
	u64 begin = time_now_ns(), cpu_ns = 0;
	double nr = (double)seconds * LAUNCHES_PER_SECOND;

	for (u32 i = 0; i < NR_THREADS; i++) {
		launchers[i].stream = 0x1000 * (i + 1);
		launchers[i].nr_bursts = seconds * BURSTS_PER_SECOND;
		assert_int_equal(
			pthread_create(&launchers[i].thread, NULL, launcher_run, &launchers[i]), 0);
	}
	for (u32 i = 0; i < NR_THREADS; i++) {
		pthread_join(launchers[i].thread, NULL);
		cpu_ns += launchers[i].cpu_ns;
	}
	return (struct flood){ (double)cpu_ns / nr,
			       nr * NSEC_PER_SEC / (double)(time_now_ns() - begin) };
}

static struct kernel *watch(struct library *library)
{
	struct kernel *kernel = native_kernel();

	*library = native_library(failing_lib, RUNTIME_CUDA, -1);
	assert_int_equal(kernel_attach_library(kernel, library), 0);
	return kernel;
}

static void test_every_launch_is_counted(void **state)
{
	struct flood bare = flood_run(1), probed;
	struct process_state process;
	struct kernel_drops drops;
	struct library library;
	struct kernel *kernel = watch(&library);
	u64 nr = (u64)nr_seconds * LAUNCHES_PER_SECOND, nr_lost;

	probed = flood_run(nr_seconds);
	process = native_state(kernel, getpid());
	drops = kernel_drops(kernel);
	nr_lost = nr - process.nr_launches[LEVEL_RUNTIME];
	print_message(
		"# %u s, %u threads, %.0f launches/s: %llu launches, %llu not counted; drops: "
		"frames %llu, processes %llu, ledger %llu, program runs %llu\n",
		nr_seconds, NR_THREADS, probed.per_second, (unsigned long long)nr,
		(unsigned long long)nr_lost, (unsigned long long)drops.nr_frames,
		(unsigned long long)drops.nr_processes, (unsigned long long)drops.nr_ledger,
		(unsigned long long)drops.nr_bpf_program_runs);
	print_message("# CPU time per launch: %.0f ns, without probes %.0f ns; at this rate the "
		      "probes take %.1f %% of one CPU\n",
		      probed.cpu_ns, bare.cpu_ns,
		      (probed.cpu_ns - bare.cpu_ns) * probed.per_second / 1e7);
	assert_true(nr_lost <= drops.nr_frames + drops.nr_processes + drops.nr_bpf_program_runs);
	assert_int_equal(drops.nr_ledger, 0);
	/* Each thread synced its stream last. */
	assert_int_equal(process.idle.gpu, IDLE_GPU_DONE);
	kernel_detach_library(kernel, &library);
	kernel_free(kernel);
}

static void test_streams_beyond_the_bound_are_counted(void **state)
{
	struct process_state process;
	struct library library;
	struct kernel *kernel = watch(&library);
	u64 nr_ledger;

	for (u64 i = 1; i <= NR_STREAMS; i++)
		launch_on(0x1000 * i);
	nr_ledger = kernel_drops(kernel).nr_ledger;
	print_message("# %u streams, %u in the ledger: %llu drops\n", NR_STREAMS, LEDGER_SHARED,
		      (unsigned long long)nr_ledger);
	/* The ledger may not find a free slot, because it looks at some slots only. */
	assert_in_range(nr_ledger, NR_STREAMS - LEDGER_SHARED, NR_STREAMS - 1);
	cudaDeviceSynchronize();
	process = native_state(kernel, getpid());
	assert_int_equal(process.idle.gpu, IDLE_GPU_DONE);
	kernel_detach_library(kernel, &library);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_launch_is_counted),
		cmocka_unit_test(test_streams_beyond_the_bound_are_counted),
	};

	if (argc != 3)
		return 2;
	failing_lib = argv[1];
	nr_seconds = (u32)atoi(argv[2]);
	return cmocka_run_group_tests_name("flood", tests, NULL, NULL);
}
