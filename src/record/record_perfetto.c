/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tracks and counters are written while the snapshots are read. Slices are written at the
 * end, when all events are known, because events are not in the order of their times. A
 * wait can turn out not to be a wait. A later event then corrects it, with the time at
 * which the wait began.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "core/process.h"
#include "ipc/events_json.h"
#include "record/perfetto_packets.h"
#include "record/record_export.h"
#include "record/record_stacks.h"
#include "record/record_tracks.h"
#include "ipc/snapshot_json.h"

/* The tracks below the track of a process: offsets from its uuid. */
enum { OFFSET_PHASES = 1, OFFSET_STEPS, OFFSET_BUSY, OFFSET_RUNQUEUE, OFFSET_NR };

struct trace {
	struct perfetto perfetto;
	struct tracks tracks;
	u64 last_uuid;
	u64 end_ns;
	struct events events;
	struct events seeds; /* the state of each process and thread when it was first seen */
	int err;
};

static struct track *add_track(struct trace *trace, enum track_kind kind, u32 id, u64 which,
			       u32 nr_uuids)
{
	struct track *track = tracks_add(&trace->tracks, kind, id, which);

	if (!track) {
		trace->err = -ENOMEM;
		return NULL;
	}
	track->uuid = trace->last_uuid + 1;
	trace->last_uuid += nr_uuids;
	return track;
}

static struct track *add_process(struct trace *trace, u32 pid, u64 start_ns, const char *name)
{
	struct track *track = add_track(trace, TRACK_PROCESS, pid, start_ns, OFFSET_NR);
	struct perfetto *perfetto = &trace->perfetto;

	if (!track)
		return NULL;
	perfetto_process(perfetto, track->uuid, pid, name);
	perfetto_lane(perfetto, track->uuid + OFFSET_PHASES, track->uuid, "phases");
	perfetto_lane(perfetto, track->uuid + OFFSET_STEPS, track->uuid, "steps");
	perfetto_counter(perfetto, track->uuid + OFFSET_BUSY, track->uuid, "GPU busy", "%");
	perfetto_counter(perfetto, track->uuid + OFFSET_RUNQUEUE, track->uuid, "runqueue wait",
			 "%");
	return track;
}

static struct track *add_thread(struct trace *trace, u32 pid, u32 tid, const char *name)
{
	struct track *track = add_track(trace, TRACK_THREAD, tid, pid, 1);

	if (track)
		perfetto_thread(&trace->perfetto, track->uuid, pid, tid, name);
	return track;
}

static void add_seed(struct trace *trace, u64 time_ns, u32 kind, u32 pid, u32 tid, u32 value)
{
	struct event seed = { time_ns, kind, pid, tid, value };
	int err = events_add(&trace->seeds, &seed);

	if (err < 0)
		trace->err = err;
}

/* Writes the share of the time since the previous snapshot. Skips a counter that decreased. */
static void put_share(struct trace *trace, u64 uuid, const struct track *track, u64 now_ns,
		      u64 before, u64 now)
{
	if (now_ns > track->seen_ns && now >= before)
		perfetto_value(&trace->perfetto, uuid, now_ns,
			       100.0 * (double)(now - before) / (double)(now_ns - track->seen_ns));
}

static void take_process(struct trace *trace, const struct snapshot *s,
			 const struct snapshot_process *process)
{
	const struct hist *waits = snapshot_hist(s, &process->hists, HIST_RUNQUEUE_WAIT);
	struct track *track = tracks_newest(&trace->tracks, TRACK_PROCESS, process->pid);
	u64 now_ns = s->monotonic_ns, runqueue_ns = waits ? waits->sum : 0;

	if (!track || track->which != process->start_ns) {
		track = add_process(trace, process->pid, process->start_ns, process->comm);
		if (!track)
			return;
		add_seed(trace, now_ns, EVENT_PHASE, process->pid, process->pid, process->phase);
	} else {
		put_share(trace, track->uuid + OFFSET_BUSY, track, now_ns, track->busy_ns,
			  process->busy_ns);
		put_share(trace, track->uuid + OFFSET_RUNQUEUE, track, now_ns, track->runqueue_ns,
			  runqueue_ns);
	}
	track->seen_ns = now_ns;
	track->busy_ns = process->busy_ns;
	track->runqueue_ns = runqueue_ns;
}

static void take_thread(struct trace *trace, const struct snapshot *s,
			const struct snapshot_thread *thread)
{
	const struct track *track = tracks_newest(&trace->tracks, TRACK_THREAD, thread->tid);

	if (track && track->which == thread->pid)
		return;
	if (add_thread(trace, thread->pid, thread->tid, thread->comm))
		add_seed(trace, s->monotonic_ns, EVENT_ROLE, thread->pid, thread->tid,
			 thread->role);
}

static void take_gpu(struct trace *trace, const struct snapshot *s, const struct snapshot_gpu *gpu)
{
	struct track *track = tracks_newest(&trace->tracks, TRACK_GPU, gpu->gpu);
	char name[32];

	if (!(gpu->valid & SNAPSHOT_GPU_BUSY))
		return;
	if (!track) {
		track = add_track(trace, TRACK_GPU, gpu->gpu, 0, 1);
		if (!track)
			return;
		snprintf(name, sizeof(name), "GPU %u busy", gpu->gpu);
		perfetto_counter(&trace->perfetto, track->uuid, 0, name, "%");
	}
	perfetto_value(&trace->perfetto, track->uuid, s->monotonic_ns, gpu->busy_percent);
}

