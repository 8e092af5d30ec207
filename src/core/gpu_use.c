/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/gpu_use.h"

/* The error of a counter, per mille of the time that it covers. */
static const u32 error_permille[GPU_COUNTER_NR] = {
	[GPU_COUNTER_UTILIZATION] = 10, /* it counts whole percent */
	[GPU_COUNTER_GPM] = 2,
	[GPU_COUNTER_ENGINE] = 2,
};

static const struct snapshot_gpu *find_gpu(const struct snapshot *s, u32 number)
{
	for (u32 i = 0; i < s->nr_gpus; i++)
		if (s->gpus[i].gpu == number)
			return &s->gpus[i];
	return NULL;
}

/* A process whose GPU is unknown may use any GPU. */
static bool may_use_gpu(const struct snapshot_process *process, u32 number)
{
	for (u32 i = 0; i < process->nr_memory; i++)
		if (process->memory[i].gpu == number ||
		    process->memory[i].gpu == SNAPSHOT_GPU_UNKNOWN)
			return true;
	return false;
}

static bool has_gpu_alone(const struct snapshot *s, const struct snapshot_process *process)
{
	u32 nr = 0;

	if (process->nr_memory != 1 || process->memory[0].gpu == SNAPSHOT_GPU_UNKNOWN)
		return false;
	for (u32 i = 0; i < s->nr_processes; i++)
		nr += may_use_gpu(&s->processes[i], process->memory[0].gpu);
	return nr == 1;
}

struct gpu_use gpu_use_of(const struct snapshot *s, const struct snapshot_process *process)
{
	const struct snapshot_gpu *gpu =
		has_gpu_alone(s, process) ? find_gpu(s, process->memory[0].gpu) : NULL;

	if (!gpu || !(gpu->valid & SNAPSHOT_GPU_BUSY_TIME) || gpu->busy_counter >= GPU_COUNTER_NR)
		return (struct gpu_use){};
	return (struct gpu_use){
		.counter = gpu->busy_counter,
		.gpu = gpu->gpu,
		.busy_ns = gpu->busy_ns,
		.since_ns = gpu->busy_since_ns,
		.at_ns = gpu->busy_at_ns,
		.taken_ns = s->monotonic_ns,
	};
}

/*
 * The counter is known up to a time that is not the time of the snapshot. Whether the GPU worked
 * in between is not known.
 */
bool gpu_use_between(const struct gpu_use *then, const struct gpu_use *now,
		     struct gpu_use_bounds *ret)
{
	u64 busy_ns = now->busy_ns - then->busy_ns, covered_ns = now->at_ns - then->at_ns;
	u64 less_ns, more_ns;

	if (now->counter == GPU_COUNTER_NONE || then->counter != now->counter ||
	    then->gpu != now->gpu || then->since_ns != now->since_ns ||
	    now->busy_ns < then->busy_ns || now->at_ns <= then->at_ns || busy_ns > covered_ns)
		return false;
	less_ns = more_ns = covered_ns / 1000 * error_permille[now->counter];
	if (then->taken_ns > then->at_ns)
		less_ns += then->taken_ns - then->at_ns;
	else
		more_ns += then->at_ns - then->taken_ns;
	if (now->taken_ns > now->at_ns)
		more_ns += now->taken_ns - now->at_ns;
	else
		less_ns += now->at_ns - now->taken_ns;
	*ret = (struct gpu_use_bounds){
		.min_ns = busy_ns > less_ns ? busy_ns - less_ns : 0,
		.max_ns = busy_ns + more_ns,
	};
	return true;
}

static bool counts_busy_time(const struct snapshot_gpu *then, const struct snapshot_gpu *now)
{
	return then->valid & now->valid & SNAPSHOT_GPU_BUSY_TIME &&
	       now->busy_counter == GPU_COUNTER_GPM && then->busy_counter == GPU_COUNTER_GPM &&
	       now->busy_since_ns == then->busy_since_ns && now->busy_ns >= then->busy_ns;
}

bool gpu_active_between(const struct snapshot *before, const struct snapshot *after,
			const struct snapshot_process *process, struct gpu_activity *ret)
{
	const struct snapshot_gpu *then, *now;
	double scale;

	if (!has_gpu_alone(after, process))
		return false;
	then = find_gpu(before, process->memory[0].gpu);
	now = find_gpu(after, process->memory[0].gpu);
	if (!then || !now || !(then->valid & now->valid & SNAPSHOT_GPU_ACTIVE) ||
	    now->active_ns < then->active_ns || now->active_at_ns <= then->active_at_ns)
		return false;
	scale = (double)(after->monotonic_ns - before->monotonic_ns) /
		(double)(now->active_at_ns - then->active_at_ns);
	*ret = (struct gpu_activity){
		.active_ns = (u64)((double)(now->active_ns - then->active_ns) * scale),
		.busy_ns = counts_busy_time(then, now)
				   ? (u64)((double)(now->busy_ns - then->busy_ns) * scale)
				   : 0,
	};
	return true;
}
