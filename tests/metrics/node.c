/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "metrics/node.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FIRST_PID  1000
#define NO_NAME	   4000000001U /* a user without a name on every machine */
#define NR_LOADERS 2
#define NR_SAMPLES 1000
#define PER_SECOND 10

const struct metrics_config node_config = { .series_max = METRICS_SERIES_MAX };

/* The phases of a rank without problems. */
static const u32 phase_permille[PHASE_NR] = {
	[PHASE_DATA_LOADING] = 50, [PHASE_GPU_COMPUTE] = 700, [PHASE_COLLECTIVE] = 150,
	[PHASE_OPTIMIZER] = 70,	   [PHASE_UNKNOWN] = 30,
};

static void set(char *to, size_t size, const char *text)
{
	snapshot_set_text(to, size, text, strlen(text));
}

/*
 * Records values over several powers of two around `middle`. The values are the same in
 * every run. Their number grows with the age.
 */
static void fill(struct hist *hist, u64 middle, u32 age_s)
{
	for (u32 i = 0; i < NR_SAMPLES + age_s * PER_SECOND; i++)
		hist_record(hist, middle / 4 + middle * (i * 7919U % NR_SAMPLES) / NR_SAMPLES * 4);
}

/* In the order of their kinds, which is the order of the reader. */
static void fill_hists(struct snapshot *s, struct snapshot_process *process,
		       const struct node *node)
{
	struct snapshot_hists *hists = &process->hists;
	u32 age_s = node->age_s;

	fill(snapshot_add_hist(s, hists, HIST_SYNC_WAIT), 30 * NSEC_PER_MSEC, age_s);
	fill(snapshot_add_hist(s, hists, HIST_LOADER_WAIT), 2 * NSEC_PER_MSEC, age_s);
	fill(snapshot_add_hist(s, hists, HIST_RUNQUEUE_WAIT), 50 * NSEC_PER_USEC, age_s);
	fill(snapshot_add_hist(s, hists, HIST_LAUNCH), 8 * NSEC_PER_USEC, age_s);
	fill(snapshot_add_hist(s, hists, HIST_STEP), 50 * NSEC_PER_MSEC, age_s);
	if (node->nr_operations)
		fill(snapshot_add_hist(s, hists, HIST_RANK_WAIT), 5 * NSEC_PER_MSEC, age_s);
	for (u32 i = 0; i < node->nr_operations; i++)
		fill(snapshot_add_hist(s, hists, HIST_COLLECTIVE + i), (i + 1) * NSEC_PER_MSEC,
		     age_s);
}

static void fill_collectives(struct snapshot_collectives *collectives, const struct node *node)
{
	for (u32 i = 0; i < node->nr_operations; i++) {
		collectives->nr[i] = NR_SAMPLES + node->age_s * PER_SECOND;
		collectives->bytes[i] = collectives->nr[i] << 20;
	}
}

static u32 nr_gpus(const struct node *node)
{
	return node->nr_gpus ? node->nr_gpus : node->nr_ranks;
}

/* All ranks have the same values; recording them again would take most of the time. */
static void copy_hists(struct snapshot *s, struct snapshot_hists *to,
		       const struct snapshot_hists *from)
{
	for (u32 kind = 0; kind < HIST_KIND_NR; kind++) {
		const struct hist *hist = snapshot_hist(s, from, kind);

		if (hist)
			*snapshot_add_hist(s, to, kind) = *hist;
	}
}

static u32 add_job(struct snapshot *s, const struct node *node)
{
	u32 number = 42 + node->number / NODE_JOB_NODES;
	char cgroup[SNAPSHOT_TEXT_LEN], name[SNAPSHOT_TEXT_LEN];
	u32 job;

	snprintf(cgroup, sizeof(cgroup), "/slurm/job_%u/step_0", number);
	snprintf(name, sizeof(name), "slurm-%u", number);
	job = snapshot_add_job(s, cgroup, name);
	s->jobs[job - 1].uid = NO_NAME;
	s->jobs[job - 1].started_ms = 1700000000000;
	s->jobs[job - 1].peak_bytes = 40ULL << 30;
	set(s->jobs[job - 1].names.claimed_name, JOB_CLAIM_LEN, "train");
	set(s->jobs[job - 1].names.claimed_account, JOB_CLAIM_LEN, "phys");
	return job;
}

