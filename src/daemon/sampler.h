/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Samples the GPUs once a second in a separate thread. If a driver hangs, the samples become
 * stale, but the rest of zerneld continues.
 */
#include <stdbool.h>
#include "collect/gpu.h"

/*
 * How long sampler_refresh() waits. Long enough for the threads that sample to get a CPU on a busy
 * machine: a snapshot with an older sample widens the range of idle time.
 */
#define SAMPLER_REFRESH_NS (250 * NSEC_PER_MSEC)
/* A sample that is not older than this is not taken again. Snapshots are at least 100 ms apart. */
#define SAMPLER_RECENT_NS  (10 * NSEC_PER_MSEC)
/* Samples older than this are not used. */
#define SAMPLER_STALE_NS   (5 * NSEC_PER_SEC)

struct sampler;

int sampler_new(const struct gpu_config *config, struct sampler **ret);
/* Abandons the thread if it hangs. */
struct sampler *sampler_free(struct sampler *sampler);

/* Sets the processes that can use a GPU. */
void sampler_set_pids(struct sampler *sampler, const pid_t *pids, size_t nr);

/*
 * Samples now, so that the counters of the GPUs describe the same time as a snapshot. Waits for
 * a driver that answers fast, once for one that does not answer, and not at all for one whose
 * samples are stale.
 */
void sampler_refresh(struct sampler *sampler);

/*
 * Gets the latest samples. Returns false and leaves *ret unchanged if they are stale or if no
 * sample exists yet.
 */
bool sampler_read(struct sampler *sampler, u64 now_ns, struct gpu_samples *ret);
