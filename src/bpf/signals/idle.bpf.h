/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Causes of idle time, from the behavior of threads. Keeps the account of
 * core/idle.h for the launcher of a process, the part of each loader in a wait of
 * its consumer, and the names of the tasks and disks that delayed them.
 *
 * Trusts what the kernel reports of a task that leaves its CPU.
 */
#include "bpf/compat.bpf.h"
#include "bpf/signals/roles.bpf.h"
#include "bpf/signals/turns.bpf.h"

#define CULPRITS 4096

/* An LRU map: there can be many names, but the few that matter are updated often. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CULPRITS);
	__type(key, struct culprit_key);
	__type(value, u64);
} culprits SEC(".maps");

static __noinline int culprit_add(struct process_state *process, u32 cause, const char *name,
				  u64 ns)
{
	struct culprit_key key = { .cause = cause };
	u64 *known;

	if (!ns || !process || !name)
		return 0;
	key.start_ns = process->start_ns;
	key.tgid = process->task.pid;
	bpf_probe_read_kernel(key.name, sizeof(key.name), name);
	if (!key.name[0])
		return 0;
	known = bpf_map_lookup_elem(&culprits, &key);
	if (known)
		__sync_fetch_and_add(known, ns);
	else
		bpf_map_update_elem(&culprits, &key, &ns, BPF_NOEXIST);
	return 0;
}

struct culprit_walk {
	struct turns *turns;
	struct turns_walk walk;
	struct process_state *process;
	u32 cause;
};

static int culprit_step(u32 i, struct culprit_walk *culprits)
{
	struct turn_name name = {};
	u64 part = turns_part(culprits->turns, i, &culprits->walk, &name);

	culprit_add(culprits->process, culprits->cause, (const char *)&name, part);
	return !culprits->walk.left_ns;
}

/* The tasks that had this CPU are the culprits of a wait for it that ends now. */
static void culprits_ran(struct process_state *process, struct task_struct *leaving, u32 cause,
			 u64 waited, u64 now)
{
	struct culprit_walk culprits = { .turns = turns_of_cpu(),
					 .walk = { .until_ns = now, .left_ns = waited },
					 .process = process,
					 .cause = cause };

	if (!waited || !culprits.turns)
		return;
	turn_name_of(leaving, &culprits.walk.leaving);
	bpf_loop(TURNS, culprit_step, &culprits, 0);
}

struct longest_walk {
	struct turns *turns;
	struct turns_walk walk;
	struct turn_name name;
	u64 part;
};

static int longest_step(u32 i, struct longest_walk *longest)
{
	struct turn_name name = {};
	u64 part = turns_part(longest->turns, i, &longest->walk, &name);

	if (part > longest->part) {
		longest->part = part;
		longest->name = name;
	}
	return !longest->walk.left_ns;
}

/* The task with the longest turn in a wait for this CPU that ends now. */
static void ran_longest(struct task_struct *leaving, char ret[COMM_LEN], u64 waited, u64 now)
{
	struct longest_walk longest = { .turns = turns_of_cpu(),
					.walk = { .until_ns = now, .left_ns = waited } };

	if (!longest.turns)
		return;
	turn_name_of(leaving, &longest.walk.leaving);
	bpf_loop(TURNS, longest_step, &longest, 0);
	bpf_probe_read_kernel(ret, COMM_LEN, &longest.name);
}

/* The cause for the launcher. While it loads data itself, this is a cause of the loader. */
static u32 launcher_cause(const struct thread_state *thread, u32 cause)
{
	return thread->scope ? idle_causes_of_loading[cause & (IDLE_CAUSE_SLOTS - 1)] : cause;
}

static void launcher_does(struct process_state *process, const struct thread_state *thread,
			  u32 cause, u64 now)
{
	process_write_begin(process);
	idle_doing(&process->idle, launcher_cause(thread, cause), now);
	process_write_end(process);
}

/* The launcher leaves its CPU and either stays runnable or sleeps. */
static void launcher_leaves(struct task_struct *p, const struct thread_state *thread,
			    struct process_state *process, bool runnable, u64 now)
{
	enum sleep_kind kind;

	if (runnable) {
		launcher_does(process, thread, IDLE_RUNQUEUE, now);
	} else if (compat_in_memstall(p)) {
		launcher_does(process, thread, IDLE_MEMORY, now);
	} else if (BPF_CORE_READ_BITFIELD_PROBED(p, in_iowait)) {
		launcher_does(process, thread, IDLE_DISK, now);
	} else {
		kind = compat_sleep_kind(p);
		/*
		 * If the framework reports its waits for data, no other sleep is
		 * a wait for data.
		 */
		if (thread->scope ||
		    (!thread->depth && !process->tells_waits && kind != SLEEP_NOT_FOR_DATA)) {
			process_write_begin(process);
			idle_sleeps(&process->idle, kind == SLEEP_FUTEX, now);
			process_write_end(process);
		} else {
			launcher_does(process, thread, kind == SLEEP_FUTEX ? IDLE_LOCK : IDLE_OTHER,
				      now);
		}
	}
}

