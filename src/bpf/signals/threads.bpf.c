// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Observes the threads of ML processes between their calls: sleeps and their
 * reasons, wakeups, forks, and waits for a CPU.
 *
 * A launcher that goes to sleep outside of any call waits for data, with these
 * exceptions: it called nanosleep, it waits for a child process, or a task
 * outside of its family or of its team wakes it (roles.bpf.h). Threads that are
 * created during the initialization of a collective runtime, or by such a thread,
 * are its collective helpers. The other rules for roles are in roles.bpf.h.
 *
 * These programs run at every context switch and wakeup of the machine, so each
 * program returns at once if the task has no state. Of other tasks, only the turns of each CPU are
 * noted (turns.bpf.h).
 *
 * Functions are static: kernels before 6.9 allow no task as an argument of a global function, and
 * 6.12 allows no call of one with preemption disabled.
 */
#include "bpf/signals/gpu.bpf.h"
#include "bpf/signals/idle.bpf.h"
#include "bpf/signals/ranks.bpf.h"

/* One of several bits: a futex wait is also freezable. */
#define TASK_INTERRUPTIBLE 1
/* For so long after a loader has proven itself, the loaders of a launcher are known. */
#define LOADERS_KNOWN_NS   (2 * NSEC_PER_SEC)

/* The utilization of the GPU that the process mainly uses, plus one; 0: unknown. */
static u32 gpu_sampled(const struct process_state *process)
{
	u32 gpu = process_gpu(process);

	return gpu < GPU_MAX ? gpu_utilization[gpu] : 0;
}

static void look_at(struct task_struct *p, struct process_state *process, u64 now)
{
	u64 since = process->task.phase_since_ns, nr = process->task.nr_transitions;
	u32 sampled;

	if (now < process->window.since_ns + PROCESS_WINDOW_NS)
		return;
	sampled = gpu_sampled(process);
	process_write_begin(process);
	process->task.signals.collective_mapped = collective_is_mapped(p);
	process_infer(&phase_config, process, sampled - 1, sampled > 0, now);
	process_write_end(process);
	phase_changed(p, process, nr, since);
}

/* `distance`: 0 if only its ancestry speaks for it. */
static void thread_loads(struct task_struct *p, struct thread_state *thread,
			 const struct consumer_key *consumer, u32 distance, u64 now)
{
	struct consumer *row = consumer_at(consumer);

	if (distance)
		role_prove(&thread->evidence, distance, now);
	else
		role_presume(&thread->evidence, now);
	if (distance && row)
		row->proven_ns = now;
	works_for(thread, consumer);
	thread_set_role(p, thread, ROLE_LOADER, now);
}

static bool may_load(const struct thread_state *thread)
{
	return thread && (thread->role == ROLE_OTHER || thread->role == ROLE_LOADER);
}

static __noinline int loader_found(struct task_struct *p, struct task_struct *leader,
				   const struct consumer_key *consumer, u32 distance, u64 now)
{
	struct thread_state *thread = thread_get(p), *leads;
	struct process_state *process;
	u64 since, nr;

	if (!may_load(thread))
		return 0;
	thread_loads(p, thread, consumer, distance, now);
	/*
	 * Loaders that are threads share the process of the launcher, and
	 * therefore its phase.
	 */
	if ((u32)p->tgid == consumer->tgid)
		return 0;
	/*
	 * In another process any thread may pass the data on, but its first
	 * thread has made it.
	 */
	leads = leader && leader != p ? thread_get(leader) : NULL;
	if (may_load(leads))
		thread_loads(leader, leads, consumer, distance, now);
	process = process_get_led_by(p, leader);
	if (!process || process->launcher_tid || process->consumer_tgid == consumer->tgid)
		return 0;
	since = process->task.phase_since_ns;
	nr = process->task.nr_transitions;
	process_write_begin(process);
	process->consumer_tgid = consumer->tgid;
	task_transition(&process->task, PHASE_DATA_LOADING, now);
	process_write_end(process);
	phase_changed(p, process, nr, since);
	return 0;
}

