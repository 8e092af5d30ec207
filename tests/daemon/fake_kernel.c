/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A fake of the BPF programs, so that tests can run zerneld on any machine. Files in the directory
 * FAKE_KERNEL control it: `refuse` (refuse BPF), `no-sched` (no sched_ext), `no-func` (sched_ext
 * without a function), `busy` (another scheduler is attached), `eject`, `restart`, `train` (its
 * processes change their phases), `flood` (send many events), `end` (the last process exits),
 * `end-all` (all of them exit), `processes` (its processes: pid, user and name in each line),
 * `slow` (the attach of a library with this word in its name blocks until the file is removed),
 * `lost` (events of mappings were lost), `blind` (the kernel refuses events of a CPU),
 * `no-extra` (extra calls cannot be attached), `oom` (its processes were out of memory), `cpu_max`,
 * `cgroup_v1` and `unverified` (the CPU limits of cgroups), `honors` (the scheduler keeps cpu.max).
 * It appends its actions to the file `log`. It is linked before the real functions and replaces
 * them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "abi/feature.h"
#include "base/cleanup.h"
#include "base/sched_ext.h"
#include "base/time.h"
#include "collect/cpu_limits.h"
#include "collect/kernel.h"
#include "collect/mmap_events.h"
#include "core/comm.h"

#define NR_PROCESSES 3
#define PHASE_LENGTH (5 * NSEC_PER_MSEC)
#define FLOOD_EVENTS 50000

struct kernel {
	struct sched_exit sched_exit;
	bool attached;
	bool timeline;
	kernel_event_fn on_event;
	void *ctx;
	struct task_state tasks[NR_PROCESSES];
	u32 nr_steps[NR_PROCESSES];
	u32 nr_ended;
};

struct mmap_events {
	int fd;
};

static bool is_told(const char *what)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", getenv("FAKE_KERNEL"), what);
	return access(path, F_OK) == 0;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	char path[256];
	va_list args;
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", getenv("FAKE_KERNEL"));
	log = fopen(path, "ae");
	if (!log)
		abort();
	va_start(args, format);
	vfprintf(log, format, args);
	va_end(args);
	fclose(log);
}

int kernel_new(kernel_log_fn log, struct kernel **ret)
{
	struct kernel *kernel;

	if (is_told("refuse"))
		return -EPERM;
	kernel = calloc(1, sizeof(*kernel));
	note("load\n");
	*ret = kernel;
	return 0;
}

struct kernel *kernel_free(struct kernel *kernel)
{
	if (kernel)
		note("unload\n");
	free(kernel);
	return NULL;
}

bool kernel_honors_limits(const struct kernel *kernel)
{
	return is_told("honors");
}

struct cpu_limits_scan {
	bool honors_cpu_max;
	u32 nr_steps;
};

int cpu_limits_scan_new(const struct cpu_limits_config *config, struct cpu_limits_scan **ret)
{
	*ret = calloc(1, sizeof(**ret));
	(*ret)->honors_cpu_max = config->honors_cpu_max;
	return 0;
}

struct cpu_limits_scan *cpu_limits_scan_free(struct cpu_limits_scan *scan)
{
	free(scan);
	return NULL;
}

/* A scan takes several steps, as that of a large tree. */
bool cpu_limits_scan_step(struct cpu_limits_scan *scan, u32 nr, struct cpu_limits *ret)
{
	struct cpu_limits found = { .limit = CPU_LIMIT_NONE };

	if (scan->nr_steps++ < 3)
		return false;
	for (u32 limit = CPU_LIMIT_NONE + 1; limit < CPU_LIMIT_NR; limit++)
		if (is_told(cpu_limit_label(limit)) &&
		    !(limit == CPU_LIMIT_CPU_MAX && scan->honors_cpu_max))
			found.limit = limit;
	if (found.limit != CPU_LIMIT_NONE)
		strcpy(found.where, "/kubepods/pod7");
	*ret = found;
	return true;
}

void kernel_set_policy(struct kernel *kernel, const struct sched_policy *policy)
{
	note("policy rules_off=%x reserved=%u\n", policy->rules_off, policy->reserved_percent);
}