static u64 launcher_waited(const struct thread_state *thread, const struct process_state *process)
{
	return idle_total(&process->idle, launcher_cause(thread, IDLE_RUNQUEUE));
}

/* The launcher runs on a CPU that another task leaves. `before`: what it had waited until then. */
static void launcher_runs(const struct thread_state *thread, struct process_state *process,
			  struct task_struct *leaving, u64 before, u64 now)
{
	launcher_does(process, thread, IDLE_CPU, now);
	culprits_ran(process, leaving, launcher_cause(thread, IDLE_RUNQUEUE),
		     launcher_waited(thread, process) - before, now);
}

/* Ends a wait for data. The part of the loader that brought the data is known by now. */
static void wait_is_over(struct process_state *process, u64 now)
{
	const struct loader_wait *brought = &process->brought;
	u64 runqueue = idle_total(&process->idle, IDLE_LOADER_RUNQUEUE);
	u64 disk = idle_total(&process->idle, IDLE_LOADER_DISK);

	process_write_begin(process);
	idle_decide_data(&process->idle, &brought->share, process->data_wait_since_ns, now);
	process_write_end(process);
	culprit_add(process, IDLE_LOADER_RUNQUEUE, brought->ran_instead,
		    idle_total(&process->idle, IDLE_LOADER_RUNQUEUE) - runqueue);
	culprit_add(process, IDLE_LOADER_DISK, brought->disk,
		    idle_total(&process->idle, IDLE_LOADER_DISK) - disk);
}

/* The launcher is woken up. The part of its waker has been recorded before. */
static void launcher_wakes(const struct thread_state *thread, struct process_state *process,
			   u64 now)
{
	u64 disk = idle_total(&process->idle, IDLE_DISK);

	/* The launcher is still on its CPU and does not leave it now. */
	if (thread->running_since_ns)
		return;
	if (process->idle.doing == IDLE_UNDECIDED &&
	    (process->tells_waits ? thread->scope != 0 : process->woken_with_data)) {
		wait_is_over(process, now);
		return;
	}
	launcher_does(process, thread, IDLE_RUNQUEUE, now);
	culprit_add(process, IDLE_DISK, thread->wait.disk,
		    idle_total(&process->idle, IDLE_DISK) - disk);
}

/*
 * A loader was in one state until now. Books this as its part in the wait of its consumer.
 * Returns the booked time.
 */
static u64 loader_books(struct thread_state *thread, const struct process_state *consumer, u32 what,
			u64 since, u64 now)
{
	struct loader_wait *wait = &thread->wait;

	if (!since || !consumer->data_wait_since_ns)
		return 0;
	if (wait->share.wait_ns != consumer->data_wait_since_ns) {
		wait->longest_ns = 0;
		wait->ran_instead[0] = 0;
	}
	return share_book(&wait->share, consumer->data_wait_since_ns, what, since, now);
}

static __noinline u64 loader_did(struct task_struct *p, u32 what, u64 since, u64 now)
{
	struct thread_state *thread = thread_find(p);
	struct process_state *consumer = thread && since ? consumer_process(p) : NULL;

	return consumer ? loader_books(thread, consumer, what, since, now) : 0;
}

static void loader_runs(struct task_struct *p, struct thread_state *thread,
			struct task_struct *leaving, u64 now)
{
	u64 waited = loader_did(p, SHARE_RUNQUEUE, thread->runnable_since_ns, now);

	if (waited <= thread->wait.longest_ns)
		return;
	thread->wait.longest_ns = waited;
	ran_longest(leaving, thread->wait.ran_instead, waited, now);
}

/* Books the current state of a loader up to now. */
static void loader_is(struct thread_state *thread, const struct process_state *consumer, u64 now)
{
	u64 since = thread->runnable_since_ns;
	u32 what = SHARE_RUNQUEUE;

	if (thread->running_since_ns) {
		what = SHARE_CPU;
		since = thread->running_since_ns;
	} else if (thread->io_since_ns) {
		what = SHARE_DISK;
		since = thread->io_since_ns;
	}
	loader_books(thread, consumer, what, since, now);
}

/*
 * A loader wakes a thread of its consumer: data is on its way. In a forked
 * process any thread may pass the data on, but its first thread has made it. If a
 * loader wakes the launcher itself, the wait is attributed to that loader.
 * Otherwise it is attributed to the loader with the largest part in the wait.
 */
static void data_brought(struct task_struct *waker, struct thread_state *waking,
			 struct process_state *consumer, bool to_launcher, u64 now)
{
	struct task_struct *maker =
		consumer->task.pid == (u32)waker->tgid ? waker : waker->group_leader;
	struct thread_state *made = maker == waker ? waking : maker ? thread_find(maker) : NULL;
	struct wait_share *before = &consumer->brought.share;

	if (!made)
		return;
	loader_is(made, consumer, now);
	if (made->wait.share.wait_ns != consumer->data_wait_since_ns)
		return;
	if (to_launcher || before->wait_ns != made->wait.share.wait_ns ||
	    share_total(before) < share_total(&made->wait.share))
		consumer->brought = made->wait;
}
