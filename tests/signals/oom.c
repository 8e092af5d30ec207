/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls of PyTorch that report an out-of-memory error and the memory in use, and one that shows
 * that a process uses a GPU. */
#include "signals/oom.h"

static volatile u64 sum;

void report(s64 asked, u64 allocated, u64 reserved, struct oom_test_device device) __asm__(
	"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");

void report(s64 asked, u64 allocated, u64 reserved, struct oom_test_device device)
{
	sum += (u64)asked + allocated + reserved + (u64)device.type;
}

void oom_report_call(s64 asked, u64 allocated, u64 reserved, struct oom_test_device device)
{
	report(asked, allocated, reserved, device);
}

void use(const void *block, s64 size, u64 allocated, u64 reserved,
	 struct oom_test_device
		 device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

void use(const void *block, s64 size, u64 allocated, u64 reserved, struct oom_test_device device)
{
	sum += (u64)block + (u64)size + allocated + reserved + (u64)device.type;
}

void oom_use_call(s64 size, u64 allocated, u64 reserved, struct oom_test_device device)
{
	use((const void *)&sum, size, allocated, reserved, device);
}

int cudaSetDevice(int device)
{
	sum += (u64)device;
	return 0;
}
