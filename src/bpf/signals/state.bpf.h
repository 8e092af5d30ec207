/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The maps that the signal programs share, and functions to access them. The
 * state of a thread is in its task storage, and the state of a process in the
 * task storage of its leader. Both are freed with the task, so a reused pid
 * cannot inherit them.
 */
#include "abi/oom.h"
#include "abi/sched.h"
#include "bpf/kernel.h"
#include "bpf/signals/tenants.bpf.h"
#include "core/busy.h"
#include "core/collectives.h"
#include "core/gpu_device.h"
#include "core/hist.h"
#include "core/launch.h"
#include "core/ledger.h"
#include "core/process.h"
#include "core/role.h"

struct call_frame {
	u64 entered_ns;
	u64 arg[3];
	u32 call;
	u32 comm; /* of a collective: the place of its communicator plus 1; 0: not known */
};

/* What is done when the innermost sync of a thread returns. */
struct ledger_target {
	u32 kind; /* enum call_detail: DEVICE, STREAM, EVENT or UNKNOWN */
	u32 pad;
	struct ledger_mark mark;
	struct ledger_positions positions;
};

/* What a thread does while it waits for the GPU. */
enum gpu_wait_doing {
	GPU_WAIT_QUEUED, /* it waits for a CPU */
	GPU_WAIT_RUNS,	 /* it spins */
	GPU_WAIT_SLEEPS,
	GPU_WAIT_SLOTS = 4, /* a power of two, so that the verifier can check a masked index */
};

enum consumer_rights {
	CONSUMER_NONE,
	CONSUMER_OWNS,
	CONSUMER_REFUSED, /* its process has too many */
};

struct thread_state {
	u32 role;
	u32 depth;     /* nested runtime calls that this thread is in */
	u32 nr_groups; /* open groups of collective calls */
	u32 device;    /* that it used last, by its number in the process */
	u32 has_fed;   /* it has launched work or copied data to a GPU */
	u32 queued;    /* its outermost call queued work in the ledger: slot plus 1, or 0 */
	struct launch_timing launch_timing;
	struct call_frame frames[MAX_CALL_DEPTH];
	u64 scope;	       /* address of the loader scope that it is in, or 0 */
	u64 optimizer;	       /* address of the outermost optimizer scope that it is in, or 0 */
	u64 running_since_ns;  /* 0 if it does not run */
	u64 runnable_since_ns; /* 0 if it does not wait for a CPU */
	u64 io_since_ns;       /* 0 if it does not wait for a disk or a file */
	u64 futex_since_ns;    /* 0 if it does not wait on a futex inside a collective call */
	u64 lock_passed_on;    /* a thread of its process woke it last, outside of a collective */
	u64 futex_wait_ns;     /* in the current collective call */
	u64 sleeps_since_ns;   /* launcher: 0 unless it sleeps and may wait for data */
	u64 runqueue_wait_ns;
	u64 io_wait_ns;
	/* Launcher: its own row; others: that of the launcher for which they work. */
	struct consumer_key consumer;
	u64 consumer_rights; /* enum consumer_rights: whether the row is its own */
	struct role_evidence evidence;
	struct loader_wait wait; /* loader: its part in the current wait of its consumer */
	struct rank_wait rank_wait;
	u32 is_waiting;	 /* for work that is not done */
	u32 is_evidence; /* it sleeps or runs while it waits: counted in nr_waiting */
	u64 doing;	 /* enum gpu_wait_doing, while it waits */
	u64 doing_since_ns;
	u64 doing_ns[GPU_WAIT_SLOTS];
	struct ledger_target target;
};

struct process_ledger {
	u64 done_ns;	/* when the GPU finished all its work */
	u32 nr_waiting; /* threads that show that the GPU works: gpu.bpf.h */
	u32 pad;
	struct ledger ledger;
};

/* Devices of a process whose work is predicted separately. A power of two. */
#define BUSY_DEVICES 4

/* Only the state is copied to user space. */
struct process_storage {
	struct process_state state;
	struct process_ledger ledger;
	struct busy_estimate busy[BUSY_DEVICES];
	struct consumer_key last_consumer;
	u64 nr_consumers;
	struct gpu_claims claims; /* user space reads the first and the last member */
};

