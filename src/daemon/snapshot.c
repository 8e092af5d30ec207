/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/snapshot.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/loop.h"
#include "daemon/snapshot_processes.h"
#include "ipc/snapshot_json.h"

/* Without anybody asking, so that what ended processes left finds room. */
#define FOLD_INTERVAL_NS (30 * NSEC_PER_SEC)

struct folder {
	struct folder_sources sources;
	struct snapshot *now;
	struct snapshot *before;
	struct gpu_samples *gpus;
	struct message *text; /* of `now`, once somebody wanted it */
	struct utsname host;
	const char *version;
	u64 folded_ns;
	u64 nr_changes; /* of the supervisor, at that time */
	/* Who ended since the kernel side was last read, for those that were read just before. */
	struct process_key exits[MAX_PROCESSES];
	u32 nr_exits;
	bool devices_answer;
	bool asked; /* ever, or there is nothing to say of their silence */
};

int folder_new(const char *version, struct folder **ret)
{
	CLEANUP(folder_free_cleanup) struct folder *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->version = version;
	f->devices_answer = true;
	f->gpus = calloc(1, sizeof(*f->gpus));
	if (!f->gpus)
		return -ENOMEM;
	if (uname(&f->host) < 0)
		return -errno;
	err = snapshot_new(&SNAPSHOT_LIMITS_DEFAULT, &f->now);
	if (err == 0)
		err = snapshot_new(&SNAPSHOT_LIMITS_DEFAULT, &f->before);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(f);
	return 0;
}

struct folder *folder_free(struct folder *f)
{
	if (!f)
		return NULL;
	message_unref(f->text);
	snapshot_free(f->now);
	snapshot_free(f->before);
	free(f->gpus);
	free(f);
	return NULL;
}

void folder_set_sources(struct folder *f, const struct folder_sources *sources)
{
	f->sources = *sources;
}

static void set_text(char *to, size_t size, const char *from)
{
	snapshot_set_text(to, size, from, strlen(from));
}

static void fold_identity(struct folder *f, struct snapshot *s)
{
	s->time_ms = time_of_ns(CLOCK_REALTIME) / NSEC_PER_MSEC;
	s->monotonic_ns = time_now_ns();
	set_text(s->host, sizeof(s->host), f->host.nodename);
	set_text(s->version, sizeof(s->version), f->version);
	set_text(s->kernel, sizeof(s->kernel), f->host.release);
}

static void fold_devices(struct folder *f, struct snapshot *s)
{
	static const struct {
		u32 from;
		u32 to;
	} fields[] = {
		{ GPU_HAS_UTILISATION, SNAPSHOT_GPU_BUSY },
		{ GPU_HAS_MEMORY_USED, SNAPSHOT_GPU_MEMORY_USED },
		{ GPU_HAS_MEMORY_TOTAL, SNAPSHOT_GPU_MEMORY_TOTAL },
		{ GPU_HAS_ACTIVE, SNAPSHOT_GPU_ACTIVE },
	};

	for (u32 i = 0; i < f->gpus->nr_devices; i++) {
		const struct gpu_sample *device = &f->gpus->devices[i];
		struct snapshot_gpu *gpu = snapshot_add_gpu(s, device->index);

		if (!gpu)
			continue;
		for (size_t k = 0; f->devices_answer && k < ARRAY_SIZE(fields); k++)
			if (device->valid & fields[k].from)
				gpu->valid |= fields[k].to;
		if (gpu->valid & SNAPSHOT_GPU_BUSY)
			gpu->busy_percent = device->utilisation;
		if (gpu->valid & SNAPSHOT_GPU_MEMORY_USED)
			gpu->memory_used_bytes = device->memory_used_bytes;
		if (gpu->valid & SNAPSHOT_GPU_MEMORY_TOTAL)
			gpu->memory_total_bytes = device->memory_total_bytes;
		if (gpu->valid & SNAPSHOT_GPU_ACTIVE) {
			gpu->active_ns = device->active_ns;
			gpu->active_at_ns = device->active_at_ns;
		}
		if (device->valid & GPU_HAS_UUID)
			set_text(gpu->uuid, sizeof(gpu->uuid), device->uuid);
	}
}

