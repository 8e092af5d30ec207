/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Driver calls on modules, launches, host functions and graphs. */
#include <stdlib.h>
#include <string.h>

#include "vgpu/engine.h"
#include "vgpu/per_thread.h"

struct CUmod_st {
	u8 unused;
};

struct CUlib_st {
	u8 unused;
};

/* Each name has one handle of each kind, whichever module or library it comes from. */
static struct CUfunc_st *functions, *kernels;

static CUresult function_find(struct CUfunc_st **list, const char *name, struct CUfunc_st **ret)
{
	struct CUfunc_st *found;

	if (!*name)
		return CUDA_ERROR_NOT_FOUND;
	ENGINE_LOCKED();
	for (found = *list; found && strcmp(found->name, name) != 0;)
		found = found->next;
	if (!found) {
		found = calloc(1, sizeof(*found) + strlen(name) + 1);
		if (!found)
			return CUDA_ERROR_OUT_OF_MEMORY;
		found->busy = strncmp(name, "busy", strlen("busy")) == 0;
		strcpy(found->name, name);
		found->next = *list;
		*list = found;
	}
	*ret = found;
	return CUDA_SUCCESS;
}

CUresult CU(ModuleLoadData)(CUmodule *module, const void *image)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !module || !image)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*module = calloc(1, sizeof(**module));
	return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CU(ModuleGetFunction)(CUfunction *function, CUmodule module, const char *name)
{
	if (!function || !module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	return function_find(&functions, name, function);
}

CUresult CU(ModuleUnload)(CUmodule module)
{
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	free(module);
	return CUDA_SUCCESS;
}

CUresult CU(LibraryLoadData)(CUlibrary *library, const void *code, void *jit_options,
			     void **jit_values, unsigned int nr_jit, void *options, void **values,
			     unsigned int nr)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !library || !code)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*library = calloc(1, sizeof(**library));
	return *library ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver accepts a kernel of a library where it expects a function. */
CUresult CU(LibraryGetKernel)(CUkernel *kernel, CUlibrary library, const char *name)
{
	if (!kernel || !library || !name)
		return CUDA_ERROR_INVALID_VALUE;
	return function_find(&kernels, name, (struct CUfunc_st **)kernel);
}

CUresult CU(KernelGetFunction)(CUfunction *function, CUkernel kernel)
{
	if (!function || !kernel)
		return CUDA_ERROR_INVALID_VALUE;
	return function_find(&functions, ((struct CUfunc_st *)kernel)->name, function);
}

CUresult CU(LibraryUnload)(CUlibrary library)
{
	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	free(library);
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, u64 threads, CUstream stream, void **params)
{
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!threads || (function->busy && (!params || !params[0])))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_submit(stream, TRUTH_WORK_KERNEL,
			     function->busy ? *(const u64 *)params[0] : engine.kernel_ns);
}

STREAM_CALL(LaunchKernel,
	    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	     unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
	     CUstream stream, void **params, void **extra),
	    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, params,
	     extra))
{
	return launch(function, grid_x && grid_y && grid_z && block_x && block_y && block_z, stream,
		      params);
}

/* The grid of a cooperative launch must fit on the device at once, which is not checked. */
STREAM_CALL(LaunchCooperativeKernel,
	    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	     unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
	     CUstream stream, void **params),
	    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, params))
{
	return launch(function, grid_x && grid_y && grid_z && block_x && block_y && block_z, stream,
		      params);
}

static CUresult launch_config(const CUlaunchConfig *config, CUfunction function, void **params,
			      CUstream default_stream)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(function,
		      config->gridDimX && config->gridDimY && config->gridDimZ &&
			      config->blockDimX && config->blockDimY && config->blockDimZ,
		      config->hStream ?: default_stream, params);
}

CUresult CU(LaunchKernelEx)(const CUlaunchConfig *config, CUfunction function, void **params,
			    void **extra)
{
	return launch_config(config, function, params, NULL);
}

#ifndef VGPU_HIP
CUresult CU(LaunchKernelEx_ptsz)(const CUlaunchConfig *config, CUfunction function, void **params,
				 void **extra)
{
	return launch_config(config, function, params, CU_STREAM_PER_THREAD);
}
#endif

STREAM_CALL(LaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
	    (stream, function, data))
{
	return stream_call_host(stream, function, data);
}

CUresult CU(GraphInstantiateWithFlags)(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	if (!exec || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	return graph_instantiate(graph, exec);
}

STREAM_CALL(GraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))
{
	return exec ? stream_launch_graph(stream, exec) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CU(GraphExecDestroy)(CUgraphExec exec)
{
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	graph_exec_free(exec);
	return CUDA_SUCCESS;
}

CUresult CU(GraphDestroy)(CUgraph graph)
{
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	graph_unref(graph);
	return CUDA_SUCCESS;
}
