/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Internal to the runtime: the names of its two builds, and the begin and end of calls. */
#include "vgpu/include/vgpu_cuda.h"

#ifdef VGPU_HIP
#include "vgpu/include/vgpu_hip.h"
#define RT(name)	 hip##name
#define RT_PREFIX	 "hip"
#define RT_DEINITIALIZED "hipErrorDeinitialized"
#else
#include "vgpu/include/vgpu_cudart.h"
#define RT(name)	 cuda##name
#define RT_PREFIX	 "cuda"
#define RT_DEINITIALIZED "cudaErrorCudartUnloading"
#endif

/* Creates a context for the thread if it has none. */
CUresult rt_enter(void);
/* Stores the error of a failed call for this thread until the program reads it. */
RT(Error_t) rt_result(CUresult r);
