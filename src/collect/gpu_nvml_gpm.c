/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_nvml_gpm.h"
#include "base/macros.h"
#include "base/time.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define NVML_SUCCESS	     0
#define METRIC_GRAPHICS_UTIL 1
#define METRIC_SM_UTIL	     2
#define METRICS_MAX	     512 /* a library may expect space for all metrics, whatever `nr` is */
#define METRICS_VERSION	     1
#define SUPPORT_VERSION	     1

struct gpm_metric {
	unsigned int id;
	int result;
	double value;
	char *names[3];
};

struct gpm_metrics {
	unsigned int version;
	unsigned int nr;
	void *samples[2];
	struct gpm_metric metrics[METRICS_MAX];
};

struct gpm_support {
	unsigned int version;
	unsigned int is_supported;
};

_Static_assert(sizeof(struct gpm_metric) == 40, "as documented");
_Static_assert(offsetof(struct gpm_metrics, metrics) == 24, "as documented");

struct gpm_device {
	bool is_known;
	bool is_absent;
	void *samples[2]; /* the newest one first */
	u64 sampled_ns;
	u64 active_ns;
	bool has_no_busy; /* it does not report for how long a kernel ran */
	struct gpu_busy_time busy;
};

struct gpm_calls {
	int (*query)(void *device, struct gpm_support *support);
	int (*alloc)(void **sample);
	int (*free)(void *sample);
	int (*get)(void *device, void *sample);
	int (*metrics)(struct gpm_metrics *metrics);
};

struct nvml_gpm {
	struct gpm_calls call;
	struct gpm_device devices[GPU_MAX_DEVICES];
	struct gpm_metrics asked;
};

/* As in gpu_nvml_api.c: the library has other type names for the same layouts. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("function"))), apply_to = function)
#endif

struct nvml_gpm *nvml_gpm_new(void *library)
{
	static const char *const names[] = { "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc",
					     "nvmlGpmSampleFree", "nvmlGpmSampleGet",
					     "nvmlGpmMetricsGet" };
	struct gpm_calls calls = {};
	struct nvml_gpm *gpm;
	void **const slots[] = { (void **)&calls.query, (void **)&calls.alloc, (void **)&calls.free,
				 (void **)&calls.get, (void **)&calls.metrics };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		*slots[i] = dlsym(library, names[i]);
		if (!*slots[i])
			return NULL;
	}
	gpm = calloc(1, sizeof(*gpm));
	if (gpm)
		gpm->call = calls;
	return gpm;
}

struct nvml_gpm *nvml_gpm_free(struct nvml_gpm *gpm)
{
	for (u32 i = 0; gpm && i < GPU_MAX_DEVICES; i++)
		for (u32 k = 0; k < 2; k++)
			if (gpm->devices[i].samples[k])
				gpm->call.free(gpm->devices[i].samples[k]);
	free(gpm);
	return NULL;
}

/* Takes the first sample, if the GPU supports it. */
static bool watch(struct nvml_gpm *gpm, struct gpm_device *state, void *device)
{
	struct gpm_support support = { .version = SUPPORT_VERSION };

	state->is_known = true;
	state->is_absent = gpm->call.query(device, &support) != NVML_SUCCESS ||
			   !support.is_supported ||
			   gpm->call.alloc(&state->samples[0]) != NVML_SUCCESS ||
			   gpm->call.alloc(&state->samples[1]) != NVML_SUCCESS ||
			   gpm->call.get(device, state->samples[0]) != NVML_SUCCESS;
	state->sampled_ns = time_now_ns();
	state->busy = (struct gpu_busy_time){
		.since_ns = state->sampled_ns,
		.at_ns = state->sampled_ns,
		.counter = GPU_COUNTER_GPM,
	};
	return !state->is_absent;
}

/* The part of a time for which a metric holds. False: the GPU did not report the metric. */
static bool part_of(const struct gpm_metric *answer, u64 ns, u64 *ret)
{
	if (answer->result != NVML_SUCCESS || !(answer->value >= 0))
		return false;
	*ret = answer->value < 100 ? (u64)((double)ns * answer->value / 100) : ns;
	return true;
}

static void add_busy(struct gpm_device *state, const struct gpm_metric *answer, u64 passed_ns)
{
	u64 part_ns;

	state->has_no_busy |= !part_of(answer, passed_ns, &part_ns);
	if (state->has_no_busy)
		return;
	state->busy.busy_ns += part_ns;
	state->busy.at_ns += passed_ns;
	state->busy.period_ns = passed_ns;
}

/* Adds the mean over the time since the last sample, so that the sum has no gaps. */
static bool look(struct nvml_gpm *gpm, struct gpm_device *state, void *device)
{
	struct gpm_metrics *asked = &gpm->asked;
	void *fresh = state->samples[1];
	u64 now, passed_ns, active_ns;

	if (gpm->call.get(device, fresh) != NVML_SUCCESS)
		return false;
	now = time_now_ns();
	asked->version = METRICS_VERSION;
	asked->nr = 2;
	asked->samples[0] = state->samples[0];
	asked->samples[1] = fresh;
	asked->metrics[0] = (struct gpm_metric){ .id = METRIC_SM_UTIL };
	asked->metrics[1] = (struct gpm_metric){ .id = METRIC_GRAPHICS_UTIL };
	passed_ns = now - state->sampled_ns;
	if (gpm->call.metrics(asked) != NVML_SUCCESS ||
	    !part_of(&asked->metrics[0], passed_ns, &active_ns))
		return false;
	add_busy(state, &asked->metrics[1], passed_ns);
	state->active_ns += active_ns;
	state->sampled_ns = now;
	state->samples[1] = state->samples[0];
	state->samples[0] = fresh;
	return true;
}

void nvml_gpm_measure(struct nvml_gpm *gpm, u32 gpu, void *device, struct gpu_sample *sample)
{
	struct gpm_device *state;

	if (!gpm || gpu >= GPU_MAX_DEVICES)
		return;
	state = &gpm->devices[gpu];
	if (state->is_absent)
		return;
	if (state->is_known ? !look(gpm, state, device) : !watch(gpm, state, device))
		return;
	sample->active_ns = state->active_ns;
	sample->active_at_ns = state->sampled_ns;
	sample->valid |= GPU_HAS_ACTIVE;
	if (state->has_no_busy)
		return;
	sample->busy = state->busy;
	sample->valid |= GPU_HAS_BUSY_TIME;
}

#ifdef __clang__
#pragma clang attribute pop
#endif
