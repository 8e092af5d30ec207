/* SPDX-License-Identifier: GPL-2.0-or-later */

/* How busy a monitor sees the devices, compared with the logs of the processes that used them. */
#include <time.h>

#include "monitor.h"
#include "vgpu/include/vgpu_nccl.h"

/* 10 ms of work every 40 ms, for 1.2 s, or as near to it as we get CPUs. */
static void quarter_load(int index)
{
	cudaStream_t stream;

	CHECK(!cudaSetDevice(1));
	CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (u64 start = truth_now_ns(), i = 0; i < 30; i++) {
		s64 left = (s64)(start + i * 40 * MS - truth_now_ns());

		if (left > 0)
			usleep((useconds_t)(left / 1000));
		busy(10 * MS);
	}
	say(ready);
	hear(go);
	CHECK(!cudaDeviceSynchronize()); /* what is queued would die with us */
}

#define PERIOD_NS  (NSEC_PER_SEC / 6)
#define NR_SAMPLES 120

/* The number of the sample period that ended at this wall time, in microseconds. */
static u64 period_of(unsigned long long stamp)
{
	struct timespec real, mono;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	stamp -= (unsigned long long)((real.tv_sec - mono.tv_sec) * 1000000 +
				      (real.tv_nsec - mono.tv_nsec) / 1000);
	return (stamp * NSEC_PER_USEC + PERIOD_NS / 2) / PERIOD_NS - 1;
}

/* By the log of the process, whole percent. */
static u32 logged_percent(pid_t pid, u64 period)
{
	u64 ns = work_busy_ns(pid, 1, period * PERIOD_NS, (period + 1) * PERIOD_NS);

	return (u32)((ns * 100 + PERIOD_NS / 2) / PERIOD_NS);
}

static u32 samples_read(unsigned long long last_seen, nvmlSample_t *samples)
{
	unsigned int count = NR_SAMPLES;
	nvmlValueType_t type;
	nvmlReturn_t r = nvmlDeviceGetSamples(device_at(1), NVML_GPU_UTILIZATION_SAMPLES, last_seen,
					      &type, &count, samples);

	if (r == NVML_ERROR_NOT_FOUND)
		return 0;
	NVML_OK(r);
	assert_int_equal(type, NVML_VALUE_TYPE_UNSIGNED_INT);
	return count;
}

static unsigned long long energy_mj(void)
{
	unsigned long long mj;

	NVML_OK(nvmlDeviceGetTotalEnergyConsumption(device_at(1), &mj));
	return mj;
}

/* Every period of the load, as the log has it. */
static void test_samples(void **state)
{
	nvmlSample_t samples[NR_SAMPLES], newer[NR_SAMPLES];
	u64 first = truth_now_ns() / PERIOD_NS;
	u32 nr, nr_busy = 0, nr_newer;
	pid_t pid = child_start(quarter_load, 0);

	hear(ready);
	say(go);
	child_join(pid);
	usleep(PERIOD_NS / 1000);
	nr = samples_read(0, samples);
	for (u32 i = 0; i < nr; i++) {
		u64 period = period_of(samples[i].timeStamp);

		assert_true(!i || period == period_of(samples[i - 1].timeStamp) + 1);
		if (period < first)
			continue;
		assert_int_equal(samples[i].sampleValue.uiVal, logged_percent(pid, period));
		nr_busy += samples[i].sampleValue.uiVal > 0;
	}
	/* 1.2 s of load. */
	assert_true(nr_busy >= 6);
	/* A monitor gets each sample once. */
	nr_newer = samples_read(samples[nr / 2].timeStamp, newer);
	assert_true(nr_newer >= nr - nr / 2 - 1);
	assert_int_equal(newer[0].timeStamp, samples[nr / 2 + 1].timeStamp);
	assert_int_equal(samples_read(newer[nr_newer - 1].timeStamp + 10000000, newer), 0);
}

