/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reproducible random inputs: a small generator that prints its seed and reads it
 * from RANDOM_SEED. Uniform numbers almost never hit a threshold or an extreme
 * value, so the functions below produce such values on purpose.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/task.h"

struct random {
	u64 state;
};

/* A counter with a large odd increment, then two rounds of multiply and xor-shift. */
static inline u64 random_u64(struct random *r)
{
	u64 x = r->state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline u32 random_below(struct random *r, u32 n)
{
	return (u32)(((random_u64(r) >> 32) * n) >> 32);
}

/* Uniform in (0, 1]. */
static inline double random_unit(struct random *r)
{
	return (double)((random_u64(r) >> 11) + 1) * 0x1p-53;
}

/* The full range: each magnitude is equally likely, and so are 0 and the largest value. */
static inline u64 random_any(struct random *r)
{
	u32 width = random_below(r, 66);

	if (width == 0)
		return 0;
	if (width == 65)
		return ~0ULL;
	return random_u64(r) >> (64 - width);
}

/* The same for 32 bits. */
static inline u32 random_any32(struct random *r)
{
	u64 x = random_any(r);

	return x > ~0U ? ~0U : (u32)x;
}

/* Half of the values are at most 2 away from the threshold. The other half is arbitrary. */
static inline u64 random_near(struct random *r, u64 threshold)
{
	return random_u64(r) & 1 ? threshold + random_below(r, 5) - 2 : random_any(r);
}

static inline struct phase_config random_config(struct random *r)
{
	struct phase_config c = PHASE_CONFIG_DEFAULT;

	c.nccl_detection_enabled = (u8)(random_u64(r) & 1);
	c.phase_stability_count = random_below(r, 6);
	if (random_below(r, 4) > 0)
		return c;
	c.optimizer_burst_max_ns = random_any(r);
	c.io_wait_threshold = random_any32(r);
	c.gpu_idle_threshold = random_any32(r);
	c.gpu_active_threshold = random_any32(r);
	c.phase_stability_count = random_any32(r);
	c.nccl_detection_enabled = (u8)random_u64(r);
	return c;
}

static inline struct phase_signals random_signals(struct random *r, const struct phase_config *c)
{
	const u32 io_edges[] = { c->io_wait_threshold, c->io_wait_threshold / 2, 500, 0 };
	const u32 gpu_edges[] = { c->gpu_idle_threshold, c->gpu_active_threshold, 50, 100 };
	u32 edges = random_below(r, 16);

	return (struct phase_signals){
		.burst_ns = random_below(r, 3) ? random_near(r, c->optimizer_burst_max_ns) : 0,
		.last_sync_ns = random_below(r, 3) ? random_any(r) : 0,
		.gpu_utilization = (u32)random_near(r, gpu_edges[edges & 3]),
		.io_wait_permille = (u32)random_near(r, io_edges[edges >> 2]),
		.nr_futex_waits = random_below(r, 2) ? random_any32(r) : 0,
		.is_ml = random_below(r, 8) ? (u8)(random_u64(r) | 1) : 0,
		.collective_mapped = random_below(r, 2) ? (u8)random_u64(r) : 0,
	};
}

static inline struct task_state random_task(struct random *r, const struct phase_config *c)
{
	struct task_state t = {
		.signals = random_signals(r, c),
		.candidate = { .phase = random_below(r, PHASE_NR),
			       .count = (u32)random_near(r, c->phase_stability_count) },
		.phase_since_ns = random_any(r),
		.nr_transitions = random_any(r),
		.pid = random_any32(r),
		.phase = random_below(r, PHASE_NR),
	};

	/* An invalid stored phase must do no harm. */
	if (random_below(r, 16) == 0)
		t.phase = random_any32(r);
	for (u32 i = 0; i < PHASE_NR; i++)
		t.phase_ns[i] = random_any(r);
	return t;
}

/* The number of runs: the value of the variable, or the default of the caller. */
static inline u64 random_runs(const char *variable, u64 standard)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : standard;
}

/* Each test has its own generator, so that no test depends on the tests before it. */
static inline struct random random_start(void)
{
	struct random r = { random_runs("RANDOM_SEED", 20250101) };

	printf("# RANDOM_SEED=%" PRIu64 "\n", (uint64_t)r.state);
	return r;
}
