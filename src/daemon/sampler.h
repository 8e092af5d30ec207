/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Asks the devices once a second, in a thread of its own: a driver that hangs makes what
 * is known of them old and holds up nobody.
 */
#include <stdbool.h>
#include "collect/gpu.h"

/* Older than this, what the devices said is nothing any more. */
#define SAMPLER_STALE_NS (5 * NSEC_PER_SEC)

struct sampler;

int sampler_new(const struct gpu_config *config, struct sampler **ret);
/* A thread that hangs is left behind. */
struct sampler *sampler_free(struct sampler *sampler);

/* Who may use a device, from now on. */
void sampler_set_pids(struct sampler *sampler, const pid_t *pids, size_t nr);

/*
 * What the devices said last; false when it is stale or there was nothing yet, and then
 * *ret is untouched.
 */
bool sampler_read(struct sampler *sampler, u64 now_ns, struct gpu_samples *ret);