static void fold_scheduler(const struct supervisor *supervisor, struct snapshot_sched *sched)
{
	const struct supervisor_status *status = supervisor_status(supervisor);
	const struct sched_policy *policy = supervisor_policy(supervisor);
	const struct kernel *kernel = supervisor_kernel(supervisor);
	struct sched_stats stats;

	sched->state = status->state;
	sched->nr_ejected = status->nr_ejected;
	set_text(sched->reason, sizeof(sched->reason), status->reason);
	sched->rules_off = policy->rules_off;
	sched->others_permille = policy->others_permille;
	if (!kernel)
		return;
	sched->slice_ns = kernel_slice_ns(kernel);
	sched->patience_ns = kernel_patience_ns(kernel);
	if (!kernel_has_scheduler(kernel) || kernel_read_scheduler(kernel, &stats) < 0)
		return;
	for (u32 cls = 0; cls < CLASS_NR; cls++) {
		struct snapshot_class *to = &sched->classes[cls];

		memcpy(to->nr, stats.counters.nr[cls], sizeof(to->nr));
		to->ran_ns = stats.counters.ran_ns[cls];
		to->runqueue_wait = stats.waits[cls];
	}
}

static void fold_learning(const struct learning *learning, struct snapshot *s)
{
	struct procdb_summary summary = procdb_summarize(learning_database(learning));

	s->learning.nr_profiles = summary.nr_profiles;
	s->learning.nr_confident = summary.nr_confident;
	s->learning.nr_observations = learning_nr_observations(learning);
	s->nr_dropped[DROP_PROFILES] = summary.nr_dropped;
}

static void fold_drops(const struct supervisor *supervisor, struct snapshot *s)
{
	const struct kernel *kernel = supervisor_kernel(supervisor);
	struct kernel_drops drops;

	if (!kernel)
		return;
	drops = kernel_drops(kernel);
	s->nr_dropped[DROP_EVENTS] = drops.nr_events;
	s->nr_dropped[DROP_PROCESSES] = drops.nr_processes;
	s->nr_dropped[DROP_FRAMES] = drops.nr_frames;
	s->nr_dropped[DROP_SAMPLES] = drops.nr_samples;
	s->nr_dropped[DROP_BPF_PROGRAM_RUNS] = drops.nr_bpf_program_runs;
	s->nr_dropped[DROP_COMMS] = drops.nr_comms;
	s->nr_dropped[DROP_MEMORY] = drops.nr_memory;
	s->nr_dropped[DROP_OBSERVATIONS] = drops.nr_observations;
	s->nr_dropped[DROP_MAPS] = supervisor_nr_lost_maps(supervisor);
}

static void fold_probes(const struct supervisor *supervisor, struct snapshot_probes *probes)
{
	struct library_counts counts = supervisor_libraries(supervisor);

	*probes = (struct snapshot_probes){
		.nr_libraries = counts.nr_libraries,
		.nr_probes = counts.nr_probes,
		.nr_processes = counts.nr_processes,
		.nr_failed = counts.nr_unreadable + counts.nr_attach_failed,
	};
}

static u64 timeval_ns(struct timeval time)
{
	return (u64)time.tv_sec * NSEC_PER_SEC + (u64)time.tv_usec * NSEC_PER_USEC;
}

static void fold_cost(const struct supervisor *supervisor, struct snapshot_cost *cost)
{
	const struct kernel *kernel = supervisor_kernel(supervisor);
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long nr_pages = 0;
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		cost->cpu_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
	if (statm && fscanf(statm, "%*u %lu", &nr_pages) == 1)
		cost->rss_bytes = nr_pages * (u64)sysconf(_SC_PAGESIZE);
	if (statm)
		fclose(statm);
	cost->bpf_run_ns = kernel ? kernel_run_ns(kernel) : 0;
}

static bool has_ended(const struct folder *f, const struct process_state *process)
{
	for (u32 i = 0; i < f->nr_exits; i++)
		if (f->exits[i].tgid == process->task.pid &&
		    f->exits[i].start_ns == process->start_ns)
			return true;
	return false;
}

/*
 * All that live. Reading the events afterwards tells who of them has ended meanwhile and
 * is counted among the gone, so that nothing is counted twice or not at all.
 */
static int read_processes(struct folder *f, struct kernel *kernel, struct kernel_snapshot *ret)
{
	struct kernel_snapshot all = {};
	int err = kernel_snapshot_read(kernel, &all);
	u32 nr = 0;

	if (err < 0)
		return err;
	f->nr_exits = 0;
	kernel_read_events(kernel);
	for (u32 i = 0; i < all.nr_processes; i++)
		if (!has_ended(f, &all.processes[i]))
			all.processes[nr++] = all.processes[i];
	all.nr_processes = nr;
	*ret = all;
	return 0;
}

