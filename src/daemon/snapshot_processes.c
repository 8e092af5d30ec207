/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/snapshot_processes.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "collect/job_scan.h"
#include "core/comm.h"
#include "core/job.h"

/* Paths are shorter. */
#define CGROUP_TEXT_LEN 8192

static struct snapshot_process *find(const struct snapshot *s, const struct process_state *process)
{
	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == process->task.pid &&
		    s->processes[i].start_ns == process->start_ns)
			return &s->processes[i];
	return NULL;
}

static u32 add_job(struct snapshot *s, const char *cgroup, const char *name, const char *container,
		   u32 kind)
{
	u32 index = snapshot_add_job(s, cgroup, name);
	struct snapshot_job *job = index ? &s->jobs[index - 1] : NULL;

	if (job && !*job->container)
		snapshot_set_text(job->container, sizeof(job->container), container,
				  sizeof(job->container));
	if (job)
		job->kind = kind;
	return index;
}

/* A time of another clock, in ms since the epoch. */
static u64 wall_ms(clockid_t clock, u64 time_ns)
{
	u64 now_ns = time_of_ns(clock), age_ns = now_ns > time_ns ? now_ns - time_ns : 0;

	return (time_of_ns(CLOCK_REALTIME) - age_ns) / NSEC_PER_MSEC;
}

/* A process that moves to another cgroup stays in the job of its first cgroup. */
static void fold_job(const struct snapshot *before, struct snapshot *s,
		     const struct process_state *process, struct snapshot_process *to)
{
	const struct snapshot_process *known = find(before, process);
	const struct snapshot_job *job = known ? snapshot_job(before, known) : NULL;
	char cgroup[CGROUP_TEXT_LEN];
	struct job_identity identity;

	to->started_ms = known ? known->started_ms : wall_ms(CLOCK_BOOTTIME, process->start_ns);
	to->job = 0;
	if (job) {
		to->job = add_job(s, job->cgroup, job->name, job->container, job->kind);
		memcpy(to->step, known->step, sizeof(to->step));
	} else if (job_scan_cgroup("/proc", (pid_t)process->task.pid, cgroup, sizeof(cgroup)) ==
		   0) {
		job_identify(cgroup, &identity);
		to->job = add_job(s, identity.cgroup, identity.name, identity.container,
				  identity.kind);
		snapshot_set_text(to->step, sizeof(to->step), identity.step, sizeof(identity.step));
	}
}

/* If the runtime calls the driver, both see the same memory. The larger account is complete. */
static const struct memory_book *book_of(const struct process_state *process, u32 device)
{
	const struct memory_book *runtime = &process->books[LEVEL_RUNTIME][device];
	const struct memory_book *driver = &process->books[LEVEL_DRIVER][device];

	return driver->peak_bytes >= runtime->peak_bytes ? driver : runtime;
}

/* For several unknown GPUs, the sum of the peaks is an upper bound of the common peak. */
static void add_book(struct memory_book *to, const struct memory_book *book)
{
	to->current_bytes += book->current_bytes;
	to->peak_bytes += book->peak_bytes;
	to->nr_allocs += book->nr_allocs;
	to->nr_frees += book->nr_frees;
}

/* Two devices of a process can be parts of one GPU, and it may not name them as it should. */
static void add_memory(struct snapshot_process *to, u32 gpu, const struct memory_book *book)
{
	for (u32 i = 0; i < to->nr_memory; i++)
		if (to->memory[i].gpu == gpu) {
			add_book(&to->memory[i].book, book);
			return;
		}
	to->memory[to->nr_memory++] = (struct snapshot_memory){ .gpu = gpu, .book = *book };
}

/* A GPU becomes known later than its first use, or never. */
static struct gpu_numbers numbers_of(const struct kernel *kernel,
				     const struct process_state *process)
{
	struct gpu_numbers numbers = {};

	(void)kernel_gpu_numbers(kernel, process, &numbers);
	return numbers;
}

static void fold_memory(const struct gpu_numbers *numbers, const struct process_state *process,
			struct snapshot_process *to)
{
	struct snapshot_memory unknown = { .gpu = SNAPSHOT_GPU_UNKNOWN };

