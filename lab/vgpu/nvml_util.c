/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * NVML's utilization: whole percent of a completed sample period. The driver keeps the
 * last periods, with the time when each ended; a monitor passes the time of the last
 * sample that it has read. Only kernels count: a copy does not make the GPU busy.
 */
#include "truth/truth.h"
#include "vgpu/nvml.h"

static unsigned int percent(u64 busy_ns)
{
	return (unsigned int)((busy_ns * 100 + SHM_PERIOD_NS / 2) / SHM_PERIOD_NS);
}

/* The end of a period, in microseconds of wall time. */
static u64 period_stamp(u64 number)
{
	return ((number + 1) * SHM_PERIOD_NS + shm->realtime_minus_monotonic_ns) / NSEC_PER_USEC;
}

static u64 period_completed(u64 now_ns)
{
	return now_ns / SHM_PERIOD_NS - 1;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	nvmlReturn_t r = nvml_check_counters(device, utilization);
	u64 now = truth_now_ns();
	struct shm_period period;
	struct shm_fold fold;

	if (r != NVML_SUCCESS)
		return r;
	SHM_LOCKED(shm);
	shm_reap(shm);
	shm_fold_read(shm, device->index, now, &fold);
	period = shm_period_of(&fold, period_completed(now));
	utilization->gpu = percent(period.kernel_ns);
	utilization->memory = percent(period.any_ns);
	return NVML_SUCCESS;
}

/* The oldest period that is not older than the buffer, and newer than the last one seen. */
static u64 period_first(u64 completed, u64 last_seen)
{
	u64 created = shm->created_ns / SHM_PERIOD_NS;
	u64 first = completed - SHM_PERIODS + 1;

	if (completed < SHM_PERIODS || first < created)
		first = created;
	while (first <= completed && period_stamp(first) <= last_seen)
		first++;
	return first;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
				  unsigned long long last_seen, nvmlValueType_t *value_type,
				  unsigned int *count, nvmlSample_t *samples)
{
	nvmlReturn_t r = nvml_check_counters(device, count);
	u64 now = truth_now_ns(), completed = period_completed(now);
	struct shm_fold fold;
	unsigned int nr = 0;

	if (r != NVML_SUCCESS || !value_type)
		return r ?: NVML_ERROR_INVALID_ARGUMENT;
	if (type != NVML_GPU_UTILIZATION_SAMPLES && type != NVML_MEMORY_UTILIZATION_SAMPLES)
		return NVML_ERROR_NOT_SUPPORTED;
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (!samples) {
		*count = SHM_PERIODS;
		return NVML_SUCCESS;
	}
	SHM_LOCKED(shm);
	shm_reap(shm);
	shm_fold_read(shm, device->index, now, &fold);
	for (u64 i = period_first(completed, last_seen); i <= completed && nr < *count; i++) {
		struct shm_period period = shm_period_of(&fold, i);

		samples[nr++] = (nvmlSample_t){
			.timeStamp = period_stamp(i),
			.sampleValue.uiVal =
				percent(type == NVML_GPU_UTILIZATION_SAMPLES ? period.kernel_ns
									     : period.any_ns),
		};
	}
	*count = nr;
	return nr ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* The processes that used the device in the last completed period, if that is new. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
					     nvmlProcessUtilizationSample_t *samples,
					     unsigned int *count, unsigned long long last_seen)
{
	nvmlReturn_t r = nvml_check_counters(device, count);
	u64 number = period_completed(truth_now_ns());
	unsigned int nr = 0;

	if (r != NVML_SUCCESS)
		return r;
	if (period_stamp(number) <= last_seen)
		return NVML_ERROR_NOT_FOUND;
	SHM_LOCKED(shm);
	shm_reap(shm);
	for (u32 i = 0; i < SHM_PROCS; i++) {
		struct shm_fold fold = { .until_ns = number * SHM_PERIOD_NS };
		struct shm_period period;

		if (!shm->procs[i].pid || !shm->procs[i].contexts[device->index])
			continue;
		shm_fold_extend(shm, device->index, i, (number + 1) * SHM_PERIOD_NS, &fold);
		period = shm_period_of(&fold, number);
		if (!percent(period.any_ns))
			continue;
		if (nr < *count && samples)
			samples[nr] = (nvmlProcessUtilizationSample_t){
				.pid = shm->procs[i].pid,
				.timeStamp = period_stamp(number),
				.smUtil = percent(period.kernel_ns),
				.memUtil = percent(period.any_ns),
			};
		nr++;
	}
	r = nr > *count ? NVML_ERROR_INSUFFICIENT_SIZE : nr ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
	*count = nr;
	return r;
}
