/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The runtime's launches and error names; see rt.c. */
#include <pthread.h>

#include "base/macros.h"
#include "vgpu/per_thread.h"

static struct {
	pthread_once_t once;
	CUresult state;
	CUfunction busy, other;
} kernels = { .once = PTHREAD_ONCE_INIT };

void vgpu_busy(u64 ns)
{
}

/* The runtime loads the program's device code before its first launch. */
static void kernels_load(void)
{
	CUmodule module;

	kernels.state = CU(ModuleLoadData)(&module, "") ?:
		CU(ModuleGetFunction)(&kernels.busy, module, "busy") ?:
		CU(ModuleGetFunction)(&kernels.other, module, "other") ?:
		CU(ModuleUnload)(module);
}

static CUresult kernel_find(const void *func, CUfunction *ret)
{
	if (!func)
		return (CUresult)RT(ErrorInvalidDeviceFunction);
	pthread_once(&kernels.once, kernels_load);
	*ret = func == (const void *)vgpu_busy ? kernels.busy : kernels.other;
	return kernels.state;
}

static CUresult dim_check(dim3 grid, dim3 block)
{
	return grid.x && grid.y && grid.z && block.x && block.y && block.z
		       ? CUDA_SUCCESS
		       : (CUresult)RT(ErrorInvalidConfiguration);
}

RUNTIME_CALL(LaunchKernel, _ptsz,
	     (const void *func, dim3 grid, dim3 block, void **args, size_t shared,
	      RT(Stream_t) stream),
	     (func, grid, block, args, shared, stream))
{
	CUfunction function;

	return rt_result(rt_enter() ?:
			 kernel_find(func, &function) ?:
			 dim_check(grid, block) ?:
			 DRIVER(LaunchKernel, _ptsz)(function, grid.x, grid.y, grid.z, block.x,
						     block.y, block.z, (unsigned int)shared, stream,
						     args, NULL));
}

RUNTIME_CALL(LaunchCooperativeKernel, _ptsz,
	     (const void *func, dim3 grid, dim3 block, void **args, size_t shared,
	      RT(Stream_t) stream),
	     (func, grid, block, args, shared, stream))
{
	CUfunction function;

	return rt_result(rt_enter() ?:
			 kernel_find(func, &function) ?:
			 dim_check(grid, block) ?:
			 DRIVER(LaunchCooperativeKernel,
				_ptsz)(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
				       (unsigned int)shared, stream, args));
}

RUNTIME_CALL(LaunchKernelExC, _ptsz,
	     (const RT(LaunchConfig_t) * config, const void *func, void **args),
	     (config, func, args))
{
	CUfunction function;
	CUlaunchConfig launch;

	if (!config)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	launch = (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned int)config->dynamicSmemBytes,
		.hStream = config->stream,
		.attrs = config->attrs,
		.numAttrs = config->numAttrs,
	};
	return rt_result(rt_enter() ?:
			 kernel_find(func, &function) ?:
			 dim_check(config->gridDim, config->blockDim) ?:
			 DRIVER(LaunchKernelEx, _ptsz)(&launch, function, args, NULL));
}

RUNTIME_CALL(LaunchHostFunc, _ptsz, (RT(Stream_t) stream, RT(HostFn_t) function, void *data),
	     (stream, function, data))
{
	return rt_result(rt_enter() ?: DRIVER(LaunchHostFunc, _ptsz)(stream, function, data));
}

/* The error texts come from the driver; the error names belong to the runtime. */
#define NAME(name) { RT(name), RT_PREFIX #name }
static const struct {
	RT(Error_t) error;
	const char *name;
} names[] = {
	NAME(Success),
	NAME(ErrorInvalidValue),
	NAME(ErrorMemoryAllocation),
	NAME(ErrorInitializationError),
	{ RT(ErrorDeinitialized), RT_DEINITIALIZED },
	NAME(ErrorInvalidConfiguration),
	NAME(ErrorInvalidMemcpyDirection),
	NAME(ErrorInvalidDeviceFunction),
	NAME(ErrorNoDevice),
	NAME(ErrorInvalidDevice),
	NAME(ErrorDeviceUninitialized),
	NAME(ErrorInvalidResourceHandle),
	NAME(ErrorIllegalState),
	NAME(ErrorNotReady),
	NAME(ErrorIllegalAddress),
	NAME(ErrorNotSupported),
	NAME(ErrorHostMemoryAlreadyRegistered),
	NAME(ErrorHostMemoryNotRegistered),
	NAME(ErrorStreamCaptureUnsupported),
	NAME(ErrorStreamCaptureMerge),
	NAME(ErrorStreamCaptureUnmatched),
	NAME(ErrorStreamCaptureUnjoined),
	NAME(ErrorStreamCaptureIsolation),
	NAME(ErrorCapturedEvent),
	NAME(ErrorUnknown),
};
#undef NAME

const char *RT(GetErrorName)(RT(Error_t) error)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].error == error)
			return names[i].name;
	return "unrecognized error code";
}

const char *RT(GetErrorString)(RT(Error_t) error)
{
	const char *text;

	switch ((int)error) {
	case RT(ErrorInvalidConfiguration): return "invalid configuration argument";
	case RT(ErrorInvalidMemcpyDirection): return "invalid copy direction for memcpy";
	case RT(ErrorInvalidDeviceFunction): return "invalid device function";
	}
	return CU(GetErrorString)((CUresult)error, &text) == CUDA_SUCCESS
		       ? text
		       : "unrecognized error code";
}
