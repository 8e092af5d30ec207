/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The CUDA runtime (libcudart.so.12), written from its public documentation.
 * rt_api.inc contains the calls; RT(Malloc) stands for cudaMalloc.
 */
#include <stddef.h>

#include "vgpu/include/vgpu.h"

#define RT(name) cuda##name
#include "vgpu/include/rt_api.inc"
#undef RT
