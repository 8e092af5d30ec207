/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the ways to wait for the device, and the CPU time of waits and launches. */
#include <stdio.h>
#include <sys/resource.h>

#include "harness.h"
#include "support/timing.h"
#include "vgpu/include/vgpu_cudart.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

static cudaError_t busy(u64 ns, cudaStream_t stream)
{
	void *args[] = { &ns };

	return cudaLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args,
				0, stream);
}

/* CPU time and duration of a sync over `ns`, and the time that it waited for a CPU. */
struct cost {
	u64 cpu_ns, wall_ns, queued_ns;
	long sleeps;
};

static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static u64 queued_ns(void)
{
	unsigned long long ran, queued = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu", &ran, &queued), 2);
	fclose(file);
	return queued;
}

static struct cost sync_cost(unsigned int flags, u64 ns)
{
	struct cost cost;
	struct work work;
	u64 start;

	OK(cudaSetDeviceFlags(flags));
	OK(busy(MS, NULL));
	OK(cudaDeviceSynchronize()); /* pages in all code and data that a sync uses */
	cost.queued_ns = queued_ns();
	start = truth_now_ns();
	OK(busy(ns, NULL));
	cost.sleeps = sleeps();
	cost.cpu_ns = cpu_ns();
	OK(cudaDeviceSynchronize());
	cost.cpu_ns = cpu_ns() - cost.cpu_ns;
	cost.sleeps = sleeps() - cost.sleeps;
	cost.wall_ns = truth_now_ns() - start;
	cost.queued_ns = queued_ns() - cost.queued_ns;
	work_read(start, NULL, &work, 1);
	assert_true(truth_now_ns() >= work.end_ns);
	/* The sync returns soon after the work ended. */
	timing_assert(cost.wall_ns <= ns + NSEC_PER_SEC);
	OK(cudaSetDeviceFlags(cudaDeviceScheduleAuto));
	return cost;
}

static void test_blocking_sync_costs_no_cpu(void **state)
{
	struct cost cost = sync_cost(cudaDeviceScheduleBlockingSync, 1000 * MS);

	print_message("# blocking sync of 1 s: %.3f ms CPU\n", (double)cost.cpu_ns / 1e6);
	assert_true(cost.cpu_ns <= cost.wall_ns / 10);
}

/* A waiter that spins or yields is always runnable, also while another task has its CPU. */
static void test_other_syncs_spin(void **state)
{
	const unsigned int flags[] = { cudaDeviceScheduleAuto, cudaDeviceScheduleSpin,
				       cudaDeviceScheduleYield };

	for (int i = 0; i < 3; i++) {
		struct cost cost = sync_cost(flags[i], 300 * MS);

		print_message("# sync with flags %u: %.0f ms CPU of %.0f, %ld sleeps\n", flags[i],
			      (double)cost.cpu_ns / 1e6, (double)cost.wall_ns / 1e6, cost.sleeps);
		assert_true(cost.sleeps == 0 || cost.cpu_ns + cost.queued_ns >= cost.wall_ns / 4);
	}
	assert_int_equal(cudaSetDeviceFlags(3), cudaErrorInvalidValue);
	cudaGetLastError();
}

static void test_blocking_event(void **state)
{
	cudaEvent_t event;
	u64 cpu, start;

	OK(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming));
	OK(busy(300 * MS, NULL));
	OK(cudaEventRecord(event, NULL));
	start = truth_now_ns();
	cpu = cpu_ns();
	OK(cudaEventSynchronize(event));
	cpu = cpu_ns() - cpu;
	/* Nothing to wait for: the machine was busy for longer than the GPU. */
	if (truth_now_ns() - start >= 100 * MS)
		assert_true(cpu <= (truth_now_ns() - start) / 10);
	OK(cudaEventDestroy(event));
}

static void test_launch_rate(void **state)
{
	const int nr = 20000;
	u64 cpu = cpu_ns();

	for (int i = 0; i < nr; i++)
		OK(busy(1000, NULL));
	cpu = cpu_ns() - cpu;
	OK(cudaDeviceSynchronize());
	print_message("# launch: %llu ns CPU\n", (unsigned long long)cpu / nr);
	/* 10,000 launches per second use a small part of one CPU, also with sanitizers. */
	timing_assert(cpu <= nr * 20000ULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocking_sync_costs_no_cpu),
		cmocka_unit_test(test_other_syncs_spin),
		cmocka_unit_test(test_blocking_event),
		cmocka_unit_test(test_launch_rate),
	};

	harness_start("1", "1e9");
	return harness_end(cmocka_run_group_tests_name("vgpu sync", tests, NULL, NULL));
}
