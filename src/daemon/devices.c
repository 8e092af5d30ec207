/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/devices.h"
#include <errno.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "collect/gpu_node.h"

struct devices {
	struct sampler *sampler;
	struct gpu_samples samples;
	bool answer;
	bool asked; /* the driver has answered at least once */
	u64 nr_conflicts;
	struct gpu_node node;
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

/* A conflict is counted when it begins. */
static u64 new_conflicts(const struct gpu_numbers *before, const struct gpu_numbers *now)
{
	u64 nr = 0;

	for (u32 i = 0; i < GPU_MAX; i++)
		nr += now->basis[i] == GPU_BASIS_CONFLICT && before->basis[i] != GPU_BASIS_CONFLICT;
	return nr;
}

void devices_identify(struct devices *d, struct kernel *kernel, const struct kernel_snapshot *all,
		      u64 now_ns, u64 boottime_ns)
{
	gpu_node_of(&d->samples, &d->node);
	for (u32 i = 0; i < all->nr_processes; i++) {
		const struct process_state *process = &all->processes[i];
		u64 age_ns = boottime_ns - process->start_ns;
		struct gpu_numbers before = {}, numbers;
		struct gpu_facts facts;

		if (!process->task.has_gpu || kernel_read_gpu_facts(kernel, process, &facts) < 0)
			continue;
		gpu_places_of(&d->samples, process->task.pid, now_ns > age_ns ? now_ns - age_ns : 0,
			      &facts);
		gpu_identify(&d->node, &facts, &numbers);
		(void)kernel_gpu_numbers(kernel, process, &before);
		d->nr_conflicts += new_conflicts(&before, &numbers);
		kernel_set_gpu_numbers(kernel, process, &numbers);
	}
}

u64 devices_nr_conflicts(const struct devices *d)
{
	return d->nr_conflicts;
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