void kernel_set_phase_config(struct kernel *kernel, const struct phase_config *config)
{
	note("phases io=%u burst=%llu idle=%u active=%u stability=%u nccl=%u\n",
	     config->io_wait_threshold, config->optimizer_burst_max_ns, config->gpu_idle_threshold,
	     config->gpu_active_threshold, config->phase_stability_count,
	     config->nccl_detection_enabled);
}

int kernel_attach_scheduler(struct kernel *kernel)
{
	if (kernel_scheduler_gap(kernel))
		return -EOPNOTSUPP;
	if (is_told("busy"))
		return -EBUSY;
	memset(&kernel->sched_exit, 0, sizeof(kernel->sched_exit));
	kernel->attached = true;
	note("attach\n");
	return 0;
}

void kernel_detach_scheduler(struct kernel *kernel)
{
	if (kernel->attached)
		note("detach\n");
	kernel->attached = false;
	kernel->sched_exit.kind = 64;
	strcpy(kernel->sched_exit.reason, "unregistered from user space");
}

const struct sched_exit *kernel_scheduler_exit(const struct kernel *kernel)
{
	static struct sched_exit ejected = { .kind = 1026,
					     .reason = "runnable task stall",
					     .msg = "cc1[12] failed to run for 30.000s",
					     .dump = "CPU 0: dumped\n" };
	static struct sched_exit restart = { .kind = 66, .code = 1LL << 48, .reason = "hotplug" };

	if (is_told("eject"))
		return &ejected;
	if (is_told("restart")) {
		char path[256];

		snprintf(path, sizeof(path), "%s/restart", getenv("FAKE_KERNEL"));
		unlink(path);
		return &restart;
	}
	return kernel->sched_exit.kind ? &kernel->sched_exit : NULL;
}

bool sched_exit_wants_restart(const struct sched_exit *sched_exit)
{
	return sched_exit->code;
}

bool sched_exit_is_clean(const struct sched_exit *sched_exit)
{
	return sched_exit->kind < 1024;
}

static void tell(struct kernel *kernel, u32 kind, u32 process, u32 value, u64 time_ns)
{
	u32 pid = (u32)getpid() + process;
	struct event event = { time_ns, kind, pid, pid, value };

	if (kernel->timeline)
		kernel->on_event(kernel->ctx, &event);
}

/* Each process goes through all phases in order. One pass is a step. */
static void train(struct kernel *kernel, u32 process, u64 now)
{
	struct task_state *task = &kernel->tasks[process];

	if (!task->phase_since_ns)
		task_transition(task, PHASE_GPU_COMPUTE, now - PHASE_LENGTH);
	while (task->phase_since_ns + PHASE_LENGTH + process <= now) {
		u64 time_ns = task->phase_since_ns + PHASE_LENGTH + process;

		task_transition(task, (task->phase + 1) % PHASE_NR, time_ns);
		tell(kernel, EVENT_PHASE, process, task->phase, time_ns);
		if (task->phase == PHASE_UNKNOWN)
			tell(kernel, EVENT_STEP, process, ++kernel->nr_steps[process], time_ns);
	}
}