static void test_sample_errors(void **state)
{
	nvmlSample_t sample;
	unsigned int count = 0;
	nvmlValueType_t type;

	NVML_OK(nvmlDeviceGetSamples(device_at(1), NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count,
				     NULL));
	assert_int_equal(count, NR_SAMPLES);
	assert_int_equal(nvmlDeviceGetSamples(device_at(1), NVML_TOTAL_POWER_SAMPLES, 0, &type,
					      &count, &sample),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(nvmlDeviceGetSamples(device_at(1), NVML_GPU_UTILIZATION_SAMPLES, 0, NULL,
					      &count, &sample),
			 NVML_ERROR_INVALID_ARGUMENT);
}

/* The rates are those of the newest sample, if no period ends between the calls. */
static void check_rates(void)
{
	nvmlSample_t before[NR_SAMPLES], after[NR_SAMPLES];
	nvmlUtilization_t rates;
	u32 nr, nr_after;

	do {
		nr = samples_read(0, before);
		NVML_OK(nvmlDeviceGetUtilizationRates(device_at(1), &rates));
		nr_after = samples_read(0, after);
	} while (before[nr - 1].timeStamp != after[nr_after - 1].timeStamp);
	assert_int_equal(rates.gpu, after[nr_after - 1].sampleValue.uiVal);
}

static void full_load(int index)
{
	CHECK(!cudaSetDevice(1));
	busy(1000 * NSEC_PER_SEC);
	say(ready);
	hear(go);
	_exit(0); /* what is queued ends with the process */
}

static void test_process_utilisation(void **state)
{
	nvmlProcessUtilizationSample_t samples[4];
	unsigned int count;
	unsigned long long seen = 0;
	nvmlUtilization_t rates;
	pid_t pid = child_start(full_load, 0);
	nvmlReturn_t r;

	hear(ready);
	do {
		count = 4;
		r = nvmlDeviceGetProcessUtilization(device_at(1), samples, &count, seen);
		if (r == NVML_SUCCESS) {
			assert_int_equal(count, 1);
			assert_int_equal(samples[0].pid, pid);
			assert_true(samples[0].timeStamp > seen);
			seen = samples[0].timeStamp;
		} else {
			assert_int_equal(r, NVML_ERROR_NOT_FOUND);
		}
	} while (!seen || samples[0].smUtil < 100);
	check_rates();
	NVML_OK(nvmlDeviceGetUtilizationRates(device_at(1), &rates));
	assert_int_equal(rates.gpu, 100);
	NVML_OK(nvmlDeviceGetUtilizationRates(device_at(0), &rates));
	assert_int_equal(rates.gpu, 0);
	count = 4;
	assert_int_equal(
		nvmlDeviceGetProcessUtilization(device_at(1), samples, &count, seen + 10000000),
		NVML_ERROR_NOT_FOUND);
	say(go);
	child_join(pid);
}

static void test_energy(void **state)
{
	unsigned long long mj;
	u64 start[2], end[2];
	pid_t pid;

	start[0] = truth_now_ns();
	mj = energy_mj();
	start[1] = truth_now_ns();
	pid = child_start(quarter_load, 0);
	hear(ready);
	say(go);
	child_join(pid);
	/* 50 W idle and 250 W more for the 0.3 s of work. */
	end[0] = truth_now_ns();
	mj = energy_mj() - mj;
	end[1] = truth_now_ns();
	assert_in_range(mj, (end[0] - start[1]) / MS * 50 + 250 * 300 - 100,
			(end[1] - start[0]) / MS * 50 + 250 * 300 + 100);
}

static nvmlGpmSample_t sample_now(void)
{
	nvmlGpmSample_t sample;

	NVML_OK(nvmlGpmSampleAlloc(&sample));
	NVML_OK(nvmlGpmSampleGet(device_at(1), sample));
	return sample;
}

/* GRAPHICS_UTIL and SM_UTIL. */
static void metrics_get(nvmlGpmSample_t from, nvmlGpmSample_t to, double *ret)
{
	nvmlGpmMetricsGet_t metrics = {
		.version = NVML_GPM_METRICS_GET_VERSION,
		.numMetrics = 3,
		.sample1 = from,
		.sample2 = to,
		.metrics[0].metricId = NVML_GPM_METRIC_GRAPHICS_UTIL,
		.metrics[1].metricId = NVML_GPM_METRIC_SM_UTIL,
		.metrics[2].metricId = NVML_GPM_METRIC_MAX,
	};

	NVML_OK(nvmlGpmMetricsGet(&metrics));
	for (int i = 0; i < 2; i++) {
		NVML_OK(metrics.metrics[i].nvmlReturn);
		ret[i] = metrics.metrics[i].value;
	}
	assert_int_equal(metrics.metrics[2].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

static void partial_load(int index)
{
	setenv("VGPU_SM_PERCENT", "70", 1);
	quarter_load(index);
}

/* The 0.3 s of work, whenever it was; its kernels fill 70 % of the multiprocessors. */
static void test_activity(void **state)
{
	u64 outer = truth_now_ns(), inner, outer_end;
	nvmlGpmSample_t from = sample_now(), to;
	double percent[2];
	pid_t pid;

	inner = truth_now_ns();
	pid = child_start(partial_load, 0);
	hear(ready);
	say(go);
	child_join(pid);
	inner = truth_now_ns() - inner;
	to = sample_now();
	outer_end = truth_now_ns();
	metrics_get(from, to, percent);
	print_message("# kernels %.1f %%, multiprocessors %.1f %%\n", percent[0], percent[1]);
	assert_true(percent[0] / 100 * (double)inner <= 301 * MS);
	assert_true(percent[0] / 100 * (double)(outer_end - outer) >= 299 * MS);
	assert_true(percent[1] > 0.699 * percent[0] && percent[1] < 0.701 * percent[0]);
	NVML_OK(nvmlGpmSampleFree(from));
	NVML_OK(nvmlGpmSampleFree(to));
}

static ncclUniqueId id;

/* The first rank uses device 1 and waits for the second one, which waits for the monitor. */
static void waiting_rank(int rank)
{
	ncclComm_t comm;

	CHECK(!cudaSetDevice(1 - rank));
	CHECK(!ncclCommInitRank(&comm, 2, id, rank));
	if (rank == 1)
		hear(go);
	CHECK(!ncclAllReduce(NULL, NULL, 1, ncclFloat32, ncclSum, comm, NULL));
	if (rank == 0)
		say(ready);
	CHECK(!cudaDeviceSynchronize());
	CHECK(!ncclCommDestroy(comm));
}

/* A collective that waits for ranks is a kernel, which uses few multiprocessors. */
static void test_waiting_collective(void **state)
{
	nvmlGpmSample_t from, to;
	double percent[2];
	pid_t pids[2];

	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	for (int i = 0; i < 2; i++)
		pids[i] = child_start(waiting_rank, i);
	hear(ready);
	from = sample_now();
	sleep_ms(20);
	to = sample_now();
	say(go);
	for (int i = 0; i < 2; i++)
		child_join(pids[i]);
	metrics_get(from, to, percent);
	print_message("# kernels %.1f %%, multiprocessors %.1f %%\n", percent[0], percent[1]);
	assert_true(percent[0] > 99.99);
	assert_true(percent[1] > 9.99 && percent[1] < 10.01);
	NVML_OK(nvmlGpmSampleFree(from));
	NVML_OK(nvmlGpmSampleFree(to));
}

static void no_gpm(int index)
{
	nvmlGpmSupport_t support = { .version = NVML_GPM_SUPPORT_VERSION };
	nvmlGpmSample_t sample;
	nvmlDevice_t device;

	setenv("VGPU_GPM", "0", 1);
	other_devices("1");
	CHECK(!nvmlInit_v2() && !nvmlDeviceGetHandleByIndex_v2(0, &device));
	CHECK(!nvmlGpmQueryDeviceSupport(device, &support) && !support.isSupportedDevice);
	CHECK(!nvmlGpmSampleAlloc(&sample));
	CHECK(nvmlGpmSampleGet(device, sample) == NVML_ERROR_NOT_SUPPORTED);
	CHECK(!nvmlGpmSampleFree(sample));
}

static void test_gpm_support(void **state)
{
	nvmlGpmSupport_t support = { .version = NVML_GPM_SUPPORT_VERSION };

	/* Before this process has its own devices, which the child would share. */
	child_join(child_start(no_gpm, 0));
	NVML_OK(nvmlInit_v2());
	NVML_OK(nvmlGpmQueryDeviceSupport(device_at(0), &support));
	assert_int_equal(support.isSupportedDevice, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpm_support), /* first: it initializes NVML */
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_sample_errors),
		cmocka_unit_test(test_process_utilisation),
		cmocka_unit_test(test_energy),
		cmocka_unit_test(test_activity),
		cmocka_unit_test(test_waiting_collective),
	};

	harness_start("2", "1e9");
	if (pipe(ready) < 0 || pipe(go) < 0)
		return 1;
	return harness_end(cmocka_run_group_tests_name("vgpu utilisation", tests, NULL, NULL));
}
