/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_nvml_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "collect/gpu_nvml_gpm.h"
#include "collect/gpu_nvml_util.h"

#define NVML_SUCCESS		0
#define NVML_INSUFFICIENT_SIZE	7
#define NVML_NOT_AVAILABLE	(~0ULL)
#define NVML_MEMORY_V2		((unsigned int)sizeof(struct nvml_memory_v2) | 2U << 24)
#define MAX_UTILISATION_SAMPLES 1024

typedef void *nvml_device;

struct nvml_pci {
	char bus_id_legacy[16];
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pci_device_id;
	unsigned int pci_subsystem_id;
	char bus_id[32];
};

struct nvml_utilization {
	unsigned int gpu;
	unsigned int memory;
};

struct nvml_memory {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
};

struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total;
	unsigned long long reserved;
	unsigned long long free;
	unsigned long long used;
};

struct nvml_process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance;
	unsigned int compute_instance;
};

struct nvml_process_utilization {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm;
	unsigned int memory;
	unsigned int encoder;
	unsigned int decoder;
};

_Static_assert(sizeof(struct nvml_pci) == 68, "as documented");
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "as documented");
_Static_assert(sizeof(struct nvml_process) == 24, "as documented");
_Static_assert(sizeof(struct nvml_process_utilization) == 32, "as documented");

struct nvml_calls {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned int *count);
	int (*handle)(unsigned int index, nvml_device *device);
	int (*name)(nvml_device device, char *name, unsigned int length);
	int (*uuid)(nvml_device device, char *uuid, unsigned int length);
	int (*pci)(nvml_device device, struct nvml_pci *pci);
	int (*numa_node)(nvml_device device, unsigned int *node);
	int (*minor)(nvml_device device, unsigned int *minor);
	int (*slice_max)(nvml_device device, unsigned int *count);
	int (*slice)(nvml_device device, unsigned int index, nvml_device *slice);
	int (*gpu_instance)(nvml_device slice, unsigned int *id);
	int (*compute_instance)(nvml_device slice, unsigned int *id);
	int (*utilization)(nvml_device device, struct nvml_utilization *utilization);
	int (*memory)(nvml_device device, struct nvml_memory *memory);
	int (*memory_v2)(nvml_device device, struct nvml_memory_v2 *memory);
	int (*energy)(nvml_device device, unsigned long long *mj);
	int (*processes)(nvml_device device, unsigned int *count, struct nvml_process *processes);
	int (*process_utilization)(nvml_device device, struct nvml_process_utilization *samples,
				   unsigned int *count, unsigned long long since_us);
};

struct symbol {
	const char *name;
	size_t offset;
	bool required;
};

#define CALL(member) offsetof(struct nvml_calls, member)

/* A later row is used when an earlier row is missing: versions 2 and 3 have the same layout. */
static const struct symbol symbols[] = {
	{ "nvmlInit_v2", CALL(init), true },
	{ "nvmlShutdown", CALL(shutdown), true },
	{ "nvmlDeviceGetCount_v2", CALL(count), true },
	{ "nvmlDeviceGetHandleByIndex_v2", CALL(handle), true },
	{ "nvmlDeviceGetName", CALL(name), false },
	{ "nvmlDeviceGetUUID", CALL(uuid), false },
	{ "nvmlDeviceGetPciInfo_v3", CALL(pci), false },
	{ "nvmlDeviceGetNumaNodeId", CALL(numa_node), false },
	{ "nvmlDeviceGetMinorNumber", CALL(minor), false },
	{ "nvmlDeviceGetMaxMigDeviceCount", CALL(slice_max), false },
	{ "nvmlDeviceGetMigDeviceHandleByIndex", CALL(slice), false },
	{ "nvmlDeviceGetGpuInstanceId", CALL(gpu_instance), false },
	{ "nvmlDeviceGetComputeInstanceId", CALL(compute_instance), false },
	{ "nvmlDeviceGetUtilizationRates", CALL(utilization), false },
	{ "nvmlDeviceGetMemoryInfo", CALL(memory), false },
	{ "nvmlDeviceGetMemoryInfo_v2", CALL(memory_v2), false },
	{ "nvmlDeviceGetTotalEnergyConsumption", CALL(energy), false },
	{ "nvmlDeviceGetComputeRunningProcesses_v3", CALL(processes), false },
	{ "nvmlDeviceGetComputeRunningProcesses_v2", CALL(processes), false },
	{ "nvmlDeviceGetProcessUtilization", CALL(process_utilization), false },
};