/* Makes it a process of the file `processes`, which launches work. */
static void replace(u32 i, struct process_state *process)
{
	char path[256], line[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/processes", getenv("FAKE_KERNEL"));
	file = fopen(path, "re");
	for (u32 k = 0; k <= i; k++)
		if (!fgets(line, sizeof(line), file))
			abort();
	fclose(file);
	if (sscanf(line, "%u %u %15s", &process->task.pid, &process->uid, process->comm) != 3)
		abort();
	process->launcher_tid = process->task.pid;
}

/* Fills the state of a process with values of a typical size. */
static void describe(struct kernel *kernel, u32 i, struct process_state *process)
{
	process->task.phase = PHASE_GPU_COMPUTE;
	process->task.phase_since_ns = 1;
	if (is_told("train")) {
		train(kernel, i, time_now_ns());
		process->task = kernel->tasks[i];
	}
	process->task.pid = (u32)getpid() + i;
	process->task.signals = (struct phase_signals){
		.burst_ns = 2 * NSEC_PER_MSEC,
		.last_sync_ns = 7 + i,
		.gpu_utilization = 90 + i,
		.io_wait_permille = 250,
		.nr_futex_waits = i,
		.is_ml = 1,
		.collective_mapped = i == 1,
	};
	process->task.has_gpu = i < 2;
	process->task.gpu_id = i < 2 ? i + 1 : 0;
	process->start_ns = 1000 + i;
	process->rank = (s32)i;
	process->nr_ranks = NR_PROCESSES;
	process->books[LEVEL_RUNTIME][0] = (struct memory_book){ 1 << 20, 1 << 21, 2, 1 };
	if (is_told("unknown-gpus"))
		process->books[LEVEL_RUNTIME][1] = process->books[LEVEL_RUNTIME][0];
	process->nr_collectives[0] = 12 + i;
	process->collective_bytes[0] = 48 + i;
	process->step.nr_steps = 40 + i;
	process->idle =
		(struct idle_account){ .busy_ns = 900,
				       .done.cause_ns = { [IDLE_CPU] = 70, [IDLE_DISK] = 30 } };
	if (is_told("oom"))
		process->oom = (struct oom_report){ .time_ns = 7 + i, .nr = 1, .tid = 5 };
	strcpy(process->comm, "train\xff");
	if (is_told("processes"))
		replace(i, process);
}

int kernel_snapshot_read(struct kernel *kernel, struct kernel_snapshot *ret)
{
	u32 nr = NR_PROCESSES - kernel->nr_ended;
	struct kernel_snapshot all = { .nr_processes = nr, .nr_threads = nr };

	all.processes = calloc(NR_PROCESSES, sizeof(*all.processes));
	all.threads = calloc(NR_PROCESSES, sizeof(*all.threads));
	for (u32 i = 0; i < nr; i++) {
		describe(kernel, i, &all.processes[i]);
		all.threads[i].tid = all.threads[i].tgid = all.processes[i].task.pid;
		all.threads[i].role = ROLE_LAUNCHER;
		all.threads[i].doing = THREAD_SLEEPING;
		all.threads[i].call = CALL_CUDA_cudaDeviceSynchronize + 1;
		all.threads[i].call_since_ns = 2100;
		strcpy(all.threads[i].comm, "train");
	}
	/* It was written during each read, so its data is not valid. */
	if (is_told("torn")) {
		all.processes[0].nr_writes_begun++;
		all.processes[0].task.nr_transitions = 1ULL << 40;
		all.processes[0].nr_collectives[0] = 0;
	}
	*ret = all;
	return 0;
}

int kernel_read_comms_of(struct kernel *kernel, const struct process_state *process,
			 struct comms *ret)
{
	struct comm *world = &ret->comm[3];

	memset(ret, 0, sizeof(*ret));
	*world = (struct comm){
		.state = COMM_READY,
		.identity = 0xabc,
		.since_ns = 77,
		.made_by = DETAIL_ONE_RANK,
		.rank = (u32)process->rank,
		.nr_ranks = process->nr_ranks,
	};
	/* Its collectives had no room, so that no rank is compared in it. */
	ret->comm[4] = *world;
	ret->comm[4].identity = 0xdef;
	ret->comm[4].is_uncounted = true;
	return 0;
}

void kernel_read_sequence(struct kernel *kernel, const struct process_state *process,
			  const struct comms *comms, u32 place, struct sequence *ret)
{
	*ret = (struct sequence){};
	for (u32 i = 1; i <= 10; i++) {
		sequence_enter(ret, 0, 4096, 100 * i);
		sequence_return(ret, 100 * i, true, 100 * i + 5);
	}
	sequence_enter(ret, DETAIL_ALL_GATHER - COLLECTIVE_FIRST, 64, 2000);
}

static void end_one(struct kernel *kernel)
{
	struct exit_event end = { .event = { .kind = EVENT_EXIT, .time_ns = time_now_ns() } };

	describe(kernel, NR_PROCESSES - ++kernel->nr_ended, &end.process);
	end.process.step.nr_steps += 5; /* since the last snapshot */
	end.event.tgid = end.event.tid = end.process.task.pid;
	note("end after %llu transitions\n", end.process.task.nr_transitions);
	kernel->on_event(kernel->ctx, &end.event);
}

void kernel_snapshot_done(struct kernel_snapshot *snapshot)
{
	free(snapshot->processes);
	free(snapshot->threads);
	*snapshot = (struct kernel_snapshot){};
}

int kernel_read_hist(struct kernel *kernel, const struct process_state *process, u32 kind,
		     struct hist *ret)
{
	if (kind != HIST_SYNC_WAIT)
		return -ENOENT;
	memset(ret, 0, sizeof(*ret));
	for (u64 i = 1; i <= 1000; i++)
		hist_record(ret, i * NSEC_PER_USEC);
	return 0;
}

/*
 * Returns more culprits than the snapshot can hold, the cheapest first. The first culprit belongs
 * to no process. The remaining culprits belong to the first process.
 */
int kernel_read_culprits(struct kernel *kernel, struct kernel_culprit **ret, u32 *ret_nr)
{
	u32 nr = CULPRITS_MAX + 4;
	struct kernel_culprit *all = calloc(nr, sizeof(*all));

	for (u32 i = 0; i < nr; i++) {
		all[i].key = (struct culprit_key){ .start_ns = 1000,
						   .tgid = (u32)getpid(),
						   .cause = IDLE_RUNQUEUE };
		snprintf(all[i].key.name, sizeof(all[i].key.name), "cc%u", i);
		all[i].ns = 10 + i;
	}
	all[0].key.start_ns = 1;
	*ret = all;
	*ret_nr = nr;
	return 0;
}

/* Simulates a process whose devices 0 and 1 are GPU 0 and a part of GPU 7. */
int kernel_gpu_numbers(const struct kernel *kernel, const struct process_state *process,
		       struct gpu_numbers *ret)
{
	if (is_told("unknown-gpus"))
		return -ENOENT;
	*ret = (struct gpu_numbers){ .of = { 1, 8 },
				     .gpu_instance = { 0, 4 },
				     .compute_instance = { 0, 1 },
				     .basis = { GPU_BASIS_RUNTIME, GPU_BASIS_DRIVER } };
	return 0;
}

int kernel_read_gpu_facts(const struct kernel *kernel, const struct process_state *process,
			  struct gpu_facts *ret)
{
	return -ESRCH;
}

int kernel_read_scheduler(const struct kernel *kernel, struct sched_stats *ret)
{
	*ret = (struct sched_stats){ .counters.ran_ns[CLASS_FEEDER] = 7 };
	hist_record(&ret->waits[CLASS_FEEDER], NSEC_PER_USEC);
	return 0;
}

u64 kernel_slice_ns(const struct kernel *kernel)
{
	return 5 * NSEC_PER_MSEC;
}

u64 kernel_max_wait_ns(const struct kernel *kernel)
{
	return NSEC_PER_SEC;
}

u64 kernel_groups_left_out(const struct kernel *kernel)
{
	return 0;
}

u64 kernel_run_ns(const struct kernel *kernel)
{
	return 1;
}

int kernel_measure_run_time(int *ret_fd)
{
	return -EPERM;
}

u32 kernel_lacks(const struct kernel *kernel, u32 *ret_refused)
{
	*ret_refused = 0;
	return is_told("no-sched") ? FEATURE_BIT(SCHEDULER) : 0;
}

bool kernel_has_scheduler(const struct kernel *kernel)
{
	return true;
}

const struct sched_ext_gap *kernel_scheduler_gap(const struct kernel *kernel)
{
	static const struct sched_ext_gap no_ops = { SCHED_EXT_NO_OPS, "sched_ext_ops" };
	static const struct sched_ext_gap no_func = { SCHED_EXT_ABSENT, "scx_bpf_kick_cpu" };

	if (is_told("no-sched"))
		return &no_ops;
	return is_told("no-func") ? &no_func : NULL;
}

void kernel_read_quotas(const struct kernel *kernel, kernel_quota_fn fn, void *ctx)
{
	if (is_told("quota"))
		fn(ctx, 1000, (u64[TENANT_TABLE_NR]){ 3, 70 });
}

struct kernel_drops kernel_drops(const struct kernel *kernel)
{
	return (struct kernel_drops){ .nr_events = 5 };
}

void kernel_set_gpu_utilization(struct kernel *kernel, u32 gpu, u32 percent)
{
	note("gpu %u %u%%\n", gpu, percent);
}

void kernel_forget_gpu_utilization(struct kernel *kernel, u32 gpu)
{
	note("gpu %u unknown\n", gpu);
}

void kernel_set_gpu_node(struct kernel *kernel, u32 gpu, u32 node)
{
	note("gpu %u node %u\n", gpu, node);
}

void kernel_set_gpu_devices(struct kernel *kernel, const struct gpu_devices *devices)
{
	note("gpu devices %u\n", devices->nr);
}

/* The machine can have other libraries, also those of other tests. */
static bool is_noted(const struct library *library)
{
	return strstr(library->name, "slow") || strstr(library->name, "noted");
}

u32 kernel_library_fds(const struct kernel *kernel, const struct library_probes *probes)
{
	return 1;
}

int kernel_attach_library(struct kernel *kernel, const struct library *library)
{
	if (!is_noted(library))
		return 0;
	note("attach %s\n", library->name);
	while (strstr(library->name, "slow") && is_told("slow"))
		usleep(1000);
	note("attached %s\n", library->name);
	return 0;
}

void kernel_detach_library(struct kernel *kernel, const struct library *library)
{
	if (is_noted(library))
		note("detach %s\n", library->name);
}

int kernel_set_extra(struct kernel *kernel, const struct library *library)
{
	if (is_noted(library))
		note("%s %s\n", library->has_extra ? "extra" : "no-extra", library->name);
	return is_told("no-extra") ? -EMFILE : 0;
}

/* The remaining functions do nothing. */
int kernel_attach_threads(struct kernel *kernel)
{
	return 0;
}

int kernel_set_collective(struct kernel *kernel, int pidfd, bool is_mapped)
{
	return 0;
}

int kernel_attach_devices(struct kernel *kernel)
{
	return 0;
}

int kernel_find_holders(struct kernel *kernel)
{
	return 0;
}

bool kernel_holds_gpu(struct kernel *kernel, pid_t pid, int pidfd)
{
	return false;
}

int kernel_open_events(struct kernel *kernel, bool timeline, kernel_event_fn on_event, void *ctx)
{
	kernel->on_event = on_event;
	kernel->ctx = ctx;
	kernel->timeline = timeline;
	return 0;
}

void kernel_set_timeline(struct kernel *kernel, bool timeline)
{
	note("timeline %s\n", timeline ? "on" : "off");
	kernel->timeline = timeline;
}

int kernel_events_fd(const struct kernel *kernel)
{
	return -1;
}

int kernel_read_events(struct kernel *kernel)
{
	bool training = is_told("train"), flooding = is_told("flood");

	for (u32 i = 0; training && i < NR_PROCESSES; i++)
		train(kernel, i, time_now_ns());
	if (is_told("end") && !kernel->nr_ended)
		end_one(kernel);
	while (is_told("end-all") && kernel->nr_ended < NR_PROCESSES)
		end_one(kernel);
	for (u32 i = 0; flooding && i < FLOOD_EVENTS; i++)
		tell(kernel, EVENT_ROLE, 0, i % ROLE_NR, time_now_ns());
	return 0;
}

void kernel_set_gpu_numbers(struct kernel *kernel, const struct process_state *process,
			    const struct gpu_numbers *numbers)
{
}

int kernel_open_learning(struct kernel *kernel, kernel_observation_fn on_seen, void *ctx)
{
	return 0;
}

int kernel_read_observations(struct kernel *kernel)
{
	return 0;
}

int kernel_predict(struct kernel *kernel, const struct procdb_key *key,
		   const struct procdb_record *prediction)
{
	note("%s %s\n", prediction ? "predict" : "withdraw", key->comm);
	return 0;
}

int mmap_events_new(pid_t pid, const struct mmap_handler *handler, void *ctx,
		    struct mmap_events **ret)
{
	struct mmap_events *events = calloc(1, sizeof(*events));

	events->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*ret = events;
	return 0;
}

struct mmap_events *mmap_events_free(struct mmap_events *events)
{
	if (events)
		close(events->fd);
	free(events);
	return NULL;
}

int mmap_events_fd(const struct mmap_events *events)
{
	return events->fd;
}

int mmap_events_read(struct mmap_events *events)
{
	return 0;
}

int mmap_events_repair(struct mmap_events *events)
{
	return is_told("reopened");
}

bool mmap_events_is_blind(const struct mmap_events *events)
{
	return is_told("blind");
}

u64 mmap_events_lost(const struct mmap_events *events)
{
	return is_told("lost") ? 5 : 0;
}
