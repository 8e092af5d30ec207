/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state of one ML process, and the inferred evidence for it. The BPF programs own the
 * state, in the task storage of the thread group leader. User space has a copy.
 */
#include "abi/signals.h"
#include "core/book.h"
#include "core/boundary.h"
#include "core/idle.h"
#include "core/oom.h"
#include "core/step.h"

/* The sampling interval of inferred evidence. By default, three equal samples change the phase. */
#define PROCESS_WINDOW_NS (20 * NSEC_PER_MSEC)

/* What happened since the last sample. */
struct process_window {
	u64 since_ns;
	u64 busy_ns;	/* total GPU busy time of the process at the last sample */
	u64 io_wait_ns; /* summed over all its threads */
	u64 burst_ns;	/* the launcher's latest burst that ended since; 0: no burst ended */
	u32 nr_futex_waits;
	u32 nr_rank_waits; /* futex waits of the launcher that another rank ended */
};

/* The task that ended the launcher's sleep on a futex. */
enum rank_wait_end {
	RANK_WAIT_OTHER, /* a timeout, a signal, or an unrelated task */
	RANK_WAIT_FAMILY,
	RANK_WAIT_RANK, /* a thread of another process that feeds a GPU */
};

/* The launcher's sleeps on a futex outside of any runtime call. */
struct rank_wait {
	u64 since_ns;		    /* 0 unless the launcher sleeps now */
	struct phase_candidate row; /* counts the sleeps in a row that another rank ended */
	u32 end;		    /* enum rank_wait_end of the latest sleep */
	u32 pad;
};

/*
 * A reader may copy the state during a write. A writer increments the last member before
 * the write and the first member after it. The reader copies from first to last. The copy
 * is consistent if both members are equal.
 */
struct process_state {
	u64 nr_writes_done;
	u64 start_ns; /* boot time when it became known; part of its identity */
	u64 group;    /* its tenants: core/tenant.h */
	struct task_state task;
	struct process_window window;
	struct idle_account idle;
	struct loader_wait brought; /* the last wait for data, which a loader ended */
	struct step_state step;
	u64 nr_launches[LEVEL_NR];
	u64 nr_syncs[LEVEL_NR];
	u64 nr_copies[LEVEL_NR];
	u64 nr_collectives[COLLECTIVE_NR];
	u64 collective_bytes[COLLECTIVE_NR];
	u64 io_wait_ns;
	u64 runqueue_wait_ns;
	u64 data_wait_ns;
	u64 data_waited_ns;	/* when the last wait for data ended */
	u64 data_wait_since_ns; /* 0 unless the launcher waits for data now */
	u64 phase_since_before_wait_ns;
	u64 comm_handle; /* MPI: the communicator of rank and nr_ranks */
	u32 phase_before_wait;
	/*
	 * The rank in the world (core/comm.h), kept after the communicator is destroyed. The
	 * lowest one if the process has several ranks.
	 */
	s32 rank;
	u32 nr_ranks; /* 0: not known */
	u32 nr_local_ranks;
	u32 launcher_tid;  /* the thread that launched last; 0 before the first launch */
	u32 consumer_tgid; /* of a loader process: its consumer */
	u32 uid;
	u8 woken_with_data;
	u8 tells_waits; /* the framework reports waits for data, so a sleep is no evidence */
	u8 inferred_before_wait;
	u8 holds_gpu;  /* set for a snapshot: it has opened the device file of a GPU */
	u64 sequences; /* a bit for the place of each communicator that has a sequence */
	char comm[COMM_LEN];
	struct memory_book books[LEVEL_NR][GPU_MAX]; /* by device number of the process */
	struct memory_book host_books[LEVEL_NR];     /* pinned host memory */
	struct oom_report oom;
	u64 nr_writes_begun;
};
_Static_assert(sizeof(struct process_state) % 8 == 0, "shared with BPF");
_Static_assert(sizeof(struct process_state) < 4096, "copied for every snapshot");

/* Sent with EVENT_EXIT: the final state of the process. */
struct exit_event {
	struct event event;
	struct process_state process;
};

/* The kinds of records in the BPF iterator output from which a snapshot is made. */
enum record_kind {
	RECORD_PROCESS,
	RECORD_THREAD,
};

struct process_record {
	u32 kind;
	u32 pad;
	struct process_state process;
};