struct nvml_api {
	void *library;
	bool initialised;
	struct nvml_calls call;
	struct nvml_gpm *gpm;	/* NULL: not available */
	struct nvml_util *util; /* NULL: not available */
	u32 nr_handles;		/* handle i belongs to GPU i of the samples */
	nvml_device handles[GPU_MAX_DEVICES];
	unsigned long long seen_us[GPU_MAX_DEVICES]; /* time of the newest process utilization */
	struct nvml_process processes[GPU_MAX_PROCESSES];
	struct nvml_process_utilization utilizations[MAX_UTILISATION_SAMPLES];
};

/*
 * The sanitizer for calls through pointers compares type names. The library is built with
 * its own header, which has other names for the same layouts.
 */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("function"))), apply_to = function)
#endif

static int resolve(struct nvml_api *api)
{
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		void **slot = (void **)((char *)&api->call + symbols[i].offset);

		if (!*slot)
			*slot = dlsym(api->library, symbols[i].name);
		if (!*slot && symbols[i].required)
			return -ENODEV;
	}
	return 0;
}

int nvml_api_open(const char *library, struct nvml_api **ret)
{
	CLEANUP(nvml_api_close_cleanup) struct nvml_api *api = calloc(1, sizeof(*api));
	int err;

	if (!api)
		return -ENOMEM;
	api->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!api->library)
		return -ENODEV;
	err = resolve(api);
	if (err < 0)
		return err;
	if (api->call.init() != NVML_SUCCESS)
		return -ENODEV;
	api->initialised = true;
	api->gpm = nvml_gpm_new(api->library);
	api->util = nvml_util_new(api->library);
	*ret = TAKE_PTR(api);
	return 0;
}

struct nvml_api *nvml_api_close(struct nvml_api *api)
{
	if (!api)
		return NULL;
	nvml_gpm_free(api->gpm);
	nvml_util_free(api->util);
	if (api->initialised)
		api->call.shutdown();
	if (api->library)
		dlclose(api->library);
	free(api);
	return NULL;
}

/* NVML does not report the PCI function; a GPU is always function 0. */
static void identify_address(const struct nvml_calls *call, nvml_device device, const char *sysfs,
			     struct gpu_sample *sample)
{
	char address[GPU_ADDRESS_LEN];
	struct nvml_pci pci = {};

	if (!call->pci || call->pci(device, &pci) != NVML_SUCCESS)
		return;
	snprintf(address, sizeof(address), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	gpu_sample_set_address(sample, sysfs, address);
}

static void identify_device(const struct nvml_calls *call, nvml_device device, const char *sysfs,
			    struct gpu_sample *sample)
{
	unsigned int node;

