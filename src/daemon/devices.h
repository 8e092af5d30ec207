/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The GPUs of the machine, between the parts that know something about them: what the
 * sampler read goes to the kernel side and into snapshots, and the sampler learns which
 * processes may use a device.
 */
#include <stdbool.h>
#include "base/macros.h"
#include "collect/gpu.h"
#include "collect/kernel.h"
#include "core/snapshot.h"

struct devices;

/* Starts to sample. */
int devices_new(const struct gpu_config *config, struct devices **ret);
struct devices *devices_free(struct devices *devices);
DEFINE_CLEANUP(struct devices, devices_free);

/* Call it once a second. `kernel` may be NULL; `last` has the processes to look at. */
void devices_tick(struct devices *devices, struct kernel *kernel, const struct snapshot *last);

/* As they were at the last tick. */
const struct gpu_samples *devices_samples(const struct devices *devices);

/* False while the driver is silent: only which devices there are still holds then. */
bool devices_answer(const struct devices *devices);
