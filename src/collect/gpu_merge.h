/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Joins the samples of several sources. Two sources that report the same PCI address give one GPU.
 */
#include "collect/gpu.h"

/* A GPU that was seen once keeps its place in the table, which is its index. */
struct gpu_known {
	u32 source;
	u32 source_index;
	char address[GPU_ADDRESS_LEN]; /* empty when unknown */
};

/* Initialize it with zeros. */
struct gpu_merge {
	u32 nr_known;
	struct gpu_known known[GPU_MAX_DEVICES];
};

/*
 * Adds the samples of one source to those of the previous sources, of which none may be added
 * later. `to` begins with zeros.
 */
void gpu_merge_add(struct gpu_merge *merge, enum gpu_source source, const struct gpu_samples *from,
		   struct gpu_samples *to);
