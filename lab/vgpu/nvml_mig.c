/* SPDX-License-Identifier: GPL-2.0-or-later */

/* NVML: the parts of a divided device (MIG). */
#include "vgpu/identity.h"
#include "vgpu/nvml.h"

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
	nvmlReturn_t r = nvml_check(device, count);

	if (r == NVML_SUCCESS)
		*count = SHM_SLICES;
	return r;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
						 nvmlDevice_t *mig)
{
	nvmlReturn_t r = nvml_check(device, mig);
	nvmlDevice_t slice = r == NVML_SUCCESS ? nvml_slice(device, index) : NULL;

	if (r == NVML_SUCCESS && !slice)
		return NVML_ERROR_NOT_FOUND;
	if (slice)
		*mig = slice;
	return r;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
	nvmlReturn_t r = nvml_check_any(mig, id);

	if (r != NVML_SUCCESS || !mig->slice)
		return r ?: NVML_ERROR_NOT_FOUND;
	*id = IDENTITY_GPU_INSTANCE(mig->slice);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
	nvmlReturn_t r = nvml_check_any(mig, id);

	if (r != NVML_SUCCESS || !mig->slice)
		return r ?: NVML_ERROR_NOT_FOUND;
	*id = IDENTITY_COMPUTE_INSTANCE;
	return NVML_SUCCESS;
}
