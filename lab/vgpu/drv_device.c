/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Driver calls on devices, contexts and errors. */
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "vgpu/engine.h"
#include "vgpu/identity.h"

CUresult CU(Init)(unsigned int flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : engine_init();
}

CUresult CU(DriverGetVersion)(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = IDENTITY_VERSION;
	return CUDA_SUCCESS;
}

static const struct {
	CUresult error;
	const char *name;
	const char *text;
} errors[] = {
	{ CUDA_SUCCESS, "CUDA_SUCCESS", "no error" },
	{ CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down" },
	{ CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
	  "the operation cannot be performed in the present state" },
	{ CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
	  "an illegal memory access was encountered" },
	{ CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
	{ CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	  "operation not permitted when stream is capturing" },
	{ CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
	  "operation would result in a merge of separate capture sequences" },
	{ CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
	  "capture was not ended in the same stream as it began" },
	{ CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
	  "capturing stream has unjoined work" },
	{ CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
	  "dependency created on uncaptured work in another stream" },
	{ CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
	  "operation not permitted on an event last recorded in a capturing stream" },
	{ CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
	  "part or all of the requested memory range is already mapped" },
	{ CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
	  "pointer does not correspond to a registered memory region" },
	{ CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

#define NR_ERRORS ARRAY_SIZE(errors)

CUresult CU(GetErrorString)(CUresult error, const char **ret)
{
	for (size_t i = 0; ret && i < NR_ERRORS; i++)
		if (errors[i].error == error) {
			*ret = errors[i].text;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult CU(GetErrorName)(CUresult error, const char **ret)
{
	for (size_t i = 0; ret && i < NR_ERRORS; i++)
		if (errors[i].error == error) {
			*ret = errors[i].name;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult CU(DeviceGet)(CUdevice *device, int ordinal)
{
	CUresult r = device_check(ordinal);

	if (r != CUDA_SUCCESS || !device)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult CU(DeviceGetCount)(int *count)
{
	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (int)engine.nr_visible;
	return CUDA_SUCCESS;
}

CUresult CU(DeviceGetName)(char *name, int length, CUdevice device)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS || !name || length <= 0)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)length, "%s", IDENTITY_NAME);
	return CUDA_SUCCESS;
}

CUresult CU(DeviceTotalMem_v2)(size_t *bytes, CUdevice device)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS || !bytes)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*bytes = engine.shm->config.memory_bytes;
	return CUDA_SUCCESS;
}

static const struct {
	int attribute;
	int value;
} attributes[] = {
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
	{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
	{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000 },
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 108 },
	{ CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, IDENTITY_PCI_DEVICE },
	{ CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0 },
	{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
	{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
};

CUresult CU(DeviceGetAttribute)(int *value, int attribute, CUdevice device)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS || !value)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
		*value = (int)IDENTITY_PCI_BUS(engine.visible[device]);
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		if (attributes[i].attribute == attribute) {
			*value = attributes[i].value;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult CU(DeviceGetPCIBusId)(char *id, int length, CUdevice device)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS || !id || length < 13)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	snprintf(id, (size_t)length, "0000:%02X:00.0", IDENTITY_PCI_BUS(engine.visible[device]));
	return CUDA_SUCCESS;
}

static CUresult uuid_get(CUuuid *uuid, CUdevice device, u32 slice)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS || !uuid)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	identity_uuid(engine.visible[device], slice, (u8 *)uuid->bytes);
	return CUDA_SUCCESS;
}

CUresult CU(DeviceGetUuid)(CUuuid *uuid, CUdevice device)
{
	return uuid_get(uuid, device, 0);
}

/* The two forms differ only for a part of a device (MIG): this one names the part. */
CUresult CU(DeviceGetUuid_v2)(CUuuid *uuid, CUdevice device)
{
	return uuid_get(uuid, device, engine.slice);
}

CUresult CU(CtxCreate_v2)(CUcontext *ctx, unsigned int flags, CUdevice device)
{
	CUresult r;

	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	r = ctx_new(device, flags, ctx);
	return r == CUDA_SUCCESS ? ctx_push(*ctx) : r;
}

CUresult CU(CtxDestroy_v2)(CUcontext ctx)
{
	CUcontext popped;
	CUresult r;

	if (ctx && ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = ctx_release(ctx, false);
	if (r == CUDA_SUCCESS && ctx_peek() == ctx)
		ctx_pop(&popped);
	return r;
}

CUresult CU(CtxSetCurrent)(CUcontext ctx)
{
	return ctx_set(ctx);
}

CUresult CU(CtxGetCurrent)(CUcontext *ctx)
{
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	*ctx = ctx_peek();
	return CUDA_SUCCESS;
}

CUresult CU(CtxGetDevice)(CUdevice *device)
{
	CUcontext ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !device)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*device = ctx->ordinal;
	return CUDA_SUCCESS;
}

CUresult CU(CtxGetFlags)(unsigned int *flags)
{
	CUcontext ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !flags)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*flags = ctx->flags;
	return CUDA_SUCCESS;
}

CUresult CU(CtxPushCurrent_v2)(CUcontext ctx)
{
	return ctx_push(ctx);
}

CUresult CU(CtxPopCurrent_v2)(CUcontext *ctx)
{
	CUcontext popped;
	CUresult r = ctx_pop(&popped);

	if (r == CUDA_SUCCESS && ctx)
		*ctx = popped;
	return r;
}

CUresult CU(CtxSynchronize)(void)
{
	CUcontext ctx;
	CUresult r = ctx_current(&ctx);

	return r == CUDA_SUCCESS ? ctx_sync(ctx) : r;
}

CUresult CU(DevicePrimaryCtxRetain)(CUcontext *ctx, CUdevice device)
{
	return ctx ? ctx_retain(device, ctx) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CU(DevicePrimaryCtxRelease_v2)(CUdevice device)
{
	CUresult r = device_check(device);

	return r == CUDA_SUCCESS ? ctx_release(&engine.primary[device], false) : r;
}

CUresult CU(DevicePrimaryCtxReset_v2)(CUdevice device)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS || !engine.primary[device].object.live)
		return r;
	return ctx_release(&engine.primary[device], true);
}

CUresult CU(DevicePrimaryCtxSetFlags_v2)(CUdevice device, unsigned int flags)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS)
		return r;
	engine.primary[device].flags = flags;
	return CUDA_SUCCESS;
}

CUresult CU(DevicePrimaryCtxGetState)(CUdevice device, unsigned int *flags, int *active)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS || !flags || !active)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*flags = engine.primary[device].flags;
	*active = engine.primary[device].object.live;
	return CUDA_SUCCESS;
}
