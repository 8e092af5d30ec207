/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Connects the GPU sampler with the other parts: passes its samples to the BPF programs and to
 * snapshots, and passes the processes that can use a GPU to the sampler.
 */
#include <stdbool.h>
#include "base/macros.h"
#include "collect/gpu.h"
#include "collect/kernel.h"
#include "core/snapshot.h"

struct devices;

/* Starts sampling. */
int devices_new(const struct gpu_config *config, struct devices **ret);
struct devices *devices_free(struct devices *devices);
DEFINE_CLEANUP(struct devices, devices_free);

/* Call it once a second. `kernel` may be NULL. `last` contains the processes to sample. */
void devices_tick(struct devices *devices, struct kernel *kernel, const struct snapshot *last);

/* Samples the GPUs again, for a snapshot. */
void devices_refresh(struct devices *devices);

/* The latest samples. */
const struct gpu_samples *devices_samples(const struct devices *devices);

/* False while the driver does not answer. Then only the identity of the GPUs is valid. */
bool devices_answer(const struct devices *devices);