struct thread_record {
	u32 kind;
	u32 tgid;
	u32 tid;
	u32 role;
	u64 start_ns;
	u64 runqueue_wait_ns;
	u64 io_wait_ns;
	u64 cpu_ns;	   /* up to its last tick or sleep */
	u64 sync_spin_ns;  /* in calls that wait for the GPU: it ran */
	u64 sync_sleep_ns; /* and it slept */
	u64 call_since_ns; /* when it entered the innermost call that it is in */
	u32 call;  /* enum call plus 1; 0: it is in no call that is followed to its return */
	u32 doing; /* enum thread_doing */
	u32 polls; /* of a launcher: it polls memory for work, and yields */
	u32 pad;
	char comm[COMM_LEN];
};

/* Sent with EVENT_THREAD_EXIT, for every thread of an ML process. */
struct thread_event {
	struct event event;
	struct thread_record thread;
};

/* The size in bytes of each ncclDataType_t value. */
static const u8 collective_datatype_bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

static inline u64 collective_bytes(u64 count, u64 datatype)
{
	if (datatype >= sizeof(collective_datatype_bytes))
		return 0;
	return count * collective_datatype_bytes[datatype];
}

/* In these phases, the GPU has work. */
static inline bool phase_is_busy(u32 phase)
{
	return phase == PHASE_GPU_COMPUTE || phase == PHASE_COLLECTIVE;
}

static inline u64 process_busy_ns(const struct process_state *process, u64 now)
{
	const struct task_state *task = &process->task;
	u64 busy = task->phase_ns[PHASE_GPU_COMPUTE] + task->phase_ns[PHASE_COLLECTIVE];

	if (phase_is_busy(task->phase) && now > task->phase_since_ns)
		busy += now - task->phase_since_ns;
	return busy;
}

/* A boundary is in force until the next one, or until the time bound of an optimizer step. */
static inline bool process_is_certain(const struct process_state *process)
{
	return process->task.phase != PHASE_UNKNOWN && !process->task.inferred;
}

/* A burst of the launcher ended: it went to sleep or lost its CPU. */
static inline void process_burst(struct process_state *process, u64 ns)
{
	process->task.signals.burst_ns = ns;
	process->window.burst_ns = ns;
}

static inline bool process_is_inferred_collective(const struct process_state *process)
{
	return process->task.phase == PHASE_COLLECTIVE && process->task.inferred;
}

/*
 * Evaluates inferred evidence. Call it often; it acts once per window. The GPU utilization
 * comes from the GPU sampler (`utilization`, if `sampled`), else it is the busy share of the
 * window between launches and syncs. If no burst ended in the window, the rule sees a burst of
 * 0: the launcher leaves all work to the GPU. The stored signal keeps the latest burst. True if
 * the phase changed.
 */
static inline bool process_infer(const struct phase_config *c, struct process_state *process,
				 u32 utilization, bool sampled, u64 now)
{
	struct process_window *window = &process->window;
	struct phase_signals *signals = &process->task.signals;
	u64 length = now - window->since_ns, busy = process_busy_ns(process, now);
	u64 io = window->io_wait_ns;
	u32 before = process->task.phase;
	struct phase_signals seen;

	if (now < window->since_ns + PROCESS_WINDOW_NS)
		return false;
	boundary_expire(c, &process->task, now);
	signals->io_wait_permille = io < length ? (u32)(io * 1000 / length) : 1000;
	signals->gpu_utilization =
		sampled ? utilization : (u32)((busy - window->busy_ns) * 100 / length);
	signals->nr_futex_waits = window->nr_futex_waits;
	seen = *signals;
	seen.burst_ns = window->burst_ns;
	/* Waits for ordinary locks are no evidence. The rule sees only waits for ranks. */
	seen.nr_futex_waits = window->nr_rank_waits;
	if (process_is_certain(process))
		phase_forget(&process->task.candidate);
	else if (window->since_ns &&
		 !(process_is_inferred_collective(process) && process->data_wait_since_ns))
		task_detect(c, &process->task, &seen, now);
	*window = (struct process_window){ .since_ns = now, .busy_ns = busy };
	return process->task.phase != before;
}

/*
 * The launcher goes to sleep outside of any runtime call. This is assumed to be a wait for
 * data, or in an inferred collective a wait for other ranks. The task that wakes the
 * launcher decides. If the wait was for something else, the change of phase is undone.
 */
