/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/snapshot_builder.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "daemon/snapshot_processes.h"
#include "ipc/snapshot_json.h"

/* A snapshot of at most this age is used again. */
#define FRESH_NS	  (NSEC_PER_SEC / 10)
/* Build interval without a request, so that data of ended processes does not fill the snapshot. */
#define BUILD_INTERVAL_NS (30 * NSEC_PER_SEC)

struct snapshot_builder {
	struct snapshot_sources sources;
	struct snapshot *now;
	struct snapshot *before;
	struct message *text; /* JSON of `now`; NULL until a client requests it */
	struct utsname host;
	const char *version;
	u64 built_ns;
	u64 nr_changes; /* of the supervisor, at build time */
	/* Processes whose end was read after the last read of all processes. */
	struct process_key exits[EXITS_MAX];
	u32 nr_exits;
};

int snapshot_builder_new(const char *version, struct snapshot_builder **ret)
{
	CLEANUP(snapshot_builder_free_cleanup) struct snapshot_builder *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->version = version;
	if (uname(&b->host) < 0)
		return -errno;
	err = snapshot_new(&SNAPSHOT_LIMITS_DEFAULT, &b->now);
	if (err < 0)
		return err;
	err = snapshot_new(&SNAPSHOT_LIMITS_DEFAULT, &b->before);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(b);
	return 0;
}

struct snapshot_builder *snapshot_builder_free(struct snapshot_builder *b)
{
	if (!b)
		return NULL;
	message_unref(b->text);
	snapshot_free(b->now);
	snapshot_free(b->before);
	free(b);
	return NULL;
}

void snapshot_builder_set_sources(struct snapshot_builder *b,
				  const struct snapshot_sources *sources)
{
	b->sources = *sources;
}

static void set_text(char *to, size_t size, const char *from)
{
	snapshot_set_text(to, size, from, strlen(from));
}

static void fold_identity(struct snapshot_builder *b, struct snapshot *s)
{
	s->time_ms = time_of_ns(CLOCK_REALTIME) / NSEC_PER_MSEC;
	s->monotonic_ns = time_now_ns();
	set_text(s->host, sizeof(s->host), b->host.nodename);
	set_text(s->version, sizeof(s->version), b->version);
	set_text(s->kernel, sizeof(s->kernel), b->host.release);
}

/* This data stays valid while the driver does not answer. */
static void fold_gpu_identity(const struct gpu_sample *device, struct snapshot_gpu *gpu)
{
	if (device->valid & GPU_HAS_UUID)
		set_text(gpu->uuid, sizeof(gpu->uuid), device->uuid);
	if (device->valid & GPU_HAS_NAME)
		set_text(gpu->model, sizeof(gpu->model), device->name);
	if (device->valid & GPU_HAS_NUMA_NODE) {
		gpu->valid |= SNAPSHOT_GPU_NUMA_NODE;
		gpu->numa_node = (u32)device->numa_node;
	}
}

static void fold_busy_time(const struct gpu_busy_time *busy, struct snapshot_gpu *gpu)
{
	gpu->busy_ns = busy->busy_ns;
	gpu->busy_since_ns = busy->since_ns;
	gpu->busy_at_ns = busy->at_ns;
	gpu->busy_period_ns = busy->period_ns;
	gpu->busy_counter = busy->counter;
}

static void fold_sampler(const struct devices *devices, struct snapshot *s)
{
	struct sampler_counts counts = devices_counts(devices);

	s->nr_restarts = counts.nr_restarts;
	s->nr_dropped[DROP_GPU_SAMPLES] = counts.nr_lost;
}

static void fold_devices(const struct devices *devices, struct snapshot *s)
{
	static const struct {
		u32 from;
		u32 to;
	} fields[] = {
		{ GPU_HAS_UTILISATION, SNAPSHOT_GPU_BUSY },
		{ GPU_HAS_MEMORY_USED, SNAPSHOT_GPU_MEMORY_USED },
		{ GPU_HAS_MEMORY_TOTAL, SNAPSHOT_GPU_MEMORY_TOTAL },
		{ GPU_HAS_ACTIVE, SNAPSHOT_GPU_ACTIVE },
		{ GPU_HAS_BUSY_TIME, SNAPSHOT_GPU_BUSY_TIME },
	};
	const struct gpu_samples *samples = devices_samples(devices);
	bool answer = devices_answer(devices);

	for (u32 i = 0; i < samples->nr_devices; i++) {
		const struct gpu_sample *device = &samples->devices[i];
		struct snapshot_gpu *gpu = snapshot_add_gpu(s, device->index);

		if (!gpu)
			continue;
		for (size_t k = 0; answer && k < ARRAY_SIZE(fields); k++)
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
		if (gpu->valid & SNAPSHOT_GPU_BUSY_TIME)
			fold_busy_time(&device->busy, gpu);
		fold_gpu_identity(device, gpu);
	}
}

