/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Samples the GPUs once a second, in processes of their own: see helper.h. If a driver hangs, its
 * samples become stale, but zerneld continues and waits for nothing.
 */
#include <stdbool.h>
#include "collect/gpu.h"
#include "daemon/loop.h"
#include "daemon/starter.h"

/*
 * How long a snapshot waits for a sample of its own time. Long enough for the processes that sample
 * to get a CPU on a busy machine: a snapshot with an older sample widens the range of idle time.
 */
#define SAMPLER_REFRESH_NS (250 * NSEC_PER_MSEC)
/* A sample that is not older than this is not taken again. Snapshots are at least 100 ms apart. */
#define SAMPLER_RECENT_NS  (10 * NSEC_PER_MSEC)
/* Samples older than this are not used. */
#define SAMPLER_STALE_NS   (5 * NSEC_PER_SEC)

struct sampler;

/* What zerneld lost because a process that samples did not answer. */
struct sampler_counts {
	u64 nr_restarts;
	u64 nr_lost; /* samples */
};

/* Calls `on_sample` after each sample. */
int sampler_new(struct starter *starter, struct loop *loop, void (*on_sample)(void *ctx), void *ctx,
		struct sampler **ret);
struct sampler *sampler_free(struct sampler *sampler);

/* Asks for samples. Call it once a second. */
void sampler_tick(struct sampler *sampler, u64 now_ns);

/* Sets the processes that can use a GPU. */
void sampler_set_pids(struct sampler *sampler, const pid_t *pids, size_t nr);

/*
 * Returns whether the samples are as recent as they can be, so that the counters of the GPUs
 * describe the same time as a snapshot. If not, asks for samples; call it again after `on_sample`
 * or in the next tick. Waits for SAMPLER_REFRESH_NS at most, once for a process that does not
 * answer, and not at all for one whose samples are stale.
 */
bool sampler_prepare(struct sampler *sampler, u64 now_ns);

/*
 * Gets the latest samples. Of a source that is silent, only the identity of its GPUs is valid.
 * Returns false and leaves *ret unchanged if no source ever answered.
 */
bool sampler_read(struct sampler *sampler, u64 now_ns, struct gpu_samples *ret);

struct sampler_counts sampler_counts(const struct sampler *sampler);
