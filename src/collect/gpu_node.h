/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the samples of the drivers say about the identity of GPUs: input of gpu_identify(). */
#include "collect/gpu.h"

void gpu_node_of(const struct gpu_samples *samples, struct gpu_node *ret);

/*
 * Adds the places of a process. `since_ns`: it has existed since then, in CLOCK_MONOTONIC. An older
 * list is not used, because it can be about an ended process with the same pid.
 */
void gpu_places_of(const struct gpu_samples *samples, u32 pid, u64 since_ns,
		   struct gpu_facts *facts);
