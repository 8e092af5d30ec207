/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares the duration of launches, as the BPF programs measure it, with times that are
 * taken before and after the call, and with times that are taken inside of it. The duration
 * is between the two, whatever else the machine does.
 */
#include "signals/native.h"

#include <math.h>
#include <pthread.h>
#include "core/launch.h"

#define BUCKET	 1.1892071150027210667 /* 2^(1/4), the factor between two bucket bounds */
#define NR_MANY	 60000
#define LEAST_NS 20000.0
#define MOST_NS	 1000000.0

int runtime_launch(u64 ns);
int driver_launch(u64 ns);
int cudaDeviceSynchronize(void);
extern u64 launch_inner_ns;

static const char *launches_lib;

struct probes {
	struct kernel *kernel;
	struct library runtime, driver;
};

static struct probes probes_attach(void)
{
	struct probes probes = {
		.kernel = native_kernel(),
		.runtime = native_library(launches_lib, RUNTIME_CUDA, -1),
		.driver = native_library(launches_lib, RUNTIME_CUDA_DRIVER, -1),
	};

	probes.driver.slot = 1;
	if (!probes.kernel->session_type) {
		kernel_free(probes.kernel);
		print_message("# skipped: this kernel cannot sample launches\n");
		skip();
	}
	assert_int_equal(kernel_attach_library(probes.kernel, &probes.runtime), 0);
	assert_int_equal(kernel_attach_library(probes.kernel, &probes.driver), 0);
	return probes;
}

/* Returns the distribution of this process and detaches. */
static struct hist probes_detach(struct probes *probes, struct process_state *ret_state)
{
	struct hist hist;

	*ret_state = native_state(probes->kernel, getpid());
	assert_int_equal(kernel_read_hist(probes->kernel, ret_state, HIST_LAUNCH, &hist), 0);
	probes->kernel = kernel_free(probes->kernel);
	return hist;
}

static u64 timed(int (*launch)(u64 ns), u64 ns)
{
	u64 begin = time_of_ns(CLOCK_MONOTONIC);

	launch(ns);
	return time_of_ns(CLOCK_MONOTONIC) - begin;
}

/* Fewer than the limit per second, so that each launch is timed; equally many in every octave. */
static void test_every_launch_is_timed_at_low_rates(void **state)
{
	static u64 inner[LAUNCH_ALL_TIMED], outer[LAUNCH_ALL_TIMED];
	struct probes probes = probes_attach();
	struct process_state process;
	struct hist hist;

	for (u32 i = 0; i < LAUNCH_ALL_TIMED; i++) {
		double share = (double)(i * 617 % LAUNCH_ALL_TIMED) / LAUNCH_ALL_TIMED;

		outer[i] = timed(runtime_launch, (u64)(LEAST_NS * pow(MOST_NS / LEAST_NS, share)));
		inner[i] = launch_inner_ns;
	}
	hist = probes_detach(&probes, &process);
	assert_int_equal(process.nr_launches[LEVEL_RUNTIME], LAUNCH_ALL_TIMED);
	/* The launch of the driver inside of each is a part of it. */
	assert_int_equal(process.nr_launches[LEVEL_DRIVER], 0);
	assert_int_equal(hist.count, LAUNCH_ALL_TIMED);
	for (u32 permille = 500; permille <= 990; permille += 490) {
		double told = (double)hist_quantile(&hist, permille);
		double least = (double)native_quantile(inner, LAUNCH_ALL_TIMED, permille);
		double most = (double)native_quantile(outer, LAUNCH_ALL_TIMED, permille);

		print_message("# p%u: BPF programs %.1f us, inside %.1f us, outside %.1f us\n",
			      permille / 10, told / 1e3, least / 1e3, most / 1e3);
		assert_true(told >= least / BUCKET && told <= most * BUCKET);
	}
}

/* The weighted samples represent all launches, within five standard deviations. */
static void test_launches_are_sampled_at_high_rates(void **state)
{
	double bound = 5 * sqrt((double)NR_MANY * LAUNCH_TIMED_1_IN);
	struct probes probes = probes_attach();
	struct process_state process;
	struct hist hist;

	for (u32 i = 0; i < NR_MANY; i++)
		(i % 2 ? driver_launch : runtime_launch)(0);
	hist = probes_detach(&probes, &process);
	assert_int_equal(process.nr_launches[LEVEL_RUNTIME], NR_MANY / 2);
	assert_int_equal(process.nr_launches[LEVEL_DRIVER], NR_MANY / 2);
	print_message("# %d launches, estimated from the samples: %llu (bound %.0f)\n", NR_MANY,
		      hist.count, bound);
	assert_true(fabs((double)hist.count - NR_MANY) < bound);
}

#define NR_WAITERS 4
#define NR_WAITS   100000

static void *wait_often(void *arg)
{
	for (u32 i = 0; i < NR_WAITS; i++)
		cudaDeviceSynchronize();
	return NULL;
}

/* The threads of a process share its distributions. */
static void test_threads_lose_no_sample(void **state)
{
	struct probes probes = probes_attach();
	pthread_t threads[NR_WAITERS];
	struct process_state process;
	struct hist hist;

	runtime_launch(0);
	for (u32 i = 0; i < NR_WAITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_often, NULL), 0);
	for (u32 i = 0; i < NR_WAITERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	process = native_state(probes.kernel, getpid());
	assert_int_equal(kernel_read_hist(probes.kernel, &process, HIST_SYNC_WAIT, &hist), 0);
	print_message("# %llu waits, from %llu to %llu ns, mean %llu ns\n", hist.count, hist.min,
		      hist.max, hist_mean(&hist));
	assert_int_equal(hist.count + kernel_drops(probes.kernel).nr_samples,
			 NR_WAITERS * NR_WAITS);
	assert_int_equal(kernel_drops(probes.kernel).nr_frames, 0);
	assert_in_range(kernel_drops(probes.kernel).nr_samples, 0, NR_WAITS / 1000);
	assert_in_range(hist_mean(&hist), hist.min, hist.max);
	kernel_free(probes.kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_launch_is_timed_at_low_rates),
		cmocka_unit_test(test_launches_are_sampled_at_high_rates),
		cmocka_unit_test(test_threads_lose_no_sample),
	};

	if (argc != 2)
		return 2;
	launches_lib = argv[1];
	return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