/* A rank whose GPU works 85 % of the time. */
static void fill_account(struct snapshot_process *process, const struct node *node)
{
	u32 nr_causes = node->nr_causes ? node->nr_causes : NODE_CAUSES, age_s = node->age_s + 1;

	process->nr_steps = 20 * age_s;
	process->busy_ns = age_s * 850 * NSEC_PER_MSEC;
	process->open_ns[IDLE_CPU] = age_s * 50 * NSEC_PER_MSEC;
	for (u32 i = 0; i < nr_causes; i++)
		process->idle_ns[i] = age_s * (i + 1) * NSEC_PER_MSEC;
	process->step_basis = STEP_BASIS_OPTIMIZER;
	process->counted = (struct snapshot_account){
		.nr_steps = process->nr_steps,
		.busy_ns = process->busy_ns,
		.open_ns = process->open_ns[IDLE_CPU],
	};
	memcpy(process->counted.idle_ns, process->idle_ns, sizeof(process->idle_ns));
}

/* All ranks entered the same collectives; the last one was just now. */
static void add_comm(struct snapshot *s, const struct node *node,
		     const struct snapshot_process *process)
{
	struct snapshot_comm *comm = snapshot_add_comm(s, process->pid);

	comm->rank = (u32)process->rank;
	comm->nr_ranks = process->nr_ranks;
	comm->is_world = 1;
	comm->made_ns = 123456000000000;
	comm->nr = 20 * (node->age_s + 1);
	comm->nr_calls = 2;
	set(comm->identity, sizeof(comm->identity), "00c0ffee00c0ffee");
	for (u32 i = 0; i < comm->nr_calls; i++)
		comm->calls[i] = (struct snapshot_call){
			.entered_ns = s->monotonic_ns - (i + 1) * 50 * NSEC_PER_MSEC,
			.returned_ns = i ? s->monotonic_ns - 90 * NSEC_PER_MSEC : 0,
			.bytes = 25 << 20,
		};
}

