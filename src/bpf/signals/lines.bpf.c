// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Adds idle time to the stacks of the threads that cause it, while a client wants to know the lines
 * of a process. Both programs are attached only then.
 *
 * A launcher that runs is sampled about LINES_RATE times a second. The time between ticks is
 * random, so a sample counts for the time since the last tick. When the launcher leaves its CPU,
 * its stack is read once, and the time until it runs again belongs to that stack, split by the
 * causes that the ledger books (core/idle.h). Loaders are sampled while their consumer waits for
 * data. Nothing is sampled while the GPU certainly works. A thread inside a runtime call, while the
 * GPU may have work, is not sampled either: the call may wait for that work.
 *
 * Launches of the process tell which kernels are before and after that time (core/gap.h). Their
 * names are in kernels.bpf.c.
 *
 * Trusts nothing in the memory of the process: lines_stack.bpf.h. Each process that is sampled has
 * a share of the tables and its own counts: lines_tables.bpf.h. lines_switch must run after
 * thread_switch, which books the time: the kernel runs programs of a tracepoint in the order of
 * their attachment.
 */
#include "bpf/signals/lines_stack.bpf.h"

/*
 * The process whose idle time a thread can cause: its own one if it is the launcher, the one that
 * it works for if it is a loader.
 */
static struct process_state *process_of(struct task_struct *p, const struct thread_state *thread,
					bool *ret_loads)
{
	struct process_state *process;

	*ret_loads = thread->role == ROLE_LOADER;
	if (*ret_loads)
		return consumer_process(p);
	/* Most threads have another role, so the process is not looked up for them. */
	process = is_launcher(thread) ? process_find(p) : NULL;
	return process && is_launcher_of(p, thread, process) ? process : NULL;
}

/* Whether what the thread does now may cause idle time. */
static bool counts_now(const struct thread_state *thread, const struct process_state *process,
		       bool loads)
{
	if (process->idle.gpu == IDLE_GPU_BUSY)
		return false;
	if (loads)
		return process->data_wait_since_ns;
	return process->idle.since_ns && (process->idle.gpu == IDLE_GPU_DONE || !thread->depth);
}

static struct lines_sum_key key_of(struct task_struct *p, const struct thread_state *thread,
				   const struct process_state *process, u32 cause)
{
	u64 since_ns;

	return (struct lines_sum_key){ .start_ns = process->start_ns,
				       .tgid = process->task.pid,
				       .tid = p->pid,
				       .cause = cause,
				       .role = thread->role,
				       .call = thread_call(thread, &since_ns) };
}

/*
 * The time since the last tick of this CPU, which a sample stands for. After a longer time, ticks
 * were disabled meanwhile, or the CPU itself did not run.
 */
static u64 tick_passed(struct scratch *scratch)
{
	u64 now = bpf_ktime_get_ns(), ns = now - scratch->ticked_ns;

	scratch->ticked_ns = now;
	return ns < LINES_PERIOD_MAX_NS ? ns : LINES_PERIOD_NS;
}

SEC("perf_event")
int lines_tick(void *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_get();
	struct thread_state *thread;
	struct process_state *process;
	struct lines_process *python;
	struct lines_sum_key key;
	struct lines_sum sum = { .nr_samples = 1 };
	struct away *away;
	u64 passed;
	bool loads;

	if (!scratch)
		return 0;
	passed = tick_passed(scratch);
	thread = thread_find(p);
	process = thread ? process_of(p, thread, &loads) : NULL;
	python = process && counts_now(thread, process, loads) ? wanted(process->task.pid) : NULL;
	if (!python)
		return 0;
	key = key_of(p, thread, process, loads ? IDLE_LOADER_CPU : idle_cause_now(&process->idle));
	if (key.cause >= IDLE_CAUSE_NR)
		return 0;
	__sync_fetch_and_add(&python->counts.nr_samples, 1);
	away = away_get(python, key.tgid, key.tid);
	if (!away)
		return 0;
	*(process->idle.gpu == IDLE_GPU_OPEN ? &sum.open_ns : &sum.done_ns) = passed;
	take_stack(p, process, python, away, &key.stack);
	lines_charge(away, &key, &sum, true);
	return 0;
}

/* The cause of the time in which a loader is away. Its other sleeps are no work for its consumer.
 */
