/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/snapshot_builder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "core/history.h"
#include "core/snapshot_own.h"
#include "daemon/job_names.h"
#include "daemon/server.h"
#include "daemon/snapshot_counts.h"
#include "daemon/snapshot_processes.h"
#include "ipc/snapshot_json.h"

/* A snapshot of at most this age is used again. */
#define FRESH_NS	  (NSEC_PER_SEC / 10)
#define OWN_FRESH_NS	  NSEC_PER_SEC
/* Build interval without a request, so that data of ended processes does not fill the snapshot. */
#define BUILD_INTERVAL_NS (30 * NSEC_PER_SEC)
/*
 * An allocation that fails makes zerneld build sooner, but only once in BUILD_INTERVAL_NS: a
 * process can let allocations fail all the time.
 */
#define OOM_INTERVAL_NS	  NSEC_PER_SEC

/* A rendered snapshot of one user. */
struct own_text {
	u32 uid;
	u64 built_ns; /* of the whole snapshot */
	struct message *text;
};

struct snapshot_builder {
	struct snapshot_sources sources;
	struct snapshot *now;
	struct snapshot *before;
	struct history *history;
	struct message *text; /* JSON of `now`; NULL until a client requests it */
	struct own_text own[SERVER_STRANGERS_MAX];
	struct utsname host;
	const char *version;
	u64 built_ns;
	u64 nr_changes; /* of the supervisor, at build time */
	/* Processes whose end was read after the last read of all processes. */
	struct process_key exits[EXITS_MAX];
	u32 nr_exits;
	bool has_exits; /* since the last snapshot */
	bool has_oom;	/* the same: an allocation failed */
	u64 built_for_oom_ns;
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
	err = history_new(&b->history);
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
	for (u32 i = 0; i < ARRAY_SIZE(b->own); i++)
		message_unref(b->own[i].text);
	snapshot_free(b->now);
	snapshot_free(b->before);
	history_free(b->history);
	free(b);
	return NULL;
}

static void on_names(void *ctx, const struct job_scan *job)
{
	struct snapshot_builder *b = ctx;

	job_names_take(b->now, job);
}

void snapshot_builder_set_sources(struct snapshot_builder *b,
				  const struct snapshot_sources *sources)
{
	b->sources = *sources;
	discovery_set_names(sources->discovery, on_names, b);
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
	s->nr_gpu_conflicts = devices_nr_conflicts(devices);
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
 * processes. So every process is counted exactly once. Reading the processes deletes what is left
 * of those that have ended, so the events before it are read first: some of their stacks would be
 * lost otherwise.
 */
static int read_processes(struct snapshot_builder *b, struct kernel *kernel,
			  struct kernel_snapshot *ret)
{
	struct kernel_snapshot all = {};
	u32 nr = 0;
	int err;

	kernel_read_events(kernel);
	err = kernel_snapshot_read(kernel, &all);
	if (err < 0)
		return err;
	b->nr_exits = 0;
	kernel_read_events(kernel);
	for (u32 i = 0; i < all.nr_processes; i++)
		if (!has_ended(b, &all.processes[i]))
			all.processes[nr++] = all.processes[i];
	all.nr_processes = nr;
	for (u32 i = 0; i < nr; i++)
		if (process_is_whole(&all.processes[i]))
			oom_stacks_keep(b->sources.oom_stacks, kernel, &all.processes[i]);
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
	if (kernel && b->sources.devices)
		devices_identify(b->sources.devices, kernel, &all, time_now_ns(),
				 time_of_ns(CLOCK_BOOTTIME));
	processes_fold(kernel, &all, b->before, s);
	kernel_snapshot_done(&all);
	snapshot_carry(s, b->before);
	history_fold(b->history, b->before, s);
	job_names_want(s, s->monotonic_ns, b->sources.discovery);
	s->phase_detection = *supervisor_phase_config(b->sources.supervisor);
	fold_scheduler(b->sources.supervisor, &s->sched);
	fold_learning(b->sources.learning, s);
	counts_fold(&b->sources, s);
	b->has_exits = false;
	b->has_oom = false;
}

void snapshot_builder_tick(struct snapshot_builder *b)
{
	u64 now = time_now_ns();
	bool for_oom = b->has_oom && now >= b->built_ns + OOM_INTERVAL_NS &&
		       now >= b->built_for_oom_ns + BUILD_INTERVAL_NS;

	if (for_oom)
		b->built_for_oom_ns = now;
	if (for_oom || now >= b->built_ns + BUILD_INTERVAL_NS ||
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

	/* The snapshot keeps the memory of the other processes at this time. */
	b->has_oom |= event->kind == EVENT_OOM;
	if (event->kind != EVENT_EXIT)
		return;
	b->has_exits = true;
	processes_keep(kernel, process, event->time_ns, b->now);
	oom_stacks_keep(b->sources.oom_stacks, kernel, process);
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

static struct message *message_of(const struct snapshot *s)
{
	char *text = NULL;
	size_t length;

	return snapshot_to_json(s, &text, &length) == 0 ? message_new(text, length) : NULL;
}

/* A user without permission to read everything cannot make zerneld build often. */
static void build_for_own(struct snapshot_builder *b)
{
	if (time_now_ns() >= b->built_ns + OWN_FRESH_NS)
		build(b);
}

/* The place of a user in the list of rendered snapshots; another user loses it, at worst. */
static struct own_text *own_text_of(struct snapshot_builder *b, u32 uid)
{
	struct own_text *oldest = &b->own[0];

	for (u32 i = 0; i < ARRAY_SIZE(b->own); i++) {
		if (b->own[i].text && b->own[i].uid == uid)
			return &b->own[i];
		if (b->own[i].built_ns < oldest->built_ns)
			oldest = &b->own[i];
	}
	message_unref(oldest->text);
	*oldest = (struct own_text){ .uid = uid };
	return oldest;
}

static struct message *own_message(struct snapshot_builder *b, u32 uid)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *own = NULL;
	struct own_text *place;

	build_for_own(b);
	place = own_text_of(b, uid);
	if (place->text && place->built_ns == b->built_ns)
		return message_ref(place->text);
	if (snapshot_own(b->now, uid, &own) < 0)
		return NULL;
	message_unref(place->text);
	place->text = message_of(own);
	place->built_ns = b->built_ns;
	return place->text ? message_ref(place->text) : NULL;
}

struct message *snapshot_builder_message(struct snapshot_builder *b, u32 uid)
{
	if (uid != SNAPSHOT_UID_UNKNOWN)
		return own_message(b, uid);
	if (!is_fresh(b))
		build(b);
	if (!b->text)
		b->text = message_of(b->now);
	return b->text ? message_ref(b->text) : NULL;
}

/* A script asks for a job as soon as it has ended. */
static void build_for_ended(struct snapshot_builder *b)
{
	struct kernel *kernel = supervisor_kernel(b->sources.supervisor);

	if (kernel)
		kernel_read_events(kernel);
	if (!is_fresh(b) || b->has_exits)
		build(b);
}

int snapshot_builder_ended(struct snapshot_builder *b, u32 uid, const char *who,
			   struct message **ret)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *ended = NULL;
	int err;

	if (uid == SNAPSHOT_UID_UNKNOWN)
		build_for_ended(b);
	else
		build_for_own(b);
	err = history_show(b->history, b->now, uid, who, &ended);
	if (err < 0)
		return err;
	*ret = message_of(ended);
	return *ret ? 0 : -ENOMEM;
}
