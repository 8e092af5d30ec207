/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Calls that pass memory in unusual ways, with the signatures of the vendors. All succeed. */
#include <stddef.h>
#include <stdint.h>
#include "rows/decode.h"

int cudaHostRegister(void *pointer, size_t size, unsigned int flags)
{
	return 0;
}

int cudaHostUnregister(void *pointer)
{
	return 0;
}

int zeMemAllocShared(void *context, const void *device_desc, const void *host_desc, size_t size,
		     size_t alignment, void *device, void **pointer)
{
	*pointer = DECODE_POINTER;
	return 0;
}

int zeMemFree(void *context, void *pointer)
{
	return 0;
}

int hipMemCreate(void **handle, size_t size, const struct decode_properties *properties,
		 unsigned long long flags)
{
	*handle = DECODE_POINTER;
	return 0;
}

int hipMemMap(void *address, size_t size, size_t offset, void *handle, unsigned long long flags)
{
	return 0;
}

int hipMemUnmap(void *address, size_t size)
{
	return 0;
}

int hipMemRelease(void *handle)
{
	return 0;
}