static void fold_scheduler(const struct supervisor *supervisor, struct snapshot_sched *sched)
{
	const struct supervisor_status *status = supervisor_status(supervisor);
	const struct sched_policy *policy = supervisor_policy(supervisor);
	const struct kernel *kernel = supervisor_kernel(supervisor);
	struct nice_counts nice = supervisor_nice(supervisor);
	struct sched_stats stats;

	sched->state = status->state;
	sched->limit = status->limit;
	sched->actuator = status->actuator;
	sched->nr_nice_threads = nice.nr_threads;
	sched->nr_nice_changes = nice.nr_changes;
	sched->nr_nice_dropped = nice.nr_dropped;
	sched->nr_nice_lost = nice.nr_lost;
	sched->nr_ejected = status->nr_ejected;
	set_text(sched->reason, sizeof(sched->reason), status->reason);
	sched->rules_off = policy->rules_off;
	sched->reserved_percent = policy->reserved_percent;
	if (!kernel)
		return;
	sched->slice_ns = kernel_slice_ns(kernel);
	sched->max_wait_ms = kernel_max_wait_ns(kernel) / NSEC_PER_MSEC;
	sched->nr_groups_left_out = kernel_groups_left_out(kernel);
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
	struct library_counts libraries = supervisor_libraries(supervisor);
	struct discovery_counts discovery = supervisor_discovery(supervisor);
	struct kernel_drops drops;

	s->nr_restarts += discovery.nr_restarts;
	s->nr_dropped[DROP_MAPS] = discovery.nr_lost;
	if (!kernel)
		return;
	drops = kernel_drops(kernel);
	s->nr_dropped[DROP_EVENTS] = drops.nr_events;
	s->nr_dropped[DROP_PROCESSES] = drops.nr_processes + libraries.nr_processes_excess;
	s->nr_dropped[DROP_FRAMES] = drops.nr_frames;
	s->nr_dropped[DROP_LEDGER] = drops.nr_ledger;
	s->nr_dropped[DROP_SAMPLES] = drops.nr_samples;
	s->nr_dropped[DROP_BPF_PROGRAM_RUNS] = drops.nr_bpf_program_runs;
	s->nr_dropped[DROP_COMMS] = drops.nr_comms;
	s->nr_dropped[DROP_MEMORY] = drops.nr_memory;
	s->nr_dropped[DROP_OBSERVATIONS] = drops.nr_observations;
	s->nr_dropped[DROP_READS] = drops.nr_torn;
	s->nr_dropped[DROP_MAPS] +=
		supervisor_nr_lost_maps(supervisor) + libraries.nr_libraries_excess;
}

static void add_table_quota(void *ctx, u32 uid, const u64 nr_refused[TENANT_TABLE_NR])
{
	snapshot_add_quota(ctx,
			   &(struct snapshot_quota){ .uid = uid,
						     .nr_processes = nr_refused[TENANT_PROCESSES],
						     .nr_memory = nr_refused[TENANT_MEMORY] });
}

static void add_scan_quota(void *ctx, u32 uid, u64 nr_scans)
{
	snapshot_add_quota(ctx, &(struct snapshot_quota){ .uid = uid, .nr_scans = nr_scans });
}

static void fold_quotas(const struct supervisor *supervisor, struct snapshot *s)
{
	const struct kernel *kernel = supervisor_kernel(supervisor);

	s->nr_over_quota = 0;
	if (kernel)
		kernel_read_quotas(kernel, add_table_quota, s);
	supervisor_scan_quotas(supervisor, add_scan_quota, s);
}

static void fold_probes(const struct supervisor *supervisor, struct snapshot_probes *probes)
{
	struct library_counts counts = supervisor_libraries(supervisor);

	*probes = (struct snapshot_probes){
		.nr_libraries = counts.nr_libraries,
		.nr_probes = counts.nr_probes,
		.nr_processes = counts.nr_processes,
		.nr_failed = counts.nr_unreadable + counts.nr_attach_failed,
		.nr_libraries_left_out = counts.nr_libraries_excess,
		.nr_processes_left_out = counts.nr_processes_excess,
		.nr_stepped = counts.nr_stepped,
	};
	_Static_assert(sizeof(probes->stepped) >= sizeof(counts.stepped), "names fit");
	memcpy(probes->stepped, counts.stepped, sizeof(counts.stepped));
}

