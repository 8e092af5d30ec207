/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * NVML's performance monitoring: how busy the device was between two samples of its
 * counters. GRAPHICS_UTIL is the share of the time in which a kernel was executing;
 * SM_UTIL is the share of the multiprocessors that were in use.
 */
#include <stdlib.h>
#include <string.h>

#include "truth/truth.h"
#include "vgpu/nvml.h"

struct nvmlGpmSample_st {
	u64 time_ns; /* 0: no sample taken */
	u64 kernel_ns;
	u64 sm_ns;
	u32 device;
};

/* A process can leave it out, so that monitors with and without it can watch the same GPU. */
static bool has_gpm(void)
{
	const char *wanted = getenv("VGPU_GPM");

	return shm->config.gpm && !(wanted && strcmp(wanted, "0") == 0);
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
	nvmlReturn_t r = nvml_check(device, support);

	if (r == NVML_SUCCESS)
		support->isSupportedDevice = has_gpm() && !shm->config.nr_slices[device->index];
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
	nvmlReturn_t r = nvml_check_counters(device, sample);
	u64 now = truth_now_ns();
	struct shm_fold fold;

	if (r != NVML_SUCCESS)
		return r;
	if (!has_gpm())
		return NVML_ERROR_NOT_SUPPORTED;
	SHM_LOCKED(shm);
	shm_reap(shm);
	shm_fold_read(shm, device->index, now, &fold);
	*sample = (struct nvmlGpmSample_st){ now, fold.kernel_ns, fold.sm_ns, device->index };
	return NVML_SUCCESS;
}

static void metric_set(nvmlGpmMetric_t *metric, const struct nvmlGpmSample_st *from,
		       const struct nvmlGpmSample_st *to)
{
	u64 busy_ns = 0;

	metric->nvmlReturn = NVML_SUCCESS;
	switch (metric->metricId) {
	case NVML_GPM_METRIC_GRAPHICS_UTIL: busy_ns = to->kernel_ns - from->kernel_ns; break;
	case NVML_GPM_METRIC_SM_UTIL: busy_ns = to->sm_ns - from->sm_ns; break;
	default: metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	}
	metric->value = (double)busy_ns * 100 / (double)(to->time_ns - from->time_ns);
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
	for (unsigned int i = 0; i < metrics->numMetrics && i < NVML_GPM_METRIC_MAX; i++)
		metric_set(&metrics->metrics[i], from, to);
	return NVML_SUCCESS;
}
