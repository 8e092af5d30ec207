/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/devices.h"
#include <errno.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"

struct devices {
	struct sampler *sampler;
	struct gpu_samples samples;
	bool answer;
	bool asked; /* the driver has answered at least once */
};

int devices_new(struct starter *starter, struct loop *loop, void (*on_sample)(void *ctx), void *ctx,
		struct devices **ret)
{
	CLEANUP(devices_free_cleanup) struct devices *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->answer = true;
	err = sampler_new(starter, loop, on_sample, ctx, &d->sampler);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(d);
	return 0;
}

struct devices *devices_free(struct devices *d)
{
	if (!d)
		return NULL;
	sampler_free(d->sampler);
	free(d);
	return NULL;
}

/* Logs once when the driver stops answering and once when it answers again. */
void devices_update(struct devices *d)
{
	bool answer =
		sampler_read(d->sampler, time_now_ns(), &d->samples) && !d->samples.nr_stalled;

	if (answer == d->answer || (!answer && !d->asked)) {
		d->asked |= answer;
		return;
	}
	d->answer = answer;
	if (answer)
		log_event(LOG_LEVEL_INFO, "gpu-answers", "the GPU driver answers again");
	else
		log_event(LOG_LEVEL_WARNING, "gpu-silent",
			  "the GPU driver does not answer: snapshots omit utilization and memory "
			  "of GPUs until it answers");
}

/* For the scheduler. A GPU without a known node gets no preference. */
static void tell_nodes(const struct devices *d, struct kernel *kernel)
{
	for (u32 i = 0; i < d->samples.nr_devices; i++)
		if (d->samples.devices[i].valid & GPU_HAS_NUMA_NODE)
			kernel_set_gpu_node(kernel, d->samples.devices[i].index,
					    (u32)d->samples.devices[i].numa_node);
}

/* The phase detector in the BPF programs also uses the utilization. */
static void tell_utilization(const struct devices *d, struct kernel *kernel)
{
	for (u32 i = 0; i < d->samples.nr_devices; i++) {
		const struct gpu_sample *device = &d->samples.devices[i];

		if (d->answer && (device->valid & GPU_HAS_UTILISATION))
			kernel_set_gpu_utilization(kernel, device->index, device->utilisation);
		else
			kernel_forget_gpu_utilization(kernel, device->index);
	}
}

static void name_users(struct devices *d, const struct snapshot *last)
{
	pid_t pids[GPU_MAX_PROCESSES];
	u32 nr = 0;

	for (u32 i = 0; i < last->nr_processes && nr < GPU_MAX_PROCESSES; i++)
		pids[nr++] = (pid_t)last->processes[i].pid;
	sampler_set_pids(d->sampler, pids, nr);
}

void devices_tick(struct devices *d, struct kernel *kernel, const struct snapshot *last)
{
	devices_update(d);
	if (kernel) {
		tell_nodes(d, kernel);
		tell_utilization(d, kernel);
	}
	name_users(d, last);
	sampler_tick(d->sampler, time_now_ns());
}

bool devices_prepare(struct devices *d)
{
	return sampler_prepare(d->sampler, time_now_ns());
}

struct sampler_counts devices_counts(const struct devices *d)
{
	return sampler_counts(d->sampler);
}

const struct gpu_samples *devices_samples(const struct devices *d)
{
	return &d->samples;
}

bool devices_answer(const struct devices *d)
{
	return d->answer;
}