/* Processes that change too fast to be read just now leave the snapshot as it was. */
static void fold(struct folder *f)
{
	struct kernel *kernel = supervisor_kernel(f->sources.supervisor);
	struct kernel_snapshot all = {};
	struct snapshot *s = f->before;

	f->folded_ns = time_now_ns();
	f->nr_changes = supervisor_status(f->sources.supervisor)->nr_changes;
	if (kernel && read_processes(f, kernel, &all) < 0)
		return;
	message_unref(f->text);
	f->text = NULL;
	f->before = f->now;
	f->now = s;
	snapshot_clear(s);
	fold_identity(f, s);
	fold_devices(f, s);
	processes_fold(kernel, &all, f->before, s);
	kernel_snapshot_done(&all);
	snapshot_carry(s, f->before);
	fold_scheduler(f->sources.supervisor, &s->sched);
	fold_learning(f->sources.learning, s);
	fold_drops(f->sources.supervisor, s);
	fold_probes(f->sources.supervisor, &s->probes);
	fold_cost(f->sources.supervisor, &s->cost);
}

/* Devices that do not answer are told of once, and again when they do. */
static void ask_devices(struct folder *f, u64 now_ns)
{
	bool answer = sampler_read(f->sources.sampler, now_ns, f->gpus) && !f->gpus->nr_stalled;

	if (answer == f->devices_answer || (!answer && !f->asked)) {
		f->asked |= answer;
		return;
	}
	f->devices_answer = answer;
	if (answer)
		log_event(LOG_LEVEL_INFO, "gpu-answers", "the GPU driver answers again");
	else
		log_event(LOG_LEVEL_WARNING, "gpu-silent",
			  "the GPU driver does not answer: utilisation and memory of devices are "
			  "left out until it does");
}

/* What the devices say is evidence of the phase as well. */
static void tell_utilization(struct folder *f, struct kernel *kernel)
{
	for (u32 i = 0; i < f->gpus->nr_devices; i++) {
		const struct gpu_sample *device = &f->gpus->devices[i];

		if (f->devices_answer && (device->valid & GPU_HAS_UTILISATION))
			kernel_set_gpu_utilization(kernel, device->index, device->utilisation);
		else
			kernel_forget_gpu_utilization(kernel, device->index);
	}
}

static void name_users(struct folder *f)
{
	pid_t pids[GPU_MAX_PROCESSES];
	u32 nr = 0;

	for (u32 i = 0; i < f->now->nr_processes && nr < GPU_MAX_PROCESSES; i++)
		pids[nr++] = (pid_t)f->now->processes[i].pid;
	sampler_set_pids(f->sources.sampler, pids, nr);
}

void folder_tick(struct folder *f)
{
	struct kernel *kernel = supervisor_kernel(f->sources.supervisor);
	u64 now_ns = time_now_ns();

	if (f->sources.sampler) {
		ask_devices(f, now_ns);
		if (kernel)
			tell_utilization(f, kernel);
		name_users(f);
	}
	if (now_ns >= f->folded_ns + FOLD_INTERVAL_NS ||
	    2 * f->now->nr_processes > f->now->limits.nr_processes ||
	    2 * f->now->nr_hists > f->now->limits.nr_hists)
		fold(f);
}

void folder_on_event(void *ctx, struct kernel *kernel, const struct event *event)
{
	const struct process_state *process = &((const struct exit_event *)event)->process;
	struct folder *f = ctx;

	if (event->kind != EVENT_EXIT)
		return;
	processes_keep(kernel, process, f->now);
	if (f->nr_exits < MAX_PROCESSES)
		f->exits[f->nr_exits++] = (struct process_key){ .start_ns = process->start_ns,
								.tgid = process->task.pid };
}

const struct snapshot *folder_snapshot(struct folder *f)
{
	if (time_now_ns() >= f->folded_ns + FOLDER_FRESH_NS ||
	    f->nr_changes != supervisor_status(f->sources.supervisor)->nr_changes)
		fold(f);
	return f->now;
}

struct message *folder_message(struct folder *f)
{
	const struct snapshot *s = folder_snapshot(f);
	char *text = NULL;
	size_t length;

	if (!f->text && snapshot_to_json(s, &text, &length) == 0)
		f->text = message_new(text, length);
	return f->text ? message_ref(f->text) : NULL;
}
