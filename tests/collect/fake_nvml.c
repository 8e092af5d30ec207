/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A fake NVML with two devices that fails or hangs on demand. FAKE_SYMBOLS selects its
 * functions: 0 lacks a required function, 1 has only the required functions, 2 also has the
 * optional functions, and 3 also has performance monitoring.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/fake_nvml.h"
#include "vgpu/include/vgpu_nvml.h"

extern struct fake_nvml fake_nvml;
struct fake_nvml fake_nvml;

struct nvmlDevice_st {
	unsigned int index;
};

static void hang_while(atomic_int *flag)
{
	while (*flag)
		usleep(1000);
}

nvmlReturn_t nvmlInit_v2(void)
{
	fake_nvml.nr_init++;
	hang_while(&fake_nvml.hang_init);
	return (nvmlReturn_t)fake_nvml.init_result;
}

nvmlReturn_t nvmlShutdown(void)
{
	fake_nvml.nr_shutdown++;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = 2;
	return NVML_SUCCESS;
}

#if FAKE_SYMBOLS >= 1
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	static struct nvmlDevice_st devices[2] = { { 0 }, { 1 } };

	*device = &devices[index];
	return NVML_SUCCESS;
}
#endif

#if FAKE_SYMBOLS >= 2
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	*pci = (nvmlPciInfo_t){ .bus = 0x3b + device->index };
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	fake_nvml.nr_utilization++;
	hang_while(&fake_nvml.hang_utilization);
	*utilization = (nvmlUtilization_t){ .gpu = 40 + device->index };
	return (nvmlReturn_t)fake_nvml.fail;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	*memory = (nvmlMemory_t){ .total = 1000, .used = 300, .free = 700 };
	return (nvmlReturn_t)fake_nvml.fail;
}

/* Like hardware that does not support the newer call. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
						     nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
						     nvmlProcessInfo_t *infos)
{
	infos[0] = (nvmlProcessInfo_t){ 7, 123, ~0U, ~0U };
	infos[1] = (nvmlProcessInfo_t){ 8, ~0ULL, ~0U, ~0U };
	*count = 2;
	return (nvmlReturn_t)fake_nvml.fail;
}

/* Two samples of one process, the newer one first; after that, no new samples. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
					     nvmlProcessUtilizationSample_t *samples,
					     unsigned int *count, unsigned long long last_seen)
{
	if (last_seen >= 200)
		return NVML_ERROR_NOT_FOUND;
	samples[0] = (nvmlProcessUtilizationSample_t){ .pid = 7, .timeStamp = 200, .smUtil = 66 };
	samples[1] = (nvmlProcessUtilizationSample_t){ .pid = 7, .timeStamp = 100, .smUtil = 11 };
	samples[2] = (nvmlProcessUtilizationSample_t){ .pid = 9, .timeStamp = 150, .smUtil = 22 };
	*count = 3;
	return (nvmlReturn_t)fake_nvml.fail;
}
#endif

#if FAKE_SYMBOLS >= 2
/* The samples that the test prepared and that are newer than the last one seen. */
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
				  unsigned long long last_seen, nvmlValueType_t *value_type,
				  unsigned int *count, nvmlSample_t *samples)
{
	unsigned int nr = 0;

	if (type != NVML_GPU_UTILIZATION_SAMPLES || device->index)
		return NVML_ERROR_NOT_SUPPORTED;
	for (int i = 0; i < fake_nvml.nr_samples && nr < *count; i++) {
		if (fake_nvml.sample_us[i] <= last_seen)
			continue;
		samples[nr].timeStamp = fake_nvml.sample_us[i];
		samples[nr++].sampleValue.uiVal = fake_nvml.sample_percent[i];
	}
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	*count = nr;
	return fake_nvml.fail ? (nvmlReturn_t)fake_nvml.fail
			      : (nr ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND);
}
#endif

#if FAKE_SYMBOLS >= 3
/* Only the first device supports performance monitoring; a quarter of it is active. */
nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
	support->isSupportedDevice = device->index == 0;
	return support->version == NVML_GPM_SUPPORT_VERSION ? NVML_SUCCESS
							    : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
	*sample = malloc(1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	free(sample);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
	return (nvmlReturn_t)fake_nvml.fail;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metrics)
{
	nvmlGpmMetric_t *metric = metrics->metrics;

	if (metrics->version != NVML_GPM_METRICS_GET_VERSION || metrics->numMetrics != 2 ||
	    metrics->sample1 == metrics->sample2 || metric[0].metricId != NVML_GPM_METRIC_SM_UTIL ||
	    metric[1].metricId != NVML_GPM_METRIC_GRAPHICS_UTIL)
		return NVML_ERROR_INVALID_ARGUMENT;
	metric[0].nvmlReturn = NVML_SUCCESS;
	metric[0].value = 25;
	metric[1].nvmlReturn = (nvmlReturn_t)fake_nvml.no_graphics;
	metric[1].value = 75;
	return NVML_SUCCESS;
}
#endif