	for (u32 device = 0; device < GPU_MAX; device++) {
		const struct memory_book *book = book_of(process, device);

		if (!book->nr_allocs)
			continue;
		if (numbers->of[device])
			add_memory(to, numbers->of[device] - 1U, book);
		else
			add_book(&unknown.book, book);
	}
	if (unknown.book.nr_allocs)
		to->memory[to->nr_memory++] = unknown;
}

/* The other processes of an error that the snapshot before has are kept. */
static void fold_oom(const struct gpu_numbers *numbers, const struct process_state *process,
		     const struct snapshot_process *known, struct snapshot_process *to)
{
	const struct oom_report *oom = &process->oom;
	bool is_known_device = oom->device < GPU_MAX && numbers->of[oom->device];

	if (!oom->nr)
		return;
	if (known && known->oom.time_ns == oom->time_ns && known->oom.others_ns) {
		to->oom = known->oom;
		return;
	}
	to->oom = (struct snapshot_oom){
		.nr = oom->nr,
		.time_ns = oom->time_ns,
		.time_ms = wall_ms(CLOCK_MONOTONIC, oom->time_ns),
		.asked_bytes = oom->asked_bytes,
		.allocated_bytes = oom->allocated_bytes,
		.reserved_bytes = oom->reserved_bytes,
		.gpu = is_known_device ? numbers->of[oom->device] - 1U : SNAPSHOT_GPU_UNKNOWN,
		.tid = oom->tid,
	};
}

/* Needs the memory of all processes. */
static void find_others(const struct snapshot *s, struct snapshot_process *process)
{
	if (process->oom.nr && !process->oom.others_ns)
		snapshot_oom_find_others(s, process);
}

static void fold_collectives(const struct process_state *process, struct snapshot_process *to)
{
	memcpy(to->collectives.nr, process->nr_collectives, sizeof(to->collectives.nr));
	memcpy(to->collectives.bytes, process->collective_bytes, sizeof(to->collectives.bytes));
}

static void fold_hists(struct kernel *kernel, const struct process_state *process,
		       struct snapshot *s, struct snapshot_hists *hists)
{
	for (u32 kind = 0; kind < HIST_KIND_NR; kind++) {
		struct hist hist, *to;

		if (kernel_read_hist(kernel, process, kind, &hist) < 0 || !hist.count)
			continue;
		to = snapshot_add_hist(s, hists, kind);
		if (to)
			*to = hist;
	}
}

/* Copies the account, including the current interval, which has not ended yet. */
static void fold_account(const struct process_state *process, u64 now_ns,
			 struct snapshot_process *to)
{
	struct idle_account account = process->idle;

	idle_settle(&account, now_ns);
	to->nr_steps = process->step.nr_steps;
	to->step_basis = process->step.basis;
	to->busy_ns = account.busy_ns;
	memcpy(to->idle_ns, account.done.cause_ns, sizeof(to->idle_ns));
	memcpy(to->open_ns, account.open.cause_ns, sizeof(to->open_ns));
	to->blocked_ns = account.blocked_ns;
}

/* Inserts a culprit into the list, sorted by cost. If the list is full, the cheapest is dropped. */
static void fold_culprit(const struct kernel_culprit *culprit, struct snapshot_process *to)
{
	struct snapshot_culprit *all = to->culprits;
	u32 at = to->nr_culprits;

	if (at == CULPRITS_MAX && all[at - 1].ns >= culprit->ns)
		return;
	to->nr_culprits = at < CULPRITS_MAX ? at + 1 : CULPRITS_MAX;
	for (at = to->nr_culprits - 1; at > 0 && all[at - 1].ns < culprit->ns; at--)
		all[at] = all[at - 1];
	all[at] = (struct snapshot_culprit){ .cause = culprit->key.cause, .ns = culprit->ns };
	snapshot_set_text(all[at].name, sizeof(all[at].name), culprit->key.name,
			  sizeof(culprit->key.name));
}

static void fold_culprits(struct kernel *kernel, struct snapshot *s)
{
	CLEANUP_FREE struct kernel_culprit *culprits = NULL;
	u32 nr;

	if (!s->nr_processes || kernel_read_culprits(kernel, &culprits, &nr) < 0)
		return;
	for (u32 i = 0; i < nr; i++)
		for (u32 k = 0; k < s->nr_processes; k++)
			if (s->processes[k].pid == culprits[i].key.tgid &&
			    s->processes[k].start_ns == culprits[i].key.start_ns &&
			    culprits[i].key.cause < IDLE_CAUSE_NR)
				fold_culprit(&culprits[i], &s->processes[k]);
}

