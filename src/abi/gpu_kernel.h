/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of GPU kernels, by the handles that a process launches. Programs look a kernel up by
 * its name once, so its name is kept from then on.
 */
#include "abi/types.h"

#define GPU_KERNELS_MAX	 65536
/* With the final zero. Of a longer name, the beginning is kept. */
#define GPU_KERNEL_BYTES 128

/* Begins as struct process_key. */
struct gpu_kernel_key {
	u64 start_ns;
	u32 tgid;
	u32 pad;
	u64 handle;
};
_Static_assert(sizeof(struct gpu_kernel_key) == 24, "shared with BPF");

struct gpu_kernel {
	u32 is_cut;
	u32 pad;
	char name[GPU_KERNEL_BYTES];
};
_Static_assert(sizeof(struct gpu_kernel) == 8 + GPU_KERNEL_BYTES, "shared with BPF");
