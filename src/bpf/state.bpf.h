/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/*
 * The maps that calls.bpf.c and threads.bpf.c share, and how to reach what is
 * in them. A thread's state is in its task storage and dies with it; that of a
 * process is keyed by pid and start time, so no recycled pid inherits it.
 */
#include "bpf/kernel.h"
#include "core/process.h"

struct call_frame {
	u64 entered_ns;
	u64 arg[3];
	u32 call;
	u32 pad;
};

struct thread_state {
	u32 role;
	u32 depth; /* runtime calls this thread is inside of */
	struct call_frame frames[MAX_CALL_DEPTH];
	struct process_key process; /* looked up once a thread */
	struct process_key parent;  /* the ML process whose fork this thread's process is */
};

struct thread_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
};

struct process_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, struct process_key);
	__type(value, struct process_state);
};

struct event_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
};

extern struct thread_map threads SEC(".maps");
extern struct process_map processes SEC(".maps");
extern struct event_map events SEC(".maps");

/* What did not fit or could not be sent, by kind; read by user space. */
extern u64 nr_dropped_events, nr_dropped_processes, nr_dropped_frames;

static inline struct thread_state *thread_find(struct task_struct *p)
{
	return bpf_task_storage_get(&threads, p, NULL, 0);
}

static inline struct thread_state *thread_get(struct task_struct *p)
{
	struct thread_state *thread =
		bpf_task_storage_get(&threads, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (thread && !thread->process.tgid) {
		thread->process.tgid = p->tgid;
		thread->process.start_ns = BPF_CORE_READ(p, group_leader, start_boottime);
	}
	return thread;
}

static inline void event_send(u32 kind, struct task_struct *p, u32 value, u64 now)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&nr_dropped_events, 1);
		return;
	}
	event->time_ns = now;
	event->kind = kind;
	event->tgid = p->tgid;
	event->tid = p->pid;
	event->value = value;
	bpf_ringbuf_submit(event, 0);
}

static inline struct process_state *process_find(const struct thread_state *thread)
{
	return bpf_map_lookup_elem(&processes, &thread->process);
}

static inline struct process_state *process_get(struct task_struct *p, struct thread_state *thread)
{
	static const struct process_state fresh;
	struct process_state *process = process_find(thread);

	if (process)
		return process;
	bpf_map_update_elem(&processes, &thread->process, &fresh, BPF_NOEXIST);
	process = process_find(thread);
	if (!process) {
		__sync_fetch_and_add(&nr_dropped_processes, 1);
		return NULL;
	}
	process->task.pid = p->tgid;
	process->task.signals.is_ml = 1;
	bpf_probe_read_kernel(process->comm, sizeof(process->comm), p->group_leader->comm);
	return process;
}

static inline void thread_set_role(struct task_struct *p, struct thread_state *thread, u32 role,
				   u64 now)
{
	if (thread->role == role)
		return;
	thread->role = role;
	event_send(EVENT_ROLE, p, role, now);
}

/* Certain evidence for the process; tells user space when its phase changed. */
static inline void process_cross(struct task_struct *p, struct process_state *process, u32 boundary,
				 u64 now)
{
	static const struct phase_config config = PHASE_CONFIG_DEFAULT;
	u64 since = process->task.phase_since_ns;
	u32 before = process->task.phase;

	bool crossed = boundary_cross(&config, &process->task, boundary, now);

	/* A step that outlasted its bound became Unknown in between. */
	if (before == PHASE_OPTIMIZER && now > since + config.optimizer_burst_max_ns)
		event_send(EVENT_PHASE, p, PHASE_UNKNOWN, since + config.optimizer_burst_max_ns);
	if (crossed)
		event_send(EVENT_PHASE, p, process->task.phase, now);
}
