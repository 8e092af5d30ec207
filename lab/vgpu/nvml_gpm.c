/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * NVML's performance monitoring: the share of the device that was busy between two
 * samples. Kernels use all multiprocessors. The kernel of a collective, which mostly
 * waits for other ranks, uses only a few.
 */
#include <stdlib.h>

#include "truth/truth.h"
#include "vgpu/nvml.h"

#define COLLECTIVE_SM_PERCENT 10

struct nvmlGpmSample_st {
	u64 time_ns; /* 0: no sample taken */
	u32 device;
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
	nvmlReturn_t r = nvml_check(device, support);

	if (r == NVML_SUCCESS)
		support->isSupportedDevice = 1;
	return r;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
	if (!sample)
		return NVML_ERROR_INVALID_ARGUMENT;
	*sample = calloc(1, sizeof(**sample));
	return *sample ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	free(sample);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
	nvmlReturn_t r = nvml_check(device, sample);

	if (r == NVML_SUCCESS)
		*sample = (struct nvmlGpmSample_st){ truth_now_ns(), device->index };
	return r;
}

/* In percent of the time between the samples. */
static double sm_utilisation(const struct nvmlGpmSample_st *from, const struct nvmlGpmSample_st *to)
{
	u64 all, kernels;

	SHM_LOCKED(shm);
	shm_reap(shm);
	kernels = shm_busy_ns(shm, from->device, SHM_ANY_PROC, SHM_SPAN_COMPUTE | SHM_SPAN_COPY,
			      from->time_ns, to->time_ns);
	all = shm_busy_ns(shm, from->device, SHM_ANY_PROC, SHM_SPAN_KERNELS | SHM_SPAN_COPY,
			  from->time_ns, to->time_ns);
	return ((double)kernels * 100 + (double)(all - kernels) * COLLECTIVE_SM_PERCENT) /
	       (double)(to->time_ns - from->time_ns);
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metrics)
{
	const struct nvmlGpmSample_st *from, *to;

	if (!metrics || metrics->version != NVML_GPM_METRICS_GET_VERSION)
		return NVML_ERROR_INVALID_ARGUMENT;
	from = metrics->sample1;
	to = metrics->sample2;
	if (!shm || !from || !to || !from->time_ns || to->time_ns <= from->time_ns ||
	    to->device != from->device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < metrics->numMetrics; i++) {
		nvmlGpmMetric_t *metric = &metrics->metrics[i];

		metric->nvmlReturn = metric->metricId == NVML_GPM_METRIC_SM_UTIL
					     ? NVML_SUCCESS
					     : NVML_ERROR_NOT_SUPPORTED;
		metric->value = metric->nvmlReturn == NVML_SUCCESS ? sm_utilisation(from, to) : 0;
	}
	return NVML_SUCCESS;
}
