/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_nvml_util.h"
#include "base/macros.h"
#include "base/time.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

#define NVML_SUCCESS		0
#define NVML_NOT_FOUND		6 /* no new sample */
#define GPU_UTILIZATION_SAMPLES 1
#define VALUE_TYPE_UNSIGNED_INT 1
#define MAX_SAMPLES		256
/* A longer distance of two samples means that samples between them were lost. */
#define PERIOD_MAX_NS		(3 * NSEC_PER_SEC / 2)
/* A sample that is older than this does not describe the GPU any more. */
#define SAMPLE_STALE_NS		(3 * NSEC_PER_SEC)

struct nvml_util_sample {
	unsigned long long time_us;
	union {
		double d;
		unsigned int ui;
		unsigned long long ull;
	} value;
};

_Static_assert(sizeof(struct nvml_util_sample) == 16, "as documented");

struct util_device {
	u64 seen_us; /* 0: no sample yet */
	struct gpu_busy_time busy;
};

struct nvml_util {
	int (*get)(void *device, unsigned int type, unsigned long long since_us,
		   unsigned int *value_type, unsigned int *count, struct nvml_util_sample *samples);
	struct util_device devices[GPU_MAX_DEVICES];
	struct nvml_util_sample samples[MAX_SAMPLES];
};

/* As in gpu_nvml_api.c: the library has other type names for the same layouts. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("function"))), apply_to = function)
#endif

struct nvml_util *nvml_util_new(void *library)
{
	void *get = dlsym(library, "nvmlDeviceGetSamples");
	struct nvml_util *util = get ? calloc(1, sizeof(*util)) : NULL;

	if (util)
		*(void **)&util->get = get;
	return util;
}

struct nvml_util *nvml_util_free(struct nvml_util *util)
{
	free(util);
	return NULL;
}

/*
 * The time of a sample in CLOCK_MONOTONIC. Drivers use the wall clock. If this is another clock,
 * the newest sample ended at most one period ago, and later samples are placed by their
 * distance to it.
 */
static u64 place(u64 time_us, u64 now_ns)
{
	u64 wall_ns = time_of_ns(CLOCK_REALTIME), time_ns = time_us * NSEC_PER_USEC;

	if (time_ns <= wall_ns && wall_ns - time_ns < PERIOD_MAX_NS && wall_ns - time_ns < now_ns)
		return now_ns - (wall_ns - time_ns);
	return now_ns;
}

static void start_again(struct util_device *state, u64 time_us, u64 now_ns)
{
	u64 at_ns = place(time_us, now_ns);

	*state = (struct util_device){
		.seen_us = time_us,
		.busy = { .since_ns = at_ns, .at_ns = at_ns, .counter = GPU_COUNTER_UTILIZATION },
	};
}

static void add(struct util_device *state, const struct nvml_util_sample *sample, u64 now_ns)
{
	u64 period_ns;

	if (sample->time_us <= state->seen_us || sample->value.ui > 100)
		return;
	period_ns = (sample->time_us - state->seen_us) * NSEC_PER_USEC;
	if (!state->seen_us || sample->time_us - state->seen_us > PERIOD_MAX_NS / NSEC_PER_USEC) {
		start_again(state, sample->time_us, now_ns);
		return;
	}
	state->seen_us = sample->time_us;
	state->busy.busy_ns += period_ns / 100 * sample->value.ui;
	state->busy.at_ns += period_ns;
	state->busy.period_ns = period_ns;
}

/* False: the GPU has no such samples, or the answer is invalid. */
static bool look(struct nvml_util *util, struct util_device *state, void *device, u64 now_ns)
{
	unsigned int count = MAX_SAMPLES, type = 0;
	int r = util->get(device, GPU_UTILIZATION_SAMPLES, state->seen_us, &type, &count,
			  util->samples);

	if (r == NVML_NOT_FOUND)
		return true;
	if (r != NVML_SUCCESS || type != VALUE_TYPE_UNSIGNED_INT || count > MAX_SAMPLES)
		return false;
	/* The first time, the driver gives all samples that it kept. The sum starts with the last.
	 */
	for (u32 i = state->seen_us || !count ? 0 : count - 1; i < count; i++)
		add(state, &util->samples[i], now_ns);
	return true;
}

void nvml_util_measure(struct nvml_util *util, u32 gpu, void *device, struct gpu_sample *sample)
{
	struct util_device *state;
	u64 now_ns = time_now_ns();

	if (!util || gpu >= GPU_MAX_DEVICES || sample->valid & GPU_HAS_BUSY_TIME)
		return;
	state = &util->devices[gpu];
	if (!look(util, state, device, now_ns) ||
	    (state->seen_us && now_ns > state->busy.at_ns + SAMPLE_STALE_NS))
		*state = (struct util_device){};
	/* A clock that was set can place samples in the future: then the sum starts again. */
	if (state->busy.at_ns > now_ns + PERIOD_MAX_NS)
		*state = (struct util_device){};
	if (!state->seen_us)
		return;
	sample->busy = state->busy;
	sample->valid |= GPU_HAS_BUSY_TIME;
}

#ifdef __clang__
#pragma clang attribute pop
#endif