struct thread_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
};

struct process_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct process_storage);
};

/* In the task storage of the process leader, from the first collective of the process on. */
struct collective_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct open_collectives);
};

/*
 * One distribution for all CPUs: only the launchers of one process write to it. One for each
 * possible CPU would need 550 KB on a machine with 384 CPUs.
 */
struct hist_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES *HIST_KIND_NR);
	__type(key, struct hist_key);
	__type(value, struct shared_hist);
};

#define CONTEXT_DEPTH 16

/* The reference that a call of this thread is about to release: see memory.bpf.h. */
struct leaving {
	struct memory_key key;
	struct memory memory;
	u64 state;
};

/*
 * One for each level, because a free of the runtime calls a free of the driver,
 * and one for contexts.
 */
#define LEAVING_CONTEXT LEVEL_NR
#define LEAVING_NR	4

struct gpu_thread {
	u32 device; /* set through the runtime; used while no context is current */
	u32 depth;  /* contexts on the stack */
	u64 contexts[CONTEXT_DEPTH];
	struct leaving leaving[LEAVING_NR];
};

struct gpu_thread_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct gpu_thread);
};

/* Filled by user space. */
struct gpu_numbers_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, struct process_key);
	__type(value, struct gpu_numbers);
};

/* Filled by user space: the interpreters of processes that use PyTorch or were sampled. */
struct python_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct oom_python);
};

/* Filled by user space: processes that map a collective library or its shared memory. */
struct collective_mapping_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
};

/* Processes that have opened a GPU, and which ones: see devices.bpf.c. */
struct gpu_holder_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct gpu_opened);
};

struct event_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
};

#define REPORTS_BYTES (1 << 22)

/*
 * Reports that nothing can replace: the final state of a process, and its first use of a GPU. Other
 * events cannot fill this ring. User space reads it ten times a second.
 */
struct report_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, REPORTS_BYTES);
};
_Static_assert(EXITS_MAX * (sizeof(struct exit_event) + 8) <= REPORTS_BYTES,
	       "each record has a header of 8 bytes");

extern struct thread_map threads SEC(".maps");
extern struct process_map processes SEC(".maps");
extern struct collective_map collectives SEC(".maps");
extern struct hist_map hists SEC(".maps");
extern struct event_map events SEC(".maps");
extern struct report_map reports SEC(".maps");
extern struct gpu_thread_map gpu_threads SEC(".maps");
extern struct gpu_numbers_map gpu_numbers SEC(".maps");
extern struct collective_mapping_map collective_mappings SEC(".maps");
extern struct python_map pythons SEC(".maps");
extern struct gpu_holder_map gpu_holders SEC(".maps");

/* Dropped records, by kind. Read by user space. */
extern u64 nr_dropped_events, nr_dropped_processes, nr_dropped_frames, nr_dropped_samples,
	nr_dropped_ledger, nr_dropped_consumers;

/* Whether any process has used a runtime. Until then the programs have nothing to do. */
extern bool ml_seen;

extern struct new_roles new_roles;

/* Set by user space: send each change of phase and role through the ring buffer. */
extern bool timeline_wanted;

/* Set by user space: utilization of each GPU in percent, plus one; 0: unknown. */
extern u8 gpu_utilization[GPU_MAX];

/*
 * Set by user space at any time. A decision that is made during the update may
 * use some old members; the next one is correct.
 */
extern struct phase_config phase_config;

static inline struct thread_state *thread_find(struct task_struct *p)
{
	return bpf_task_storage_get(&threads, p, NULL, 0);
}