static inline bool process_data_wait(const struct phase_config *c, struct process_state *process,
				     u64 now)
{
	boundary_expire(c, &process->task, now);
	process->data_wait_since_ns = now;
	process->woken_with_data = 0;
	process->phase_before_wait = process->task.phase;
	process->inferred_before_wait = process->task.inferred;
	process->phase_since_before_wait_ns = process->task.phase_since_ns;
	if (process_is_inferred_collective(process))
		return false;
	return boundary_cross(c, &process->task, BOUNDARY_DATA_WAIT, now);
}

/* True if the current phase may still be undone: no loader has ended the launcher's sleep yet. */
static inline bool process_may_take_back(const struct process_state *process)
{
	return process->data_wait_since_ns && !process->woken_with_data &&
	       process->task.phase != process->phase_before_wait &&
	       process->task.phase_since_ns == process->data_wait_since_ns;
}

/* The launcher runs again. Returns the length of the wait for data; 0 if it was another wait. */
static inline u64 process_data_ready(const struct phase_config *c, struct process_state *process,
				     u64 now)
{
	struct task_state *task = &process->task;
	u64 since = process->data_wait_since_ns, began = process->phase_since_before_wait_ns;
	u32 before = phase_of(process->phase_before_wait);
	bool take_back = process_may_take_back(process);

	process->data_wait_since_ns = 0;
	if (process->woken_with_data) {
		if (process_is_inferred_collective(process))
			task_transition(task, PHASE_DATA_LOADING, since);
		boundary_cross(c, task, BOUNDARY_DATA_READY, now);
		process->data_wait_ns += now - since;
		process->data_waited_ns = now;
		return now - since;
	}
	if (take_back) {
		if (began > 0 && since > began)
			task->phase_ns[before] -= since - began;
		task->phase = before;
		task->phase_since_ns = began;
		task->inferred = process->inferred_before_wait;
		task->nr_transitions--;
	}
	return 0;
}

/* True if collective calls were seen, so that collectives need not be inferred. */
static inline bool process_calls_collectives(const struct process_state *process)
{
	u64 nr = 0;

	for (u32 i = 0; i < COLLECTIVE_NR; i++)
		nr += process->nr_collectives[i];
	return nr > 0;
}

/*
 * The launcher runs again after a sleep on a futex. Call it after process_data_ready(). This
 * is rule 2 of the detector: if detection is enabled and a collective library is mapped, a
 * wait that another rank ended was part of a collective. Each wait is one sample, so
 * phase_stability_count such waits in a row are needed. A wait for data neither adds to the
 * row nor ends it. The collective lasts from the start of the wait to the next boundary, or
 * until process_infer() sees no such waits any more. True if the phase changed, as of the
 * start of the wait.
 */
static inline bool process_rank_ready(const struct phase_config *c, struct process_state *process,
				      struct rank_wait *wait)
{
	struct task_state *task = &process->task;
	u64 since = wait->since_ns;
	bool was_for_rank = wait->end == RANK_WAIT_RANK && c->nccl_detection_enabled &&
			    task->signals.collective_mapped && !process_calls_collectives(process);

	wait->since_ns = 0;
	if (wait->end == RANK_WAIT_FAMILY)
		return false;
	process->window.nr_rank_waits += was_for_rank;
	if (phase_settle(c, &wait->row, PHASE_UNKNOWN,
			 was_for_rank ? PHASE_COLLECTIVE : PHASE_UNKNOWN) != PHASE_COLLECTIVE)
		return false;
	boundary_expire(c, task, since);
	/* A sleeping launcher is not in an optimizer step. Other call boundaries win. */
	if (task->phase == PHASE_COLLECTIVE ||
	    (process_is_certain(process) && task->phase != PHASE_OPTIMIZER))
		return false;
	task_transition(task, PHASE_COLLECTIVE,
			since > task->phase_since_ns ? since : task->phase_since_ns);
	task->inferred = 1;
	return true;
}

/* User space only: true if no write overlapped with the copy of the state. */
bool process_is_whole(const struct process_state *process);

/*
 * User space only: the number of phase changes, without one that may still be undone. If the
 * counter ever decreased, it would look like the counter of a new process.
 */
u64 process_nr_transitions(const struct process_state *process);

/* User space only: names for output, metrics and files. */
const char *role_label(u32 role);
const char *operation_label(u32 operation);
const char *thread_doing_label(u32 doing);
/* The symbol of an enum call; empty if there is none. */
const char *call_symbol(u32 call);
