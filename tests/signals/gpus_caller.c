/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A job on the virtual GPU: it may ask for the identity of its devices, and uses some of them. */
#include "signals/gpus.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/include/vgpu_cuda.h"
#include "vgpu/include/vgpu_cudart.h"

static const char *vendor;
static void *runtime, *driver;

/* A function of the runtime: cudaNAME or hipNAME. */
static void *rt(const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "%s%s", vendor, name);
	return dlsym(runtime, full);
}

#define RT(name)     ((typeof(&cuda##name))rt(#name))
#define DRIVER(name) ((typeof(&cu##name))dlsym(driver, "cu" #name))

static int load(const struct gpus_job *job, const char *dir)
{
	char path[4096];

	vendor = job->is_hip ? "hip" : "cuda";
	snprintf(path, sizeof(path), "%s/%s", dir,
		 job->is_hip ? "libamdhip64.so.6" : "libcudart.so.12");
	runtime = dlopen(path, RTLD_NOW);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", dir);
	driver = job->is_hip ? runtime : dlopen(path, RTLD_NOW);
	return runtime && driver ? 0 : -1;
}

/* As large as the structs of the vendors. */
static char properties[4096];

static int ask(const struct gpus_job *job, int device)
{
	int (*get_properties)(void *, int) =
		rt(job->is_hip ? "GetDevicePropertiesR0600" : "GetDeviceProperties_v2");
	int (*get_uuid)(void *, int) =
		job->is_hip ? rt("DeviceGetUuid") : (void *)DRIVER(DeviceGetUuid);
	char address[16];
	int err = 0;

	if (job->asks & GPUS_ASK_PROPERTIES)
		err |= get_properties(properties, device);
	if (job->asks & GPUS_ASK_UUID)
		err |= get_uuid(properties, device);
	if (job->asks & GPUS_ASK_UUID_PART && !job->is_hip)
		err |= (int)DRIVER(DeviceGetUuid_v2)((CUuuid *)properties, device);
	if (job->asks & GPUS_ASK_PCI)
		err |= (int)RT(DeviceGetPCIBusId)(address, sizeof(address), device);
	return err;
}

/* The size of an allocation tells the test which device of the job is on a GPU. */
static int use(int device)
{
	void *memory;

	return (int)RT(SetDevice)(device) || (int)RT(Malloc)(&memory, GPUS_BYTES(device));
}

/* Ray sets the variable before the first call; a program can change it at any time after it. */
static int run(const struct gpus_job *job)
{
	const char *variable = job->is_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
	int nr = 0, err;
	u32 uses;

	if (*job->visible)
		setenv(variable, job->visible, 1);
	err = (int)RT(GetDeviceCount)(&nr);
	setenv(variable, "3,2,1,0", 1);
	uses = job->uses & ((1U << nr) - 1) ?: 1;
	for (int device = 0; device < nr && !err; device++)
		if (job->asks)
			err = ask(job, device);
	for (int device = 0; device < nr && !err; device++)
		if (uses >> device & 1)
			err = use(device);
	return err;
}

int gpus_caller(const struct gpus_job *job, const char *library_dir)
{
	char byte = load(job, library_dir) == 0 && run(job) == 0;

	if (write(STDOUT_FILENO, &byte, 1) != 1)
		return 1;
	return read(STDIN_FILENO, &byte, 1) < 0;
}