/* A task that works for a launcher loses its role when the evidence does not hold any more. */
static void role_expires(struct task_struct *p, struct thread_state *thread, u64 now)
{
	const struct consumer *row;
	bool is_wrong = false;

	if (thread->role == ROLE_LOADER && !thread->evidence.proven_ns) {
		row = consumer_at(&thread->consumer);
		is_wrong = !row || role_was_guess(&thread->evidence, row->fed_ns);
	} else if (thread->role == ROLE_CRITICAL && thread->consumer.tgid != (u32)p->tgid) {
		is_wrong = role_is_old(&thread->evidence, now);
	}
	if (!is_wrong)
		return;
	/* Its children are not taken for loaders because it once was. */
	thread->evidence.presumed_ns = 0;
	thread_set_role(p, thread, ROLE_OTHER, now);
}

/* A task that the launcher woke goes to sleep. */
static __noinline int asked_rests(struct task_struct *p, struct thread_state *thread, u64 now)
{
	const struct consumer *row = consumer_at(&thread->consumer);
	struct role_evidence *evidence = &thread->evidence;
	struct role_question question = { .cpu_ns = p->se.sum_exec_runtime, .now = now };

	if (row) {
		question.answered_ns = row->answered_ns;
		question.polled_ns = row->polled_ns;
		question.fed_ns = row->fed_ns;
	}
	if (role_rests(evidence, &question) && role_is_team(evidence) &&
	    (may_load(thread) || thread->role == ROLE_CRITICAL)) {
		thread_set_role(p, thread, ROLE_CRITICAL, now);
		role_prove(evidence, 1, now);
	} else if (thread->role == ROLE_CRITICAL && !evidence->nr_answers &&
		   thread->consumer.tgid == (u32)p->tgid) {
		thread_set_role(p, thread, ROLE_OTHER, now);
	}
	return 0;
}

/* The launcher may wait for data from now on; `since` 0: it does not any more. */
static void launcher_sleeps(struct thread_state *thread, u64 since)
{
	struct consumer *row;

	if (thread->sleeps_since_ns == since)
		return;
	thread->sleeps_since_ns = since;
	row = consumer_at(&thread->consumer);
	if (row)
		row->sleeps_since_ns = since;
}

/* The turn of a launcher outside of any call ends. */
static void launcher_turns(struct task_struct *p, struct thread_state *thread,
			   const struct process_state *process, bool runnable, u64 now)
{
	role_turn(&thread->evidence, runnable, compat_syscall(p) == SYSCALL_SCHED_YIELD);
	consumer_polls(thread, process, now);
}

static __noinline int thread_leaves(struct task_struct *p, bool runnable, u32 state, u64 now)
{
	struct thread_state *thread = thread_find(p);
	struct process_state *process;
	enum sleep_kind kind;

	if (!thread)
		return 0;
	/* First, because the verifier examines it again for each way to it. */
	if (thread->role == ROLE_LOADER)
		loader_did(p, SHARE_CPU, thread->running_since_ns, now);
	process = process_find(p);
	if (thread->running_since_ns && process && is_launcher(thread)) {
		process_burst(process, now - thread->running_since_ns);
		if (!thread->depth)
			launcher_turns(p, thread, process, runnable, now);
	}
	thread->running_since_ns = 0;
	gpu_waiter_does(thread, runnable ? GPU_WAIT_QUEUED : GPU_WAIT_SLEEPS, now);
	if (process && is_launcher_of(p, thread, process))
		launcher_leaves(p, thread, process, runnable, now);
	if (!runnable && thread->evidence.asked && !is_launcher(thread))
		asked_rests(p, thread, now);
	if (runnable) {
		thread->runnable_since_ns = now;
		if (process)
			gpu_waiter_counts(thread, process, false, now);
		return 0;
	}
	if (BPF_CORE_READ_BITFIELD_PROBED(p, in_iowait)) {
		thread->io_since_ns = now;
		return 0;
	}
	if (!process || !(state & TASK_INTERRUPTIBLE))
		return 0;
	kind = compat_sleep_kind(p);
	if (kind == SLEEP_FUTEX) {
		__sync_fetch_and_add(&process->window.nr_futex_waits, 1);
		if (thread_call_kind(thread) == CALL_KIND_COLLECTIVE)
			thread->futex_since_ns = now;
		if (is_launcher_of(p, thread, process) && !thread->depth && !thread->scope)
			thread->rank_wait.since_ns = now;
	}
	if (kind == SLEEP_NOT_FOR_DATA || !is_launcher(thread) || thread->depth ||
	    process->tells_waits)
		return 0;
	launcher_sleeps(thread, now);
	if (process->launcher_tid == (u32)p->pid)
		data_wait_begins(p, process, now);
	return 0;
}