static void add_rank(struct snapshot *s, const struct node *node, u32 rank)
{
	struct snapshot_process *process = snapshot_add_process(s, FIRST_PID + rank);

	process->job = add_job(s, node);
	process->start_ns = NSEC_PER_SEC + rank;
	process->uid = NO_NAME;
	process->nr_ranks = node->nr_ranks;
	process->rank = (s32)(node->number % NODE_JOB_NODES * node->nr_ranks + rank);
	process->phase = rank % PHASE_NR;
	process->launcher_tid = process->pid;
	process->launcher_doing = THREAD_SLEEPING;
	process->launcher_call_since_ns = s->monotonic_ns - 40 * NSEC_PER_MSEC;
	set(process->launcher_call, sizeof(process->launcher_call), "cudaStreamSynchronize");
	if (node->nr_operations)
		add_comm(s, node, process);
	snapshot_set_transitions(s, process, 4000 + rank + PHASE_NR * node->age_s);
	for (u32 i = 0; i < PHASE_NR; i++)
		process->phase_ns[i] = (i + 1) * NSEC_PER_SEC + rank +
				       node->age_s * phase_permille[i] * NSEC_PER_MSEC;
	process->task = (struct snapshot_task){
		.known = 1,
		.is_ml = 1,
		.gpu_utilization = 90 + rank,
		.io_wait_permille = 125 * rank,
		.collective_mapped = node->nr_operations > 0,
		.nr_futex_waits = 3 + rank,
		.gpu = rank,
		.gpu_instance = SNAPSHOT_GPU_UNKNOWN,
		.compute_instance = SNAPSHOT_GPU_UNKNOWN,
		.gpu_basis = GPU_BASIS_RUNTIME,
		.last_sync_ns = 123456789000000 + node->age_s * NSEC_PER_SEC,
		.burst_ns = 1500 * NSEC_PER_USEC,
		.phase_since_ns = 123456789000100 + node->age_s * NSEC_PER_SEC,
	};
	set(process->comm, sizeof(process->comm), "python3");
	fill_account(process, node);
	process->stepped_ns = s->monotonic_ns;
	process->nr_culprits = 1;
	process->culprits[0] = (struct snapshot_culprit){ IDLE_RUNQUEUE, 0, NSEC_PER_MSEC, "cc1" };
	process->nr_memory = 1;
	process->memory[0] = (struct snapshot_memory){
		.gpu = rank % nr_gpus(node),
		.book = { .current_bytes = 30ULL << 30,
			  .peak_bytes = 40ULL << 30,
			  .nr_allocs = 300,
			  .nr_frees = 100 },
	};
	if (rank == 1)
		process->oom = (struct snapshot_oom){
			.nr = 2,
			.time_ns = 123456789000000,
			.time_ms = 1700000000000,
			.asked_bytes = 2ULL << 30,
			.allocated_bytes = 27ULL << 30,
			.reserved_bytes = 30ULL << 30,
			.gpu = 1,
			.tid = process->pid,
			.others_ns = 123456789012345,
			.others_bytes = 8ULL << 30,
			.nr_holders = 1,
			.nr_others = 1,
			.others = { { .pid = 4711,
				      .uid = 1000,
				      .bytes = 8ULL << 30,
				      .comm = "jupyter" } },
		};
	fill_collectives(&process->collectives, node);
	if (rank == 0)
		fill_hists(s, process, node);
	else
		copy_hists(s, &process->hists, &s->processes[0].hists);
	set(snapshot_add_thread(s, process->pid, ROLE_LAUNCHER)->comm, SNAPSHOT_COMM_LEN,
	    "python3");
	s->threads[s->nr_threads - 1].pid = process->pid;
	for (u32 i = 0; i < NR_LOADERS; i++) {
		struct snapshot_process *loader =
			snapshot_add_process(s, FIRST_PID + 1000 + rank * NR_LOADERS + i);

		loader->job = process->job;
		loader->start_ns = 2 * NSEC_PER_SEC;
		loader->consumer_pid = process->pid;
		loader->phase = PHASE_DATA_LOADING;
		loader->task = (struct snapshot_task){ .known = 1,
						       .is_ml = 1,
						       .gpu = SNAPSHOT_GPU_UNKNOWN,
						       .gpu_instance = SNAPSHOT_GPU_UNKNOWN,
						       .compute_instance = SNAPSHOT_GPU_UNKNOWN };
		set(loader->comm, sizeof(loader->comm), "pt_data_worker");
		snapshot_add_thread(s, loader->pid, ROLE_LOADER)->pid = loader->pid;
	}
}

static void add_sched(struct snapshot_sched *sched, u32 age_s)
{
	sched->state = SCHED_ATTACHED;
	sched->reserved_percent = 30;
	sched->slice_ns = 5 * NSEC_PER_MSEC;
	sched->max_wait_ms = 1000;
	for (u32 i = 0; i < CLASS_NR; i++) {
		for (u32 k = 0; k < DECISION_NR; k++)
			sched->classes[i].nr[k] = 1000 * i + k + age_s * PER_SECOND;
		/* No cgroup has a limit. */
		sched->classes[i].nr[DECISION_CAPPED] = sched->classes[i].nr[DECISION_THROTTLED] =
			0;
		sched->classes[i].ran_ns = (i + age_s) * NSEC_PER_SEC;
		if (i == 0)
			fill(&sched->classes[0].runqueue_wait, 20 * NSEC_PER_USEC, age_s);
		else
			sched->classes[i].runqueue_wait = sched->classes[0].runqueue_wait;
	}
}

struct snapshot *node_snapshot(const struct node *node)
{
	struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	struct snapshot *s = NULL;

