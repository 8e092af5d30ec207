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
#include "daemon/sampler.h"

struct devices;

/* Starts sampling. `on_sample` is called after each sample. */
int devices_new(struct starter *starter, struct loop *loop, void (*on_sample)(void *ctx), void *ctx,
		struct devices **ret);
struct devices *devices_free(struct devices *devices);
DEFINE_CLEANUP(struct devices, devices_free);

/* Call it once a second. `kernel` may be NULL. `last` contains the processes to sample. */
void devices_tick(struct devices *devices, struct kernel *kernel, const struct snapshot *last);

/* Whether a snapshot can be taken now. If not, the GPUs are sampled for it: sampler_prepare(). */
bool devices_prepare(struct devices *devices);

/*
 * Finds the GPUs of the processes, for the BPF programs and for a snapshot. `now_ns` and
 * `boottime_ns` are the same moment in CLOCK_MONOTONIC and in CLOCK_BOOTTIME.
 */
void devices_identify(struct devices *devices, struct kernel *kernel,
		      const struct kernel_snapshot *all, u64 now_ns, u64 boottime_ns);
/* How often the runtime of a process and the driver began to name different GPUs. */
u64 devices_nr_conflicts(const struct devices *devices);

/* Uses the latest samples, for a snapshot. */
void devices_update(struct devices *devices);

/* The latest samples. */
const struct gpu_samples *devices_samples(const struct devices *devices);

struct sampler_counts devices_counts(const struct devices *devices);

/* False while the driver does not answer. Then only the identity of the GPUs is valid. */
bool devices_answer(const struct devices *devices);