static inline struct thread_state *thread_get(struct task_struct *p)
{
	return bpf_task_storage_get(&threads, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The innermost call that the thread is in, plus 1; 0 if it is in no call, or in too many. */
static inline u32 thread_call(const struct thread_state *thread, u64 *ret_since_ns)
{
	const struct call_frame *frame;
	u32 depth = thread->depth;

	if (!depth || depth > MAX_CALL_DEPTH)
		return 0;
	barrier_var(depth);
	frame = &thread->frames[(depth - 1) & (MAX_CALL_DEPTH - 1)];
	*ret_since_ns = frame->entered_ns;
	return frame->call + 1;
}

/* The kind of the innermost call that the thread is in; CALL_KIND_NR if it is in no call. */
static inline u32 thread_call_kind(const struct thread_state *thread)
{
	u64 since_ns;
	u32 call = thread_call(thread, &since_ns) - 1;

	if (call >= CALL_NR)
		return CALL_KIND_NR;
	barrier_var(call);
	return call_rows[call].kind;
}

/*
 * For callers with many paths: at each read of a pointer in a task, the verifier searches all types
 * of the kernel, so they read the leader once.
 */
static inline struct process_state *process_led_by(struct task_struct *leader)
{
	struct process_storage *storage =
		leader ? bpf_task_storage_get(&processes, leader, NULL, 0) : NULL;

	return storage ? &storage->state : NULL;
}

static inline struct process_state *process_find(struct task_struct *p)
{
	return process_led_by(p->group_leader);
}

static inline struct process_ledger *ledger_of(struct process_state *process)
{
	return &((struct process_storage *)process)->ledger;
}

static inline struct gpu_claims *claims_of(struct process_state *process)
{
	return &((struct process_storage *)process)->claims;
}

/* The machine number of the GPU that the process mainly uses; GPU_MAX if unknown. */
static inline u32 process_gpu(const struct process_state *process)
{
	struct process_key key = { .start_ns = process->start_ns, .tgid = process->task.pid };
	struct gpu_numbers *numbers;
	u32 gpu = process->task.gpu_id;

	if (!process->task.has_gpu)
		return GPU_MAX;
	numbers = bpf_map_lookup_elem(&gpu_numbers, &key);
	if (!numbers)
		return GPU_MAX;
	barrier_var(gpu);
	gpu = numbers->of[gpu & (GPU_MAX - 1)] - 1;
	barrier_var(gpu);
	return gpu < GPU_MAX ? gpu : GPU_MAX;
}

/* See process_led_by(). */
static inline struct process_state *process_get_led_by(struct task_struct *p,
						       struct task_struct *leader)
{
	struct process_state *process;
	u64 group;
	u32 uid;

	if (!leader)
		return NULL;
	process = bpf_task_storage_get(&processes, leader, NULL, 0);
	if (process)
		return process;
	uid = tenant_user(p);
	group = tenant_group(p);
	if (!tenant_has_room(uid, group))
		return NULL;
	process = bpf_task_storage_get(&processes, leader, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* If two threads create it at the same time, one of the calls fails. */
	if (!process)
		process = bpf_task_storage_get(&processes, leader, NULL, 0);
	if (!process) {
		__sync_fetch_and_add(&nr_dropped_processes, 1);
		return NULL;
	}
	/*
	 * Set it once, because another thread may be here too. It is the current
	 * time, not the start time of the task, because an exec makes a new
	 * process of the same task.
	 */
	if (!__sync_val_compare_and_swap(&process->start_ns, 0, bpf_ktime_get_boot_ns())) {
		process->uid = uid;
		process->group = group;
		tenant_add(uid, group, 1);
	}
	process->task.pid = leader->tgid;
	process->task.signals.is_ml = 1;
	ml_seen = true;
	bpf_probe_read_kernel(process->comm, sizeof(process->comm), leader->comm);
	return process;
}

static inline struct process_state *process_get(struct task_struct *p)
{
	return process_get_led_by(p, p->group_leader);
}

/* Whether it is proven that the process with this leader uses a GPU. */
static inline bool holds_gpu_led_by(struct task_struct *leader)
{
	return leader && bpf_task_storage_get(&gpu_holders, leader, NULL, 0);
}

static inline bool holds_gpu(struct task_struct *p)
{
	return holds_gpu_led_by(p->group_leader);
}

/* Begin and end of a write to members that belong together: see struct process_state. */
static inline void process_write_begin(struct process_state *process)
{
	__sync_fetch_and_add(&process->nr_writes_begun, 1);
}

static inline void process_write_end(struct process_state *process)
{
	__sync_fetch_and_add(&process->nr_writes_done, 1);
}

static inline void event_fill(struct event *event, u32 kind, struct task_struct *p, u32 value,
			      u64 now)
{
	event->time_ns = now;
	event->kind = kind;
	event->tgid = p->tgid;
	event->tid = p->pid;
	event->value = value;
}

/* Do not wake the reader: it could preempt the very thread that is observed. */
static inline void event_submit(void *event)
{
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static inline void event_send(u32 kind, struct task_struct *p, u32 value, u64 now)
{
	struct event *event;

	if (!timeline_wanted)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&nr_dropped_events, 1);
		return;
	}
	event_fill(event, kind, p, value, now);
	event_submit(event);
}

/* Values of the kernel's ABI: ps(1) and debuggers depend on them. */
#define STATE_SLEEPING	      0x1
#define STATE_UNINTERRUPTIBLE 0x2
#define STATE_STOPPED	      0x4
#define STATE_TRACED	      0x8

static inline u32 thread_doing(u32 state)
{
	if (state & (STATE_STOPPED | STATE_TRACED))
		return THREAD_STOPPED;
	if (state & STATE_UNINTERRUPTIBLE)
		return THREAD_UNINTERRUPTIBLE;
	return state & STATE_SLEEPING ? THREAD_SLEEPING : THREAD_RUNNING;
}

static inline void thread_describe(struct task_struct *p, struct thread_record *record)
{
	struct thread_state *thread = thread_find(p);

	*record = (struct thread_record){
		.kind = RECORD_THREAD,
		.tgid = p->tgid,
		.tid = p->pid,
		.start_ns = p->start_boottime,
		.cpu_ns = p->se.sum_exec_runtime,
		.doing = thread_doing(p->__state),
	};
	if (thread) {
		record->call = thread_call(thread, &record->call_since_ns);
		record->role = thread->role;
		record->polls = role_polls(&thread->evidence);
		record->runqueue_wait_ns = thread->runqueue_wait_ns;
		record->io_wait_ns = thread->io_wait_ns;
		record->sync_spin_ns = thread->doing_ns[GPU_WAIT_RUNS];
		record->sync_sleep_ns = thread->doing_ns[GPU_WAIT_SLEEPS];
	}
	bpf_probe_read_kernel(record->comm, sizeof(record->comm), p->comm);
}

static inline void thread_set_role(struct task_struct *p, struct thread_state *thread, u32 role,
				   u64 now)
{
	if (thread->role == role)
		return;
	thread->role = role;
	if (role == ROLE_LOADER || role == ROLE_CRITICAL)
		__sync_fetch_and_add(&new_roles.nr_found, 1);
	event_send(EVENT_ROLE, p, role, now);
}

/*
 * Sends an event for each transition since there were `nr_before` transitions and
 * the phase began at `since`. Two transitions at once happen if an optimizer step
 * outlasted its limit: the phase became Unknown at the limit and then changed
 * again.
 */
static inline void phase_changed(struct task_struct *p, const struct process_state *process,
				 u64 nr_before, u64 since)
{
	const struct task_state *task = &process->task;
	s64 nr = (s64)(task->nr_transitions - nr_before);

	if (nr > 1)
		event_send(EVENT_PHASE, p, PHASE_UNKNOWN,
			   since + phase_config.optimizer_burst_max_ns);
	if (nr > 0)
		event_send(EVENT_PHASE, p, task->phase, task->phase_since_ns);
}

/*
 * A thread that has been on its CPU for less than this time cannot know when the
 * GPU was done.
 */
#define LATE_NS (500 * NSEC_PER_USEC)

static inline bool is_late(const struct thread_state *thread, u64 now)
{
	return thread && now < thread->running_since_ns + LATE_NS;
}

static inline u64 process_launches(const struct process_state *process)
{
	u64 nr = 0;

	for (u32 level = 0; level < LEVEL_NR; level++)
		nr += process->nr_launches[level];
	return nr;
}

/* The work of the device that this thread uses. */
static inline struct busy_estimate *busy_of(const struct thread_state *thread,
					    struct process_state *process)
{
	u32 device = thread ? thread->device : 0;

	barrier_var(device);
	return &((struct process_storage *)process)->busy[device & (BUSY_DEVICES - 1)];
}

/* Applies certain evidence to the process. */
static inline void process_cross(struct task_struct *p, struct process_state *process, u32 boundary,
				 u64 now)
{
	u64 since = process->task.phase_since_ns, nr = process->task.nr_transitions;
	struct thread_state *thread = thread_find(p);
	struct busy_estimate *busy = busy_of(thread, process);

	process_write_begin(process);
	boundary_cross(&phase_config, &process->task, boundary, now);
	if (phase_is_busy(process->task.phase))
		busy_begin(busy, process_launches(process), now);
	else if (busy->since_ns)
		busy_end(busy, process_launches(process), is_late(thread, now), now);
	process_write_end(process);
	phase_changed(p, process, nr, since);
}

static inline struct hist_key hist_key_of(const struct process_state *process, u32 kind)
{
	return (struct hist_key){
		.start_ns = process->start_ns,
		.tgid = process->task.pid,
		.kind = kind,
	};
}

static const struct shared_hist hist_empty;

/*
 * Allocates the distributions of a launcher in a context where memory can be
 * allocated. In a context switch, where the first samples come from, an
 * allocation may fail.
 */
static __noinline __attribute__((unused)) int process_expect_samples(struct process_state *process)
{
	if (!process)
		return 0;
	for (u32 kind = 0; kind < HIST_RANK_WAIT; kind++) {
		struct hist_key key = hist_key_of(process, kind);

		bpf_map_update_elem(&hists, &key, &hist_empty, BPF_NOEXIST);
	}
	return 0;
}

/*
 * Adds a sample with weight `nr` to a distribution of the process. Counts a sample that is dropped,
 * or that may be missing in the minimum or maximum.
 */
static __noinline __attribute__((unused)) int process_sample_times(struct process_state *process,
								   u32 kind, u64 ns, u64 nr)
{
	struct hist_key key;
	struct shared_hist *hist;

	if (!process)
		return 0;
	key = hist_key_of(process, kind);
	hist = bpf_map_lookup_elem(&hists, &key);
	if (!hist) {
		bpf_map_update_elem(&hists, &key, &hist_empty, BPF_NOEXIST);
		hist = bpf_map_lookup_elem(&hists, &key);
	}
	if (!hist || !shared_hist_record_times(hist, ns, nr))
		__sync_fetch_and_add(&nr_dropped_samples, 1);
	return 0;
}

static inline void process_sample(struct process_state *process, u32 kind, u64 ns)
{
	process_sample_times(process, kind, ns, 1);
}

static inline void step_ended(struct task_struct *p, struct process_state *process,
			      const struct step_end *end)
{
	event_send(EVENT_STEP, p, process->step.nr_steps, end->at_ns);
	if (end->length_ns)
		process_sample(process, HIST_STEP, end->length_ns);
}

static inline void data_wait_begins(struct task_struct *p, struct process_state *process, u64 now)
{
	u64 since = process->task.phase_since_ns, nr = process->task.nr_transitions;

	process_write_begin(process);
	process_data_wait(&phase_config, process, now);
	process_write_end(process);
	phase_changed(p, process, nr, since);
}

static inline void data_wait_ends(struct task_struct *p, struct process_state *process, u64 now)
{
	u64 since = process->task.phase_since_ns, nr = process->task.nr_transitions;
	u64 slept = process->data_wait_since_ns, waited;
	bool was_collective = process_is_inferred_collective(process);

	process_write_begin(process);
	waited = process_data_ready(&phase_config, process, now);
	process_write_end(process);
	/*
	 * Only the wakeup shows that this part of an inferred collective was a
	 * wait for data.
	 */
	if (waited && was_collective) {
		event_send(EVENT_PHASE, p, PHASE_DATA_LOADING, slept);
		nr++;
	}
	/* If the sleep was not for data, the phase goes back to what it was before. */
	if (process->task.nr_transitions < nr)
		event_send(EVENT_PHASE, p, process->task.phase, slept);
	phase_changed(p, process, nr, since);
	if (waited)
		process_sample(process, HIST_LOADER_WAIT, waited);
}