	assert(snapshot_new(&limits, &s) == 0);
	s->time_ms = 1700000000123 + node->age_s * 1000ULL;
	s->monotonic_ns = 123456789012345 + node->age_s * NSEC_PER_SEC;
	set(s->host, sizeof(s->host), "node-1");
	set(s->version, sizeof(s->version), "0.1.0");
	set(s->kernel, sizeof(s->kernel), "6.18.0");
	for (u32 i = 0; i < node->nr_ranks; i++)
		add_rank(s, node, i);
	for (u32 i = 0; i < nr_gpus(node); i++) {
		struct snapshot_gpu *gpu = snapshot_add_gpu(s, i);

		gpu->valid = SNAPSHOT_GPU_BUSY | SNAPSHOT_GPU_MEMORY_USED | SNAPSHOT_GPU_NUMA_NODE;
		gpu->numa_node = i / 4;
		gpu->busy_percent = 90 + i;
		gpu->memory_used_bytes = 31ULL << 30;
		set(gpu->uuid, sizeof(gpu->uuid), "GPU-0000");
		set(gpu->model, sizeof(gpu->model), "Virtual GPU 80GB");
	}
	s->phase_detection = (struct phase_config)PHASE_CONFIG_DEFAULT;
	add_sched(&s->sched, node->age_s);
	s->learning = (struct snapshot_learning){ 300, 200, 100000 };
	s->probes = (struct snapshot_probes){ 3, 120, 16, 0, 0, 0, 2, "zeMemFree, clFinish" };
	s->cost = (struct snapshot_cost){ 12 * NSEC_PER_SEC + 5, 20 << 20, 7 * NSEC_PER_SEC };
	s->nr_dropped[DROP_EVENTS] = 3;
	return s;
}

static void random_text(struct random *r, char *to, size_t size)
{
	char bytes[2 * SNAPSHOT_TEXT_LEN];
	u32 nr = random_below(r, sizeof(bytes));

	for (u32 i = 0; i < nr; i++)
		bytes[i] = (char)random_u64(r);
	snapshot_set_text(to, size, bytes, nr);
}

static void random_hists(struct random *r, struct snapshot *s, struct snapshot_hists *hists)
{
	for (u32 kind = 0; kind < HIST_KIND_NR; kind++) {
		struct hist *hist = random_below(r, 2) ? snapshot_add_hist(s, hists, kind) : NULL;

		for (u32 i = random_below(r, 8); hist && i > 0; i--)
			hist_record(hist, random_any(r));
	}
}

static void random_words(struct random *r, u64 *words, size_t size)
{
	for (size_t i = 0; i < size / sizeof(*words); i++)
		words[i] = random_any(r);
}

/* Every second time without the task state, like an older zerneld. */
static void random_task_state(struct random *r, struct snapshot_task *task)
{
	if (random_below(r, 2))
		return;
	*task = (struct snapshot_task){
		.known = 1,
		.is_ml = random_below(r, 2),
		.gpu_utilization = (u32)random_any(r),
		.io_wait_permille = random_below(r, 1001),
		.collective_mapped = random_below(r, 2),
		.nr_futex_waits = (u32)random_any(r),
		.gpu = (u32)random_any(r),
		.gpu_instance = (u32)random_any(r),
		.compute_instance = (u32)random_any(r),
		.gpu_basis = random_below(r, GPU_BASIS_NR),
		.last_sync_ns = random_any(r),
		.burst_ns = random_any(r),
		.phase_since_ns = random_any(r),
	};
}

static void random_oom(struct random *r, struct snapshot_oom *oom)
{
	oom->nr = random_below(r, 2);
	if (!oom->nr)
		return;
	oom->time_ns = random_any(r);
	oom->time_ms = random_any(r);
	oom->asked_bytes = random_any(r);
	oom->allocated_bytes = random_any(r);
	oom->reserved_bytes = random_any(r);
	oom->gpu = (u32)random_any(r);
	oom->tid = (u32)random_any(r);
	oom->others_ns = random_any(r);
	oom->others_bytes = random_any(r);
	oom->nr_holders = (u32)random_any(r);
	oom->nr_others = random_below(r, OOM_OTHERS_MAX + 1);
	for (u32 i = 0; i < oom->nr_others; i++) {
		oom->others[i].pid = (u32)random_any(r);
		oom->others[i].uid = (u32)random_any(r);
		oom->others[i].bytes = random_any(r);
		random_text(r, oom->others[i].comm, sizeof(oom->others[i].comm));
	}
}