static u64 timeval_ns(struct timeval time)
{
	return (u64)time.tv_sec * NSEC_PER_SEC + (u64)time.tv_usec * NSEC_PER_USEC;
}

static void fold_cost(const struct snapshot_sources *sources, struct snapshot_cost *cost)
{
	const struct kernel *kernel = supervisor_kernel(sources->supervisor);
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
	cost->loop_longest_ns = sources->loop_turns->max;
}

static bool has_ended(const struct snapshot_builder *b, const struct process_state *process)
{
	for (u32 i = 0; i < b->nr_exits; i++)
		if (b->exits[i].tgid == process->task.pid &&
		    b->exits[i].start_ns == process->start_ns)
			return true;
	return false;
}

/*
 * Reads all live processes, then the events. The exit events show which of these processes have
 * ended meanwhile. These are removed here, because their data is already counted with the ended
 * processes. So every process is counted exactly once.
 */
static int read_processes(struct snapshot_builder *b, struct kernel *kernel,
			  struct kernel_snapshot *ret)
{
	struct kernel_snapshot all = {};
	int err = kernel_snapshot_read(kernel, &all);
	u32 nr = 0;

	if (err < 0)
		return err;
	b->nr_exits = 0;
	kernel_read_events(kernel);
	for (u32 i = 0; i < all.nr_processes; i++)
		if (!has_ended(b, &all.processes[i]))
			all.processes[nr++] = all.processes[i];
	all.nr_processes = nr;
	*ret = all;
	return 0;
}

/* If the processes cannot be read, the old snapshot stays, with its old time. */
static void build(struct snapshot_builder *b)
{
	struct kernel *kernel = supervisor_kernel(b->sources.supervisor);
	struct kernel_snapshot all = {};
	struct snapshot *s = b->before;

	b->built_ns = time_now_ns();
	b->nr_changes = supervisor_status(b->sources.supervisor)->nr_changes;
	if (b->sources.devices)
		devices_update(b->sources.devices);
	if (kernel && read_processes(b, kernel, &all) < 0)
		return;
	message_unref(b->text);
	b->text = NULL;
	b->before = b->now;
	b->now = s;
	snapshot_clear(s);
	fold_identity(b, s);
	if (kernel)
		s->lacks = kernel_lacks(kernel, &s->refused);
	if (b->sources.devices) {
		fold_devices(b->sources.devices, s);
		fold_sampler(b->sources.devices, s);
	}
	processes_fold(kernel, &all, b->before, s);
	kernel_snapshot_done(&all);
	snapshot_carry(s, b->before);
	s->phase_detection = *supervisor_phase_config(b->sources.supervisor);
	fold_scheduler(b->sources.supervisor, &s->sched);
	fold_learning(b->sources.learning, s);
	fold_drops(b->sources.supervisor, s);
	fold_quotas(b->sources.supervisor, s);
	fold_probes(b->sources.supervisor, &s->probes);
	fold_cost(&b->sources, &s->cost);
}

void snapshot_builder_tick(struct snapshot_builder *b)
{
	if (time_now_ns() >= b->built_ns + BUILD_INTERVAL_NS ||
	    2 * b->now->nr_processes > b->now->limits.nr_processes ||
	    2 * b->now->nr_hists > b->now->limits.nr_hists)
		build(b);
}

const struct snapshot *snapshot_builder_last(const struct snapshot_builder *b)
{
	return b->now;
}

void snapshot_builder_on_event(struct snapshot_builder *b, struct kernel *kernel,
			       const struct event *event)
{
	const struct process_state *process = &((const struct exit_event *)event)->process;

	if (event->kind != EVENT_EXIT)
		return;
	processes_keep(kernel, process, b->now);
	if (b->nr_exits < EXITS_MAX)
		b->exits[b->nr_exits++] = (struct process_key){ .start_ns = process->start_ns,
								.tgid = process->task.pid };
}

static bool is_fresh(const struct snapshot_builder *b)
{
	return time_now_ns() < b->built_ns + FRESH_NS &&
	       b->nr_changes == supervisor_status(b->sources.supervisor)->nr_changes;
}

bool snapshot_builder_prepare(struct snapshot_builder *b)
{
	return is_fresh(b) || !b->sources.devices || devices_prepare(b->sources.devices);
}

struct message *snapshot_builder_message(struct snapshot_builder *b)
{
	char *text = NULL;
	size_t length;

	if (!is_fresh(b))
		build(b);
	if (!b->text && snapshot_to_json(b->now, &text, &length) == 0)
		b->text = message_new(text, length);
	return b->text ? message_ref(b->text) : NULL;
}
