/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DECODE_POINTER ((void *)0x7000)

/* The start of the properties of physical memory: type, handle types, and the device. */
struct decode_properties {
	int type, handle_types, location_type, location;
};

int cudaHostRegister(void *pointer, size_t size, unsigned int flags);
int cudaHostUnregister(void *pointer);
int zeMemAllocShared(void *context, const void *device_desc, const void *host_desc, size_t size,
		     size_t alignment, void *device, void **pointer);
int zeMemFree(void *context, void *pointer);
int hipMemCreate(void **handle, size_t size, const struct decode_properties *properties,
		 unsigned long long flags);
int hipMemMap(void *address, size_t size, size_t offset, void *handle, unsigned long long flags);
int hipMemUnmap(void *address, size_t size);
int hipMemRelease(void *handle);