/* Calls that were overwritten while they were read, and all older ones, are left out. */
static void fold_calls(const struct sequence *sequence, struct snapshot_comm *to)
{
	const struct collective_call *call;

	to->nr = sequence->nr;
	while (to->nr_calls < SEQUENCE_KEPT &&
	       (call = sequence_find(sequence, sequence->nr - to->nr_calls)))
		to->calls[to->nr_calls++] = (struct snapshot_call){
			.entered_ns = call->entered_ns,
			.returned_ns = call->returned_ns,
			.bytes = call->bytes,
			.operation = call->operation,
		};
}

static void fold_comm(const struct comm *comm, const struct sequence *sequence, bool is_world,
		      struct snapshot_comm *to)
{
	to->rank = comm->nr_ranks ? comm->rank : 0;
	to->nr_ranks = comm->nr_ranks;
	to->is_world = is_world;
	to->made_ns = comm->since_ns;
	if (comm->identity && !comm->is_uncounted)
		snprintf(to->identity, sizeof(to->identity), "%016llx", comm->identity);
	fold_calls(sequence, to);
}

static void fold_comms(struct kernel *kernel, const struct process_state *process,
		       struct snapshot *s)
{
	static const struct comm none;
	const struct comm *world = &none;
	struct sequence sequence;
	struct comms comms;

	if (!process->nr_ranks || kernel_read_comms_of(kernel, process, &comms) < 0)
		return;
	for (u32 i = 0; i < COMMS_MAX; i++)
		if (comm_is_world_before(&comms.comm[i], world))
			world = &comms.comm[i];
	for (u32 i = 0; i < COMMS_MAX; i++) {
		const struct comm *comm = &comms.comm[i];
		struct snapshot_comm *to =
			comm->state == COMM_READY ? snapshot_add_comm(s, process->task.pid) : NULL;

		if (!to)
			continue;
		kernel_read_sequence(kernel, process, &comms, i, &sequence);
		fold_comm(comm, &sequence, comm_is_same(comm, world), to);
	}
}

static void fold_task(const struct gpu_numbers *numbers, const struct process_state *process,
		      struct snapshot_task *to)
{
	const struct task_state *task = &process->task;
	const struct phase_signals *signals = &task->signals;
	u32 device = task->gpu_id;

	*to = (struct snapshot_task){
		.known = 1,
		.is_ml = signals->is_ml,
		.gpu_utilization = signals->gpu_utilization,
		.io_wait_permille = signals->io_wait_permille,
		.collective_mapped = signals->collective_mapped,
		.nr_futex_waits = signals->nr_futex_waits,
		.gpu = SNAPSHOT_GPU_UNKNOWN,
		.gpu_instance = SNAPSHOT_GPU_UNKNOWN,
		.compute_instance = SNAPSHOT_GPU_UNKNOWN,
		.last_sync_ns = signals->last_sync_ns,
		.burst_ns = signals->burst_ns,
		.phase_since_ns = task->phase_since_ns,
	};
	if (!task->has_gpu || device >= GPU_MAX)
		return;
	to->gpu_basis = numbers->basis[device];
	to->gpu = numbers->of[device] - 1U;
	to->gpu_instance = numbers->gpu_instance[device] - 1U;
	to->compute_instance = numbers->compute_instance[device] - 1U;
}