static int take_snapshot(struct trace *trace, const struct record_frame *frame)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
	int err = snapshot_from_json(frame->text, frame->length, &s);

	if (err < 0)
		return err;
	for (u32 i = 0; i < s->nr_processes; i++)
		take_process(trace, s, &s->processes[i]);
	for (u32 i = 0; i < s->nr_threads; i++)
		take_thread(trace, s, &s->threads[i]);
	for (u32 i = 0; i < s->nr_gpus; i++)
		take_gpu(trace, s, &s->gpus[i]);
	if (s->monotonic_ns > trace->end_ns)
		trace->end_ns = s->monotonic_ns;
	return trace->err;
}

/* Ends the slice that a track is in. */
static void close_slice(struct trace *trace, struct track *track, u64 now_ns)
{
	bool is_process = track->kind == TRACK_PROCESS;

	if (track->open && now_ns > track->since_ns)
		perfetto_slice(&trace->perfetto, track->uuid + (is_process ? OFFSET_PHASES : 0),
			       is_process ? phase_label(track->value) : role_label(track->value),
			       track->since_ns, now_ns);
	track->open = false;
}

static void open_slice(struct trace *trace, struct track *track, u32 value, u64 now_ns)
{
	if (track->open && track->value == value)
		return;
	close_slice(trace, track, now_ns);
	/* The role "other" has no slice. */
	track->open = track->kind == TRACK_PROCESS || value != ROLE_OTHER;
	track->value = value;
	track->since_ns = now_ns;
}

static void end_step(struct trace *trace, struct track *track, u64 now_ns)
{
	if (track->step_ns && now_ns > track->step_ns)
		perfetto_slice(&trace->perfetto, track->uuid + OFFSET_STEPS, "step", track->step_ns,
			       now_ns);
	track->step_ns = now_ns;
}

/* The track of an event. A task that started and exited between two snapshots has no name. */
static struct track *track_of(struct trace *trace, const struct event *event)
{
	bool is_thread = event->kind == EVENT_ROLE || event->kind == EVENT_THREAD_EXIT;
	struct track *track =
		tracks_present(&trace->tracks, is_thread ? TRACK_THREAD : TRACK_PROCESS,
			       is_thread ? event->tid : event->tgid);

	if (track)
		return track;
	return is_thread ? add_thread(trace, event->tgid, event->tid, NULL)
			 : add_process(trace, event->tgid, 0, NULL);
}

static void take_event(struct trace *trace, const struct event *event, bool is_seed)
{
	struct track *track = track_of(trace, event);

	if (!track)
		return;
	switch (event->kind) {
	case EVENT_PHASE:
	case EVENT_ROLE:
		/* Events are more precise than the state at the first snapshot. */
		if (!is_seed || !track->open)
			open_slice(trace, track, event->value, event->time_ns);
		break;
	case EVENT_STEP: end_step(trace, track, event->time_ns); break;
	case EVENT_EXIT:
	case EVENT_THREAD_EXIT:
		close_slice(trace, track, event->time_ns);
		track->gone = true;
		break;
	}
}

static void close_last(void *ctx, struct track *track)
{
	struct trace *trace = ctx;

	close_slice(trace, track, trace->end_ns);
}

static int compare_events(const void *left, const void *right)
{
	const struct event *a = *(const struct event *const *)left;
	const struct event *b = *(const struct event *const *)right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a < b ? -1 : a > b; /* in the order in which they arrived */
}

static int put_slices(struct trace *trace)
{
	size_t nr = trace->events.nr, nr_seeds = trace->seeds.nr;
	CLEANUP_FREE const struct event **sorted = calloc(nr + 1, sizeof(*sorted));
	const struct event *seeds = trace->seeds.list;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		sorted[i] = &trace->events.list[i];
	qsort(sorted, nr, sizeof(*sorted), compare_events);
	for (size_t i = 0, k = 0; i < nr || k < nr_seeds;) {
		if (k == nr_seeds || (i < nr && sorted[i]->time_ns <= seeds[k].time_ns))
			take_event(trace, sorted[i++], false);
		else
			take_event(trace, &seeds[k++], true);
	}
	if (nr && sorted[nr - 1]->time_ns > trace->end_ns)
		trace->end_ns = sorted[nr - 1]->time_ns;
	tracks_for_each(&trace->tracks, close_last, trace);
	return trace->err;
}

static int take_frame(struct trace *trace, const struct record_frame *frame)
{
	switch (frame->kind) {
	case RECORD_FRAME_SNAPSHOT: return take_snapshot(trace, frame);
	case RECORD_FRAME_EVENTS:
		return events_from_json(frame->text, frame->length, &trace->events);
	case RECORD_FRAME_LINES: return record_put_stacks(&trace->perfetto, frame);
	default: return -EBADMSG;
	}
}

static int put_all(struct trace *trace, struct record_reader *reader)
{
	const struct record_info *info = record_reader_info(reader);
	struct record_frame frame;
	int n, err = 0;

	perfetto_begin(&trace->perfetto, info->time_ms, info->monotonic_ns);
	while (err == 0 && (n = record_read(reader, &frame)) != 0) {
		if (n < 0)
			return n;
		err = take_frame(trace, &frame);
	}
	return err < 0 ? err : put_slices(trace);
}

int record_to_perfetto(struct record_reader *reader, FILE *out)
{
	struct trace trace = { .perfetto.out = out };
	int err = put_all(&trace, reader);

	if (err == 0 && (fflush(out) != 0 || ferror(out)))
		err = errno ? -errno : -EIO;
	tracks_done(&trace.tracks);
	events_done(&trace.events);
	events_done(&trace.seeds);
	return err;
}
