/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside the runtime only: what its two builds are called, and how calls begin and end. */
#include "vgpu/include/vgpu_cuda.h"

#ifdef VGPU_HIP
#include "vgpu/include/vgpu_hip.h"
#define RT(name)  hip##name
#define RT_PREFIX "hip"
#else
#include "vgpu/include/vgpu_cudart.h"
#define RT(name)  cuda##name
#define RT_PREFIX "cuda"
#endif

/* Gives the thread a context if it has none. */
CUresult rt_enter(void);
/* Every failed call is remembered for this thread until it is asked for. */
RT(Error_t) rt_result(CUresult r);