static struct snapshot_process *fold_process(struct kernel *kernel, const struct snapshot *before,
					     struct snapshot *s, u64 now_ns,
					     const struct process_state *process)
{
	const struct task_state *task = &process->task;
	struct snapshot_process *to = snapshot_add_process(s, task->pid);
	struct gpu_numbers numbers = numbers_of(kernel, process);
	u32 phase = phase_of(task->phase);

	if (!to)
		return NULL;
	fold_job(before, s, process, to);
	to->start_ns = process->start_ns;
	to->uid = process->uid;
	to->nr_ranks = process->nr_ranks;
	to->rank = process->rank;
	to->phase = phase;
	to->launcher_tid = process->launcher_tid;
	to->consumer_pid = process->consumer_tgid;
	to->gpu_evidence = process->holds_gpu ? GPU_EVIDENCE_DEVICE : GPU_EVIDENCE_NONE;
	snapshot_set_transitions(s, to, process_nr_transitions(process));
	memcpy(to->phase_ns, task->phase_ns, sizeof(to->phase_ns));
	if (task->phase_since_ns && now_ns > task->phase_since_ns)
		to->phase_ns[phase] += now_ns - task->phase_since_ns;
	snapshot_set_text(to->comm, sizeof(to->comm), process->comm, sizeof(process->comm));
	fold_task(&numbers, process, &to->task);
	fold_account(process, now_ns, to);
	fold_memory(&numbers, process, to);
	fold_oom(&numbers, process, find(before, process), to);
	fold_collectives(process, to);
	fold_hists(kernel, process, s, &to->hists);
	snapshot_join_job(s, to);
	return to;
}

/* A process that changed during each read shows the values of the snapshot before. */
static void fold_unread(struct kernel *kernel, const struct snapshot *before, struct snapshot *s,
			const struct process_state *process)
{
	const struct snapshot_process *known = find(before, process);
	struct snapshot_process *to = known ? snapshot_add_process(s, known->pid) : NULL;

	if (!to)
		return;
	*to = *known;
	fold_job(before, s, process, to);
	to->nr_culprits = 0;
	to->nr_transitions = 0;
	snapshot_set_transitions(s, to, known->nr_transitions);
	to->hists = (struct snapshot_hists){};
	fold_hists(kernel, process, s, &to->hists);
	snapshot_join_job(s, to);
}

static struct snapshot_process *find_pid(const struct snapshot *s, u32 pid)
{
	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	return NULL;
}

static void fold_launcher(const struct thread_record *record, struct snapshot_process *to)
{
	const char *symbol = record->call ? call_symbol(record->call - 1) : "";

	to->launcher_doing = record->doing;
	to->launcher_call_since_ns = record->call ? record->call_since_ns : 0;
	snapshot_set_text(to->launcher_call, sizeof(to->launcher_call), symbol, strlen(symbol));
}

static void fold_thread(struct snapshot *s, const struct thread_record *record)
{
	struct snapshot_thread *to = snapshot_add_thread(s, record->tid, record->role);

	if (!to)
		return;
	to->pid = record->tgid;
	snapshot_set_text(to->comm, sizeof(to->comm), record->comm, sizeof(record->comm));
}

void processes_fold(struct kernel *kernel, const struct kernel_snapshot *all,
		    const struct snapshot *before, struct snapshot *s)
{
	struct snapshot_process *process = NULL;

	for (u32 i = 0; i < all->nr_processes; i++) {
		if (process_is_whole(&all->processes[i]))
			fold_process(kernel, before, s, s->monotonic_ns, &all->processes[i]);
		else
			fold_unread(kernel, before, s, &all->processes[i]);
		fold_comms(kernel, &all->processes[i], s);
	}
	for (u32 i = 0; i < s->nr_processes; i++)
		find_others(s, &s->processes[i]);
	fold_culprits(kernel, s);
	for (u32 i = 0; i < all->nr_threads; i++) {
		const struct thread_record *thread = &all->threads[i];

		fold_thread(s, thread);
		/* The threads of a process come one after another. */
		if (!process || process->pid != thread->tgid)
			process = find_pid(s, thread->tgid);
		if (process && process->launcher_tid == thread->tid)
			fold_launcher(thread, process);
	}
}

void processes_keep(struct kernel *kernel, const struct process_state *process, u64 now_ns,
		    struct snapshot *s)
{
	struct snapshot_process *known = find(s, process);
	struct gpu_numbers numbers = numbers_of(kernel, process);

	if (known) {
		snapshot_set_transitions(s, known, process_nr_transitions(process));
		fold_account(process, now_ns, known);
		fold_hists(kernel, process, s, &known->hists);
		fold_collectives(process, known);
		known->nr_memory = 0;
		fold_memory(&numbers, process, known);
		fold_oom(&numbers, process, known, known);
		snapshot_join_job(s, known);
	} else {
		known = fold_process(kernel, s, s, now_ns, process);
	}
	if (!known)
		return;
	find_others(s, known);
	snapshot_recount(known);
	known->ended_ms = wall_ms(CLOCK_MONOTONIC, now_ns);
}