static void random_process(struct random *r, struct snapshot *s)
{
	struct snapshot_process *process = snapshot_add_process(s, (u32)random_u64(r));

	process->job = random_below(r, s->nr_jobs + 1);
	process->start_ns = random_any(r);
	process->nr_ranks = (u32)random_any(r);
	process->rank = (s32)random_any(r);
	process->phase = random_below(r, PHASE_NR);
	process->launcher_tid = (u32)random_any(r);
	process->launcher_doing = random_below(r, THREAD_DOING_NR);
	process->launcher_call_since_ns = random_any(r);
	random_text(r, process->launcher_call, sizeof(process->launcher_call));
	process->consumer_pid = random_below(r, 2);
	snapshot_set_transitions(s, process, random_any(r));
	random_words(r, process->phase_ns, sizeof(process->phase_ns));
	random_task_state(r, &process->task);
	random_text(r, process->comm, sizeof(process->comm));
	process->nr_memory = random_below(r, GPU_MAX + 1);
	for (u32 i = 0; i < process->nr_memory; i++) {
		process->memory[i].gpu = i ? (u32)random_u64(r) : SNAPSHOT_GPU_UNKNOWN;
		random_words(r, &process->memory[i].book.current_bytes,
			     sizeof(process->memory[i].book));
	}
	random_hists(r, s, &process->hists);
	random_words(r, process->collectives.nr, sizeof(process->collectives));
	random_oom(r, &process->oom);
	process->stepped_ns = random_any(r);
	random_words(r, &process->counted.nr_steps, sizeof(process->counted));
}

static void random_ranks(struct random *r, struct snapshot_ranks *ranks)
{
	ranks->nr = random_below(r, SNAPSHOT_RANKS_MAX + 2);
	for (u32 i = 0; i < ranks->nr; i++) {
		ranks->ranks[i] = (struct snapshot_rank){
			.is_known = (u8)random_below(r, 2),
			.rank = (s32)random_any(r),
		};
		random_words(r, &ranks->ranks[i].account.nr_steps, sizeof(ranks->ranks[i].account));
	}
}

static void random_comm(struct random *r, struct snapshot *s)
{
	struct snapshot_comm *comm = snapshot_add_comm(s, (u32)random_u64(r));

	comm->rank = (u32)random_any(r);
	comm->nr_ranks = (u32)random_any(r);
	comm->is_world = (u8)random_below(r, 2);
	comm->made_ns = random_any(r);
	comm->nr = random_any(r);
	random_text(r, comm->identity, sizeof(comm->identity));
	comm->nr_calls = random_below(r, SEQUENCE_KEPT + 1);
	for (u32 i = 0; i < comm->nr_calls; i++)
		comm->calls[i] = (struct snapshot_call){
			.entered_ns = random_any(r),
			.returned_ns = random_any(r),
			.bytes = random_any(r),
			.operation = random_below(r, COLLECTIVE_NR),
		};
}