	if (call->name && call->name(device, sample->name, GPU_TEXT_LEN) == NVML_SUCCESS)
		sample->valid |= GPU_HAS_NAME;
	if (call->uuid && call->uuid(device, sample->uuid, GPU_TEXT_LEN) == NVML_SUCCESS)
		sample->valid |= GPU_HAS_UUID;
	if (call->minor && call->minor(device, &sample->nvidia_file) == NVML_SUCCESS)
		sample->valid |= GPU_HAS_NVIDIA_FILE;
	identify_address(call, device, sysfs, sample);
	/*
	 * sysfs has precedence: NVML often reports the node of the GPU's own memory, which has no
	 * CPUs. The scheduler needs the CPUs next to the GPU.
	 */
	if (!(sample->valid & GPU_HAS_NUMA_NODE) && call->numa_node &&
	    call->numa_node(device, &node) == NVML_SUCCESS && node <= INT_MAX) {
		sample->numa_node = (s32)node;
		sample->valid |= GPU_HAS_NUMA_NODE;
	}
}

void nvml_api_identify(struct nvml_api *api, const char *sysfs, struct gpu_samples *ret)
{
	const struct nvml_calls *call = &api->call;
	unsigned int count = 0;

	if (call->count(&count) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count; i++) {
		struct gpu_sample *sample;
		nvml_device device;

		/* A GPU that fell off the bus keeps its place, without any valid field. */
		if (call->handle(i, &device) != NVML_SUCCESS)
			device = NULL;
		sample = gpu_samples_add_device(ret);
		if (!sample)
			continue;
		api->handles[api->nr_handles++] = device;
		if (device)
			identify_device(call, device, sysfs, sample);
	}
}

static void set_memory(struct gpu_sample *sample, u64 used, u64 total)
{
	sample->memory_used_bytes = used;
	sample->memory_total_bytes = total;
	sample->valid |= GPU_HAS_MEMORY_USED | GPU_HAS_MEMORY_TOTAL;
}

static void measure_device(const struct nvml_calls *call, nvml_device device,
			   struct gpu_sample *sample)
{
	struct nvml_memory_v2 memory_v2 = { .version = NVML_MEMORY_V2 };
	struct nvml_utilization utilization;
	struct nvml_memory memory;
	unsigned long long mj;

	if (call->utilization && call->utilization(device, &utilization) == NVML_SUCCESS &&
	    utilization.gpu <= 100) {
		sample->utilisation = utilization.gpu;
		sample->valid |= GPU_HAS_UTILISATION;
	}
	/* The older call counts memory that the driver reserved for itself as used. */
	if (call->memory_v2 && call->memory_v2(device, &memory_v2) == NVML_SUCCESS)
		set_memory(sample, memory_v2.used, memory_v2.total);
	else if (call->memory && call->memory(device, &memory) == NVML_SUCCESS)
		set_memory(sample, memory.used, memory.total);
	if (call->energy && call->energy(device, &mj) == NVML_SUCCESS) {
		sample->energy_mj = mj;
		sample->valid |= GPU_HAS_ENERGY;
	}
}

/* Uses the newest sample of each process since the last call; no sample does not mean zero. */
static void measure_process_utilization(struct nvml_api *api, u32 gpu, u32 first,
					struct gpu_samples *samples)
{
	unsigned long long newest[GPU_MAX_PROCESSES] = {}, since = api->seen_us[gpu];
	unsigned int count = MAX_UTILISATION_SAMPLES;
	int r;

