/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

/* As c10::Device, which C++ passes in a register too. */
struct oom_test_device {
	s8 type;
	s8 number;
};

#define OOM_TEST_CPU  ((struct oom_test_device){ 0, -1 })
#define OOM_TEST_CUDA 1

/* Called as PyTorch's allocator calls it. */
void oom_report_call(s64 asked, u64 allocated, u64 reserved, struct oom_test_device device);
/* The same: at an allocation of this size, or a release if it is negative. */
void oom_use_call(s64 size, u64 allocated, u64 reserved, struct oom_test_device device);
int cudaSetDevice(int device);