static void random_lists(struct random *r, struct snapshot *s)
{
	for (u32 i = random_below(r, 4); i > 0; i--) {
		char name[SNAPSHOT_TEXT_LEN];
		u32 nr = s->nr_jobs;

		random_text(r, name, sizeof(name));
		/* A job that exists already is complete. */
		if (snapshot_add_job(s, name, name) <= nr)
			continue;
		random_hists(r, s, &s->jobs[nr].gone);
		random_words(r, s->jobs[nr].gone_collectives.nr,
			     sizeof(s->jobs[nr].gone_collectives));
		random_ranks(r, &s->jobs[nr].gone_ranks);
	}
	for (u32 i = random_below(r, 5); i > 0; i--)
		random_process(r, s);
	for (u32 i = random_below(r, 5); i > 0; i--)
		random_comm(r, s);
	for (u32 i = random_below(r, 5); i > 0; i--) {
		struct snapshot_thread *thread =
			snapshot_add_thread(s, (u32)random_u64(r), random_below(r, ROLE_NR));

		thread->pid = (u32)random_u64(r);
		random_text(r, thread->comm, sizeof(thread->comm));
	}
	for (u32 i = random_below(r, 5); i > 0; i--) {
		struct snapshot_gpu *gpu = snapshot_add_gpu(s, (u32)random_u64(r));

		gpu->valid = random_below(r, 2 * SNAPSHOT_GPU_BUSY_TIME);
		if (gpu->valid & SNAPSHOT_GPU_BUSY)
			gpu->busy_percent = (u32)random_any(r);
		if (gpu->valid & SNAPSHOT_GPU_MEMORY_USED)
			gpu->memory_used_bytes = random_any(r);
		if (gpu->valid & SNAPSHOT_GPU_MEMORY_TOTAL)
			gpu->memory_total_bytes = random_any(r);
		if (gpu->valid & SNAPSHOT_GPU_ACTIVE)
			gpu->active_ns = gpu->active_at_ns = random_any(r);
		if (gpu->valid & SNAPSHOT_GPU_NUMA_NODE)
			gpu->numa_node = (u32)random_any(r);
		if (gpu->valid & SNAPSHOT_GPU_BUSY_TIME) {
			gpu->busy_ns = random_any(r);
			gpu->busy_since_ns = random_any(r);
			gpu->busy_at_ns = random_any(r);
			gpu->busy_period_ns = random_any(r);
			gpu->busy_counter = random_below(r, GPU_COUNTER_NR);
		}
		random_text(r, gpu->uuid, sizeof(gpu->uuid));
		random_text(r, gpu->model, sizeof(gpu->model));
	}
}

struct snapshot *node_random(struct random *r)
{
	struct snapshot_limits limits = { 8, 8, 8, 8, 256, 8 };
	struct snapshot *s = NULL;

	assert(snapshot_new(&limits, &s) == 0);
	s->time_ms = random_any(r);
	s->monotonic_ns = random_any(r);
	random_text(r, s->host, sizeof(s->host));
	random_text(r, s->version, sizeof(s->version));
	random_text(r, s->kernel, sizeof(s->kernel));
	random_lists(r, s);
	random_hists(r, s, &s->gone);
	random_words(r, s->gone_collectives.nr, sizeof(s->gone_collectives));
	random_ranks(r, &s->gone_ranks);
	s->phase_detection = (struct phase_config){
		.optimizer_burst_max_ns = random_any(r),
		.io_wait_threshold = random_below(r, 1001),
		.gpu_idle_threshold = (u32)random_any(r),
		.gpu_active_threshold = (u32)random_any(r),
		.phase_stability_count = (u32)random_any(r),
		.nccl_detection_enabled = (u8)random_below(r, 2),
	};
	s->sched.state = random_below(r, SCHED_STATE_NR);
	s->sched.limit = random_below(r, CPU_LIMIT_NR);
	s->sched.rules_off = (u32)random_any(r);
	s->sched.reserved_percent = (u32)random_any(r);
	s->sched.slice_ns = random_any(r);
	s->sched.max_wait_ms = random_any(r);
	s->sched.nr_ejected = random_any(r);
	random_text(r, s->sched.reason, sizeof(s->sched.reason));
	for (u32 i = 0; i < CLASS_NR; i++) {
		random_words(r, s->sched.classes[i].nr, sizeof(s->sched.classes[i].nr));
		s->sched.classes[i].ran_ns = random_any(r);
		hist_record(&s->sched.classes[i].runqueue_wait, random_any(r));
	}
	random_words(r, &s->learning.nr_profiles, sizeof(s->learning));
	random_words(r, &s->probes.nr_libraries, offsetof(struct snapshot_probes, stepped));
	random_words(r, &s->cost.cpu_ns, sizeof(s->cost));
	random_words(r, s->nr_dropped, sizeof(s->nr_dropped));
	return s;
}