static __noinline int thread_runs(struct task_struct *p, struct task_struct *leaving, u64 now)
{
	struct thread_state *thread = thread_find(p);
	struct process_state *process;
	u64 waited, before;

	if (!thread)
		return 0;
	/* First, because the verifier examines it again for each way to it. */
	if (thread->role == ROLE_LOADER)
		loader_runs(p, thread, leaving, now);
	process = process_find(p);
	waited = thread->runnable_since_ns ? now - thread->runnable_since_ns : 0;
	thread->runnable_since_ns = 0;
	thread->running_since_ns = now;
	gpu_waiter_does(thread, GPU_WAIT_RUNS, now);
	thread->runqueue_wait_ns += waited;
	if (thread->futex_since_ns && !thread->lock_passed_on)
		thread->futex_wait_ns += now - thread->futex_since_ns;
	thread->futex_since_ns = 0;
	if (!process)
		return 0;
	__sync_fetch_and_add(&process->runqueue_wait_ns, waited);
	/* In a sync, the next line books the wait. */
	before = launcher_waited(thread, process);
	gpu_waiter_counts(thread, process, true, now);
	launcher_confirm(p, thread, process, now);
	if (is_launcher_of(p, thread, process))
		launcher_runs(thread, process, leaving, before, now);
	if (is_launcher(thread)) {
		if (waited)
			process_sample(process, HIST_RUNQUEUE_WAIT, waited);
		if (process->data_wait_since_ns && !process->tells_waits &&
		    process->launcher_tid == (u32)p->pid)
			data_wait_ends(p, process, now);
		if (thread->rank_wait.since_ns)
			rank_wait_ends(p, process, &thread->rank_wait);
		launcher_sleeps(thread, 0);
	}
	look_at(p, process, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(thread_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u64 now;

	if (!ml_seen)
		return 0;
	now = bpf_ktime_get_ns();
	thread_leaves(prev, preempt || !prev_state, prev_state, now);
	turn_ends(prev, now);
	thread_runs(next, prev, now);
	return 0;
}

/* A task wakes another one. The leaders are read once: see process_led_by(). */
struct wakeup {
	struct task_struct *p, *leader;
	struct task_struct *waker, *waker_leader;
	struct thread_state *thread, *waking; /* of both; NULL if there is none */
	u64 now;
};

static void thread_woken(const struct wakeup *wakeup)
{
	struct thread_state *thread = wakeup->thread;
	struct process_state *process;
	struct task_struct *p = wakeup->p;
	u64 now = wakeup->now, waited;

	/* First, because the verifier examines it again for each way to it. */
	if (thread->role == ROLE_LOADER)
		loader_did(p, SHARE_DISK, thread->io_since_ns, now);
	role_expires(p, thread, now);
	thread->runnable_since_ns = now;
	process = process_led_by(wakeup->leader);
	if (!thread->running_since_ns)
		gpu_waiter_does(thread, GPU_WAIT_QUEUED, now);
	if (process && !thread->running_since_ns)
		gpu_waiter_counts(thread, process, false, now);
	if (!thread->io_since_ns)
		return;
	waited = now - thread->io_since_ns;
	thread->io_since_ns = 0;
	thread->io_wait_ns += waited;
	if (!process)
		return;
	__sync_fetch_and_add(&process->io_wait_ns, waited);
	__sync_fetch_and_add(&process->window.io_wait_ns, waited);
}

/*
 * A futex wait inside a collective is a wait for another rank, unless a thread of the own process
 * ends it that is in no collective: that thread passes on a lock of their runtime.
 *
 * Each wakeup decides anew, also that of a thread that does not sleep yet: the tracepoint of a
 * wakeup can come before that of the sleep which it ends.
 */
static bool passes_on_lock(const struct wakeup *wakeup)
{
	return wakeup->waker->tgid == wakeup->p->tgid &&
	       (!wakeup->waking || thread_call_kind(wakeup->waking) != CALL_KIND_COLLECTIVE);
}

/* Whether the task wakes another one by what it does, and not an interrupt in its context. */
static bool is_cause(struct task_struct *waker)
{
	return !(waker->flags & PF_KTHREAD) && compat_syscall(waker) >= 0;
}

/*
 * A member of the family wakes a launcher that may be waiting for data. Returns whether it
 * brings data.
 */
static bool launcher_fed(const struct wakeup *wakeup, const struct process_state *process)
{
	const struct thread_state *waking = wakeup->waking;
	bool is_own = wakeup->waker->tgid == wakeup->p->tgid;
	u64 nr_launches = process_launches(process);
	struct consumer *row;

	/* Threads of an interpreter wake each other to pass on its lock. */
	if (process->tells_waits && is_own)
		return false;
	row = consumer_at(&wakeup->thread->consumer);
	if (row)
		row->waited_ns = wakeup->now;
	if (!is_own || !waking || !role_delays(&waking->evidence, nr_launches)) {
		loader_found(wakeup->waker, wakeup->waker_leader, &wakeup->thread->consumer, 1,
			     wakeup->now);
		return true;
	}
	if (row)
		row->answered_ns = wakeup->now;
	return waking->role != ROLE_CRITICAL;
}

/* A task wakes a launcher, or a loader wakes a thread of an ML process. */
static void process_hears(const struct wakeup *wakeup)
{
	struct process_state *process = process_led_by(wakeup->leader);
	struct task_struct *p = wakeup->p, *waker = wakeup->waker;
	struct thread_state *thread = wakeup->thread, *waking = wakeup->waking;
	bool to_launcher = process && is_launcher_of(p, thread, process);
	bool is_kin;

	if (!process)
		return;
	if (to_launcher)
		rank_wait_ended_by(p, &thread->rank_wait, waker);
	is_kin = waker != p && is_family(waker, p->tgid);
	if (process->data_wait_since_ns && is_kin && waking && waking->role == ROLE_LOADER)
		data_brought(waker, waking, process, to_launcher, wakeup->now);
	if (is_launcher(thread) && (thread->sleeps_since_ns || process->data_wait_since_ns)) {
		if (is_kin && launcher_fed(wakeup, process) && to_launcher &&
		    process->data_wait_since_ns)
			process->woken_with_data = 1;
		if (!is_kin && waker != p && is_cause(waker) && is_one_tenant(p, waker))
			critical_found(waker, wakeup->waker_leader, &thread->consumer, 1,
				       wakeup->now);
	}
	if (to_launcher)
		launcher_wakes(thread, process, wakeup->now);
}

/*
 * A launcher wakes another task: one that it asks for something, or a loader that was ahead and
 * has room again. A launcher that asks another one of its process waits for that one and not
 * for data.
 */
static void launcher_asks(const struct wakeup *wakeup)
{
	struct task_struct *p = wakeup->p, *waker = wakeup->waker;
	struct thread_state *thread = wakeup->thread, *waking = wakeup->waking;
	struct process_state *process;

	if (p->tgid != waker->tgid && is_family(p, waker->tgid)) {
		loader_found(p, wakeup->leader, &waking->consumer, 1, wakeup->now);
		return;
	}
	if (waking->depth || (p->tgid != waker->tgid && !is_one_tenant(p, waker)))
		return;
	process = process_led_by(wakeup->waker_leader);
	thread = thread ?: thread_get(p);
	if (!process || !thread)
		return;
	/* A launcher that works ahead goes on without what it wakes in another process. */
	if (p->tgid != waker->tgid && phase_is_busy(process->task.phase))
		return;
	if (is_launcher(thread) && p->tgid == waker->tgid)
		thread = waking;
	else if (thread->role == ROLE_OTHER || thread->role == ROLE_CRITICAL)
		works_for(thread, &waking->consumer);
	else
		return;
	role_ask(&thread->evidence, process_launches(process), p->se.sum_exec_runtime, wakeup->now);
}

/* Threads of an interpreter wake each other to pass on its lock. */
static bool passes_on_interpreter(const struct wakeup *wakeup, u32 tgid)
{
	struct process_state *process =
		(u32)wakeup->waker->tgid == tgid ? process_led_by(wakeup->waker_leader) : NULL;

	return process && process->tells_waits;
}

/*
 * A task wakes one that works for a launcher: it is part of the chain. If it is not of the
 * family, then only while the launcher waits.
 */
static void chain_grows(const struct wakeup *wakeup)
{
	const struct thread_state *thread = wakeup->thread;
	struct task_struct *waker = wakeup->waker;
	u32 distance = thread->evidence.distance + 1;
	const struct consumer *row;

	if (!is_cause(waker))
		return;
	if (thread->role == ROLE_LOADER && is_family(waker, thread->consumer.tgid)) {
		if (!passes_on_interpreter(wakeup, thread->consumer.tgid))
			loader_found(waker, wakeup->waker_leader, &thread->consumer, distance,
				     wakeup->now);
		return;
	}
	row = consumer_at(&thread->consumer);
	if (row && row->sleeps_since_ns && is_one_tenant(wakeup->p, waker))
		critical_found(waker, wakeup->waker_leader, &thread->consumer, distance,
			       wakeup->now);
}

static bool is_ordinary(const struct thread_state *thread)
{
	return !thread || thread->role == ROLE_OTHER;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(thread_waking, struct task_struct *p)
{
	struct wakeup wakeup = { .p = p, .waker = bpf_get_current_task_btf() };
	struct thread_state *thread, *waking;

	if (!ml_seen)
		return 0;
	wakeup.thread = thread = thread_find(p);
	wakeup.waking = waking = thread_find(wakeup.waker);
	if (!thread && is_ordinary(waking))
		return 0;
	wakeup.leader = p->group_leader;
	wakeup.waker_leader = wakeup.waker->group_leader;
	wakeup.now = bpf_ktime_get_ns();
	if (thread) {
		thread_woken(&wakeup);
		thread->lock_passed_on = passes_on_lock(&wakeup);
	}
	if (is_launcher(thread) || (waking && waking->role == ROLE_LOADER))
		process_hears(&wakeup);
	if (is_launcher(waking))
		launcher_asks(&wakeup);
	else if (thread && is_ordinary(waking) && role_chain_goes_on(&thread->evidence) &&
		 (thread->role == ROLE_LOADER || thread->role == ROLE_CRITICAL))
		chain_grows(&wakeup);
	return 0;
}

/* Records the disk that a thread may wait for. */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(thread_reads, struct bio *bio)
{
	struct thread_state *thread;

	if (!ml_seen)
		return 0;
	thread = thread_find(bpf_get_current_task_btf());
	if (thread)
		bpf_probe_read_kernel(thread->wait.disk, COMM_LEN,
				      bio->bi_bdev->bd_disk->disk_name);
	return 0;
}

/*
 * Finds loaders that were forked before their parent had a launcher. User space runs it when a
 * process gets its first launcher, so that no call of a process waits for a walk over all tasks.
 */
SEC("iter/task")
int loaders_find(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task, *parent;
	struct process_state *process;

	if (!p || p->pid != p->tgid || !(p->flags & PF_FORKNOEXEC))
		return 0;
	parent = p->real_parent;
	process = parent ? process_find(parent) : NULL;
	if (process && process->launcher_tid)
		loader_found(p, p->group_leader, last_consumer(process), 0, bpf_ktime_get_ns());
	return 0;
}

/*
 * A thread that is created during the initialization of a collective runtime is its helper, and
 * so is one that a helper creates: its service creates the thread that makes progress later.
 */
static bool makes_helpers(const struct thread_state *thread)
{
	u32 kind = thread_call_kind(thread);

	return kind == CALL_KIND_COMM_INIT || kind == CALL_KIND_GROUP_END ||
	       thread->role == ROLE_COLLECTIVE_HELPER;
}

/* Whether the launcher has loaders that work: a further child process may be something else. */
static bool has_loaders(const struct consumer_key *consumer, u64 now)
{
	const struct consumer *row = consumer_at(consumer);

	return row && row->proven_ns && now < row->proven_ns + LOADERS_KNOWN_NS;
}

/* Whether only its ancestry spoke for the task, and it has proven nothing. */
static bool is_presumed(const struct thread_state *thread)
{
	const struct consumer *row;

	if (!thread || !thread->evidence.presumed_ns || thread->evidence.proven_ns ||
	    !may_load(thread))
		return false;
	row = consumer_at(&thread->consumer);
	return row && !role_was_guess(&thread->evidence, row->fed_ns);
}

/* A process begins, by a fork or by an exec: roles.bpf.h. `thread`: that of the parent. */
static __noinline int child_begins(struct task_struct *child, struct task_struct *parent,
				   struct thread_state *thread, u64 now)
{
	struct process_state *process = process_find(parent);
	bool is_server = is_presumed(thread);
	struct consumer_key consumer;

	if (thread && (is_launcher(thread) || is_server))
		consumer = thread->consumer;
	else if (process && process->launcher_tid)
		consumer = *last_consumer(process);
	else
		return 0;
	if (is_server)
		thread_set_role(parent, thread, ROLE_OTHER, now);
	if (is_family(child, consumer.tgid) && !has_loaders(&consumer, now))
		loader_found(child, child->group_leader, &consumer, 0, now);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(thread_fork, struct task_struct *parent, struct task_struct *child)
{
	struct thread_state *thread = thread_find(parent), *made;
	u64 now = bpf_ktime_get_ns();

	if (parent->tgid == child->tgid) {
		made = thread && makes_helpers(thread) ? thread_get(child) : NULL;
		if (made)
			thread_set_role(child, made, ROLE_COLLECTIVE_HELPER, now);
		return 0;
	}
	child_begins(child, parent, thread, now);
	return 0;
}

static void thread_gone(struct task_struct *p, u64 now)
{
	struct thread_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&nr_dropped_events, 1);
		return;
	}
	event_fill(&event->event, EVENT_THREAD_EXIT, p, 0, now);
	thread_describe(p, &event->thread);
	event_submit(event);
}

static void launcher_gone(struct task_struct *p, struct process_state *process)
{
	struct thread_state *thread = thread_find(p);

	if (thread)
		consumer_ends(thread, process);
}

static void process_gone(struct task_struct *p, struct process_state *process, u64 now)
{
	u64 since = process->task.phase_since_ns, nr = process->task.nr_transitions;
	struct exit_event *event;

	tenant_add(process->uid, process->group, -1);
	boundary_expire(&phase_config, &process->task, now);
	phase_changed(p, process, nr, since);
	task_transition(&process->task, process->task.phase, now);
	idle_book(&process->idle, now);
	event = bpf_ringbuf_reserve(&reports, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&nr_dropped_events, 1);
		return;
	}
	event_fill(&event->event, EVENT_EXIT, p, 0, now);
	bpf_probe_read_kernel(&event->process, sizeof(event->process), process);
	event_submit(event);
}

/*
 * An exiting task still sleeps and wakes up, which must not be observed, so its
 * state is deleted now. From 7.0 this program can be preempted, and the kernel
 * skips a program that already runs on the same CPU. If two processes exit on one
 * CPU at the same time, one exit may be missed. The kernel counts the misses.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_exit, struct task_struct *p)
{
	struct process_state *process = process_find(p);
	u64 now = bpf_ktime_get_ns();

	launcher_gone(p, process);
	if (!process)
		return 0;
	if (process->launcher_tid == (u32)p->pid)
		idle_doing(&process->idle, IDLE_OTHER, now);
	thread_gone(p, now);
	bpf_task_storage_delete(&threads, p);
	if (p->signal->live.counter || !p->group_leader)
		return 0;
	process_gone(p, process, now);
	bpf_task_storage_delete(&processes, p->group_leader);
	return 0;
}

/* After exec the task is a different program: report and delete its state. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(thread_exec, struct task_struct *p)
{
	struct process_state *process = process_find(p);
	struct task_struct *parent;
	u64 now = bpf_ktime_get_ns();

	launcher_gone(p, process);
	if (process) {
		thread_gone(p, now);
		process_gone(p, process, now);
	}
	bpf_task_storage_delete(&threads, p);
	bpf_task_storage_delete(&processes, p);
	bpf_task_storage_delete(&collectives, p);
	bpf_task_storage_delete(&gpu_threads, p);
	bpf_task_storage_delete(&collective_mappings, p);
	bpf_task_storage_delete(&pythons, p);
	/* Only children of an ML process: the exec of any other program ends here. */
	parent = p->real_parent;
	if (parent && process_find(parent))
		child_begins(p, parent, thread_find(parent), bpf_ktime_get_ns());
	return 0;
}
