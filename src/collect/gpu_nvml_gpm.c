/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_nvml_gpm.h"
#include "base/macros.h"
#include "base/time.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define NVML_SUCCESS	0
#define METRIC_SM_UTIL	2
#define METRICS_MAX	512 /* a library may expect space for all metrics, whatever `nr` is */
#define METRICS_VERSION 1
#define SUPPORT_VERSION 1

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
	return !state->is_absent;
}

/* Adds the mean over the time since the last sample, so that the sum has no gaps. */
static bool look(struct nvml_gpm *gpm, struct gpm_device *state, void *device)
{
	struct gpm_metrics *asked = &gpm->asked;
	const struct gpm_metric *answer = &asked->metrics[0];
	void *fresh = state->samples[1];
	double share;
	u64 now;

	if (gpm->call.get(device, fresh) != NVML_SUCCESS)
		return false;
	now = time_now_ns();
	asked->version = METRICS_VERSION;
	asked->nr = 1;
	asked->samples[0] = state->samples[0];
	asked->samples[1] = fresh;
	asked->metrics[0] = (struct gpm_metric){ .id = METRIC_SM_UTIL };
	if (gpm->call.metrics(asked) != NVML_SUCCESS || answer->result != NVML_SUCCESS ||
	    !(answer->value >= 0))
		return false;
	share = answer->value < 100 ? answer->value / 100 : 1;
	state->active_ns += (u64)((double)(now - state->sampled_ns) * share);
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
}

#ifdef __clang__
#pragma clang attribute pop
#endif