static u32 loader_cause(struct task_struct *p, bool runnable)
{
	if (runnable)
		return IDLE_LOADER_RUNQUEUE;
	return BPF_CORE_READ_BITFIELD_PROBED(p, in_iowait) ? IDLE_LOADER_DISK : IDLE_CAUSE_NR;
}

static u64 switches_of(struct task_struct *p)
{
	return p->nvcsw + p->nivcsw;
}

static __noinline int thread_left(struct task_struct *p, bool runnable, u64 now)
{
	struct thread_state *thread = thread_find(p);
	struct lines_process *python;
	struct process_state *process;
	struct away *away;
	u32 cause = 0;
	bool loads;

	process = thread ? process_of(p, thread, &loads) : NULL;
	python = process && counts_now(thread, process, loads) ? wanted(process->task.pid) : NULL;
	if (python && loads)
		cause = loader_cause(p, runnable);
	if (!python || cause >= IDLE_CAUSE_NR)
		return 0;
	__sync_fetch_and_add(&python->counts.nr_samples, 1);
	away = away_get(python, process->task.pid, p->pid);
	if (!away)
		return 0;
	away->key = key_of(p, thread, process, cause);
	take_stack(p, process, python, away, &away->key.stack);
	away->wait_ns = loads ? process->data_wait_since_ns : 0;
	away->done = process->idle.done;
	away->open = process->idle.open;
	away->nr_switches = switches_of(p);
	away->nr_launches = python->gap.nr_launches;
	away->since_ns = now;
	return 0;
}

static bool is_one_gap(const struct lines_process *python, const struct away *away)
{
	return away->nr_launches == python->gap.nr_launches;
}

/* The causes of the launcher's absence are booked by now. */
static void launcher_is_back(struct lines_process *python, struct away *away,
			     const struct process_state *process)
{
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++) {
		struct lines_sum sum = {
			process->idle.done.cause_ns[cause] - away->done.cause_ns[cause],
			process->idle.open.cause_ns[cause] - away->open.cause_ns[cause], 1
		};

		if (!sum.done_ns && !sum.open_ns)
			continue;
		away->key.cause = cause;
		lines_charge(away, &away->key, &sum, is_one_gap(python, away));
	}
}

/* Only the part inside the wait of its consumer counts. */
static void loader_is_back(struct lines_process *python, struct away *away,
			   const struct process_state *consumer, u64 now)
{
	struct lines_sum sum = { .nr_samples = 1 };

	if (consumer->idle.gpu == IDLE_GPU_BUSY || away->wait_ns != consumer->data_wait_since_ns)
		return;
	*(consumer->idle.gpu == IDLE_GPU_DONE ? &sum.done_ns : &sum.open_ns) = now - away->since_ns;
	lines_charge(away, &away->key, &sum, is_one_gap(python, away));
}

static __noinline int thread_is_back(struct task_struct *p, u64 now)
{
	struct thread_state *thread = thread_find(p);
	struct process_state *process;
	struct lines_process *python;
	struct away *away;
	bool loads;

	process = thread ? process_of(p, thread, &loads) : NULL;
	python = process ? wanted(process->task.pid) : NULL;
	away = python ? away_find(process->task.pid, p->pid) : NULL;
	if (!away || !away->since_ns)
		return 0;
	if (away->nr_switches == switches_of(p) && loads == (away->wait_ns != 0)) {
		if (loads)
			loader_is_back(python, away, process, now);
		else
			launcher_is_back(python, away, process);
	}
	away->since_ns = 0;
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(lines_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u64 now = bpf_ktime_get_ns();

	thread_left(prev, preempt || !prev_state, now);
	thread_is_back(next, now);
	return 0;
}

/*
 * A launch of the process, from the call that makes it. The runtime's own launch of an unknown
 * kernel counts when no launch of its driver follows.
 */
__noinline int lines_launched(u32 tgid, u64 handle, bool is_inner)
{
	struct lines_process *process = wanted(tgid);

	if (!process)
		return 0;
	if (!gap_take(&process->gap)) {
		gap_tear(&process->gap);
		return 0;
	}
	if (gap_is_over(&process->gap, is_inner))
		gap_flush(process, GAP_UNKNOWN);
	if (handle == GAP_THROUGH) {
		process->gap.is_through = 1;
	} else {
		gap_flush(process, handle);
		gap_launched(&process->gap, handle);
	}
	gap_release(&process->gap);
	return 0;
}