	if (!api->call.process_utilization)
		return;
	r = api->call.process_utilization(api->handles[gpu], api->utilizations, &count, since);
	if (r == NVML_INSUFFICIENT_SIZE)
		samples->nr_dropped++;
	if (r != NVML_SUCCESS)
		return;
	for (u32 i = 0; i < count && i < MAX_UTILISATION_SAMPLES; i++) {
		const struct nvml_process_utilization *sample = &api->utilizations[i];

		if (sample->time_us > api->seen_us[gpu])
			api->seen_us[gpu] = sample->time_us;
		for (u32 p = first; p < samples->nr_processes; p++) {
			struct gpu_process_sample *process = &samples->processes[p];

			if (process->pid != sample->pid || sample->time_us <= newest[p] ||
			    sample->sm > 100)
				continue;
			newest[p] = sample->time_us;
			process->utilisation = sample->sm;
			process->valid |= GPU_HAS_UTILISATION;
		}
	}
}

/* Adds the processes of a GPU, or of a part of it. */
static void list_processes(struct nvml_api *api, nvml_device device,
			   const struct gpu_process_sample *place, struct gpu_samples *samples)
{
	unsigned int count = GPU_MAX_PROCESSES;
	int r = api->call.processes(device, &count, api->processes);

	if (r == NVML_INSUFFICIENT_SIZE)
		samples->nr_dropped += count;
	if (r != NVML_SUCCESS) {
		samples->nr_unlisted++;
		return;
	}
	for (u32 i = 0; i < count && i < GPU_MAX_PROCESSES; i++) {
		const struct nvml_process *listed = &api->processes[i];
		struct gpu_process_sample *process = gpu_samples_add_process(samples);

		if (!process) {
			samples->nr_unlisted++;
			return;
		}
		*process = *place;
		process->pid = listed->pid;
		if (place->gpu_instance == GPU_NO_INSTANCE) {
			process->gpu_instance = listed->gpu_instance;
			process->compute_instance = listed->compute_instance;
		}
		if (listed->used == NVML_NOT_AVAILABLE)
			continue;
		process->memory_used_bytes = listed->used;
		process->valid |= GPU_HAS_MEMORY_USED;
	}
}

/* Parts can be made and removed at any time, so they are looked up each time. */
static u32 list_slices(struct nvml_api *api, u32 gpu, struct gpu_process_sample place,
		       struct gpu_samples *samples)
{
	const struct nvml_calls *call = &api->call;
	unsigned int max = 0;
	u32 nr = 0;

	if (!call->slice_max || !call->slice || !call->gpu_instance || !call->compute_instance ||
	    call->slice_max(api->handles[gpu], &max) != NVML_SUCCESS)
		return 0;
	for (unsigned int i = 0; i < max && i < GPU_MAX_SLICES; i++) {
		struct gpu_slice_sample *slice;
		nvml_device device;

		if (call->slice(api->handles[gpu], i, &device) != NVML_SUCCESS ||
		    call->gpu_instance(device, &place.gpu_instance) != NVML_SUCCESS ||
		    call->compute_instance(device, &place.compute_instance) != NVML_SUCCESS)
			continue;
		nr++;
		slice = gpu_samples_add_slice(samples);
		if (slice) {
			slice->gpu = gpu;
			slice->gpu_instance = place.gpu_instance;
			slice->compute_instance = place.compute_instance;
			if (!call->uuid ||
			    call->uuid(device, slice->uuid, sizeof(slice->uuid)) != NVML_SUCCESS)
				slice->uuid[0] = '\0';
		}
		if (call->processes)
			list_processes(api, device, &place, samples);
	}
	return nr;
}

/* The list of a GPU that is divided needs rights that the lists of its parts do not need. */
static void measure_processes(struct nvml_api *api, u32 gpu, struct gpu_samples *samples)
{
	struct gpu_process_sample place = { .gpu = gpu,
					    .is_listed = 1,
					    .at_ns = time_now_ns(),
					    .gpu_instance = GPU_NO_INSTANCE,
					    .compute_instance = GPU_NO_INSTANCE };
	u32 first = samples->nr_processes;

	if (list_slices(api, gpu, place, samples) || !api->call.processes)
		return;
	list_processes(api, api->handles[gpu], &place, samples);
	measure_process_utilization(api, gpu, first, samples);
}

void nvml_api_measure(struct nvml_api *api, struct gpu_samples *samples)
{
	for (u32 i = 0; i < api->nr_handles; i++) {
		if (!api->handles[i])
			continue;
		measure_device(&api->call, api->handles[i], &samples->devices[i]);
		measure_processes(api, i, samples);
	}
	/* Last, so that little time passes between these counters and those of the processes. */
	for (u32 i = 0; i < api->nr_handles; i++) {
		if (!api->handles[i])
			continue;
		nvml_gpm_measure(api->gpm, i, api->handles[i], &samples->devices[i]);
		nvml_util_measure(api->util, i, api->handles[i], &samples->devices[i]);
	}
}

#ifdef __clang__
#pragma clang attribute pop
#endif
