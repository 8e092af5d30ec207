/* SPDX-License-Identifier: GPL-2.0-or-later */

/* NVML: shows the state of the devices in the shared file to monitors. */
#include <stdio.h>
#include <string.h>

#include "truth/truth.h"
#include "vgpu/identity.h"
#include "vgpu/nvml.h"

#define IDLE_WATTS 50
#define BUSY_WATTS 300

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct shm *shm;
static u32 nr_users;
static struct nvmlDevice_st devices[SHM_DEVICES];
static struct nvmlDevice_st slices[SHM_DEVICES][SHM_SLICES];

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	nvmlReturn_t r = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!shm && shm_attach(&shm) < 0)
		r = NVML_ERROR_DRIVER_NOT_LOADED;
	else
		nr_users++;
	for (u32 i = 0; i < SHM_DEVICES; i++) {
		devices[i].index = i;
		for (u32 k = 0; k < SHM_SLICES; k++)
			slices[i][k] = (struct nvmlDevice_st){ .index = i, .slice = k + 1 };
	}
	pthread_mutex_unlock(&lock);
	return r;
}

nvmlReturn_t nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

/* The mapping stays, because another thread may read it. */
nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t r = NVML_ERROR_UNINITIALIZED;

	pthread_mutex_lock(&lock);
	if (nr_users) {
		nr_users--;
		r = NVML_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

nvmlReturn_t nvml_check(nvmlDevice_t device, const void *out)
{
	if (!__atomic_load_n(&nr_users, __ATOMIC_RELAXED))
		return NVML_ERROR_UNINITIALIZED;
	if (!out || device < devices || device >= devices + shm->config.nr_devices)
		return NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

nvmlDevice_t nvml_slice(nvmlDevice_t device, u32 index)
{
	return index < shm->config.nr_slices[device->index] ? &slices[device->index][index] : NULL;
}

nvmlReturn_t nvml_check_any(nvmlDevice_t device, const void *out)
{
	if (device >= &slices[0][0] && device <= &slices[SHM_DEVICES - 1][SHM_SLICES - 1])
		device = &devices[device->index];
	return nvml_check(device, out);
}

nvmlReturn_t nvml_check_counters(nvmlDevice_t device, const void *out)
{
	nvmlReturn_t r = nvml_check_any(device, out);

	if (r == NVML_SUCCESS && shm->config.nr_slices[device->index])
		r = NVML_ERROR_NOT_SUPPORTED;
	return r;
}

static nvmlReturn_t text(char *to, unsigned int length, const char *from)
{
	if (length <= strlen(from))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(to, from);
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
	case NVML_ERROR_UNKNOWN: break;
	}
	return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return nvml_check(devices, version) ?: text(version, length, IDENTITY_DRIVER);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (!nr_users)
		return NVML_ERROR_UNINITIALIZED;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = shm->config.nr_devices;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	nvmlReturn_t r = nvml_check(devices + (index < SHM_DEVICES ? index : SHM_DEVICES), device);

	if (r == NVML_SUCCESS)
		*device = &devices[index];
	return r;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	nvmlReturn_t r = nvml_check(device, index);

	if (r == NVML_SUCCESS)
		*index = device->index;
	return r;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	return nvml_check(device, name) ?: text(name, length, IDENTITY_NAME);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char buffer[IDENTITY_UUID_TEXT];
	nvmlReturn_t r = nvml_check_any(device, uuid);

	if (r != NVML_SUCCESS)
		return r;
	identity_uuid_text(device->index, device->slice, buffer);
	return text(uuid, length, buffer);
}

/* The number of its device file, which need not be its index. */
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
	nvmlReturn_t r = nvml_check(device, minor);

	if (r == NVML_SUCCESS)
		*minor = shm->config.minor[device->index];
	return r;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	nvmlReturn_t r = nvml_check(device, pci);

	if (r != NVML_SUCCESS)
		return r;
	*pci = (nvmlPciInfo_t){ .bus = IDENTITY_PCI_BUS(device->index),
				.device = IDENTITY_PCI_DEVICE };
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus);
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
	nvmlReturn_t r = nvml_check(device, node);

	if (r == NVML_SUCCESS)
		*node = shm->devices[device->index].numa_node;
	return r;
}

static u64 memory_used(u32 device)
{
	SHM_LOCKED(shm);

	shm_reap(shm);
	return shm_memory_used(shm, device);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t r = nvml_check(device, memory);

	if (r != NVML_SUCCESS)
		return r;
	memory->total = shm->config.memory_bytes;
	memory->used = memory_used(device->index);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t r = nvml_check(device, memory);

	if (r != NVML_SUCCESS)
		return r;
	memory->total = shm->config.memory_bytes;
	memory->reserved = 0;
	memory->used = memory_used(device->index);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

/* A part of a device shows the processes on it, and a divided device shows those of all parts. */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
						     nvmlProcessInfo_t *infos)
{
	nvmlReturn_t r = nvml_check_any(device, count);
	unsigned int nr = 0;

	if (r != NVML_SUCCESS)
		return r;
	SHM_LOCKED(shm);
	shm_reap(shm);
	for (u32 i = 0; i < SHM_PROCS; i++) {
		const struct shm_proc *proc = &shm->procs[i];
		u32 slice = proc->slice[device->index];

		if (!proc->pid || !proc->contexts[device->index] ||
		    (device->slice && device->slice != slice))
			continue;
		if (nr < *count && infos)
			infos[nr] = (nvmlProcessInfo_t){
				.pid = proc->pid,
				.usedGpuMemory = proc->memory[device->index],
				.gpuInstanceId = slice ? IDENTITY_GPU_INSTANCE(slice) : ~0U,
				.computeInstanceId = slice ? IDENTITY_COMPUTE_INSTANCE : ~0U,
			};
		nr++;
	}
	r = nr > *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
	*count = nr;
	return r;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *mj)
{
	nvmlReturn_t r = nvml_check(device, mj);
	u64 now = truth_now_ns();
	struct shm_fold fold;

	if (r != NVML_SUCCESS)
		return r;
	SHM_LOCKED(shm);
	shm_reap(shm);
	shm_fold_read(shm, device->index, now, &fold);
	*mj = ((now - shm->created_ns) / 1000 * IDLE_WATTS +
	       fold.kernel_ns / 1000 * (BUSY_WATTS - IDLE_WATTS)) /
	      1000;
	return NVML_SUCCESS;
}
