/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the tests of NVML: this process is the monitor, its children use the devices. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "vgpu/include/vgpu_cudart.h"
#include "vgpu/include/vgpu_nvml.h"

#define NVML_OK(call) assert_int_equal(call, NVML_SUCCESS)

static inline nvmlDevice_t device_at(unsigned int index)
{
	nvmlDevice_t device;

	NVML_OK(nvmlDeviceGetHandleByIndex_v2(index, &device));
	return device;
}

static inline void busy(u64 ns)
{
	void *args[] = { &ns };

	CHECK(!cudaLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args,
				0, NULL));
}

static int ready[2], go[2];

static inline void say(const int fds[2])
{
	CHECK(write(fds[1], "x", 1) == 1);
}

static inline void hear(const int fds[2])
{
	char c;

	CHECK(read(fds[0], &c, 1) == 1);
}

/* Devices of their own for a child, which must not have used the others before. */
static inline void other_devices(const char *devices)
{
	char shm[256];

	snprintf(shm, sizeof(shm), "%s-%d.shm", harness_truth_dir(), getpid());
	setenv("VGPU_SHM", shm, 1);
	setenv("VGPU_DEVICES", devices, 1);
}
