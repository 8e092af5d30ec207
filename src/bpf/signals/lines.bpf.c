// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Adds idle time to the stacks of the threads that cause it, while a client wants to know the lines
 * of a process. Both programs are attached only then.
 *
 * A launcher that runs is sampled LINES_RATE times a second, at random ticks. When it leaves its
 * CPU, its stack is read once, and the time until it runs again belongs to that stack, split by the
 * causes that the ledger books (core/idle.h). Loaders are sampled while their consumer waits for
 * data. Nothing is sampled while the GPU certainly works. A thread inside a runtime call, while the
 * GPU may have work, is not sampled either: the call may wait for that work.
 *
 * Trusts nothing in the memory of the process: core/python.h. Both programs run with interrupts
 * disabled, so one scratch memory for each CPU is enough. lines_switch must run after
 * thread_switch, which books the time: the kernel runs programs of a tracepoint in the order of
 * their attachment.
 */
#include "abi/lines.h"
#include "bpf/compat.bpf.h"
#include "bpf/signals/roles.bpf.h"
#include "core/python.h"

/* Code objects that are copied in one run, so that a run is short. */
#define COPIES_MAX    16
/* Reading stacks may take an eighth of the time of a thread, and so much at once. */
#define READ_PART     8
#define READ_BURST_NS (5 * NSEC_PER_MSEC)
/* Frames and further parts of tables that one run looks at. */
#define NAME_STEPS    (2 * PYTHON_FRAMES_MAX)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_PROCESSES);
	__type(key, u32);
	__type(value, struct lines_process);
} lines_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_STACKS);
	__type(key, struct lines_stack_key);
	__type(value, struct lines_stack_value);
} lines_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_SUMS);
	__type(key, struct lines_sum_key);
	__type(value, struct lines_sum);
} lines_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LINES_CODES);
	__type(key, struct lines_code_key);
	__type(value, struct python_code);
} lines_codes SEC(".maps");

/* A thread that has left its CPU. */
struct away {
	u64 state; /* address of its state in the interpreter, which is checked before each use */
	u64 since_ns; /* 0: its time is not wanted */
	u64 read_ns;  /* time that reading its stack took, less what time has paid off */
	u64 paid_ns;  /* until then */
	u64 wait_ns;  /* loader: the wait of its consumer */
	struct lines_sum_key key;
	struct idle_sums done, open; /* of its process, when it left */
};

/* Threads end without notice, so the oldest entries make room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LINES_THREADS);
	__type(key, u32);
	__type(value, struct away);
} lines_threads SEC(".maps");

struct scratch {
	u32 tick;   /* in the current period */
	u32 chosen; /* the tick that counts */
	struct lines_stack_value stack;
	struct python_code code;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} lines_scratch SEC(".maps");

struct lines_counts lines_counts;

static const struct away away_new;
static const struct python_memory memory;

static struct scratch *scratch_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&lines_scratch, &zero);
}

static struct lines_process *wanted(u32 tgid)
{
	return bpf_map_lookup_elem(&lines_processes, &tgid);
}

static struct away *away_get(struct task_struct *p)
{
	u32 tid = p->pid;
	struct away *away = bpf_map_lookup_elem(&lines_threads, &tid);

	if (away)
		return away;
	bpf_map_update_elem(&lines_threads, &tid, &away_new, BPF_NOEXIST);
	return bpf_map_lookup_elem(&lines_threads, &tid);
}

struct search {
	const struct python_offsets *offsets;
	struct python_search search;
};

static int search_step(u32 i, struct search *search)
{
	return !python_search_step(&memory, search->offsets, &search->search);
}

/* The state of a thread in its interpreter. Most threads keep it. */
static u64 find_state(const struct lines_process *process, struct away *away, u32 native_id)
{
	struct search search = { .offsets = &process->offsets };

	if (python_is_thread(&memory, &process->offsets, away->state, native_id))
		return away->state;
	search.search.native_id = native_id;
	python_search_begin(&memory, &process->offsets, process->runtime, &search.search);
	search.search.found = compat_unknown(0);
	bpf_loop(PYTHON_THREADS_MAX, search_step, &search, 0);
	away->state = search.search.found;
	return away->state;
}

struct walk {
	const struct python_offsets *offsets;
	struct python_stack *stack;
	u64 frame;
};

static int walk_step(u32 i, struct walk *walk)
{
	walk->frame = python_walk_step(&memory, walk->offsets, walk->frame, walk->stack);
	return !walk->frame;
}

struct hashing {
	const struct python_stack *stack;
	u64 hash;
};

#define HASH_PRIME 0x100000001b3ULL

static int hash_step(u32 i, struct hashing *hashing)
{
	const struct python_frame *frame = &hashing->stack->frames[i & (PYTHON_FRAMES_MAX - 1)];

	if (i >= hashing->stack->nr)
		return 1;
	hashing->hash = (hashing->hash ^ frame->code) * HASH_PRIME;
	hashing->hash = (hashing->hash ^ frame->lines) * HASH_PRIME;
	hashing->hash = (hashing->hash ^ frame->instruction) * HASH_PRIME;
	return 0;
}

/* Reads the stack of the current thread into the scratch memory. Returns its hash, or 0. */
static u64 stack_read(const struct lines_process *process, struct away *away, u32 native_id,
		      struct python_stack *stack)
{
	struct walk walk = { .offsets = &process->offsets, .stack = stack };
	struct hashing hashing = { .stack = stack };
	u64 state = process->runtime ? find_state(process, away, native_id) : 0;

	if (!state)
		return 0;
	stack->nr = stack->is_cut = 0;
	walk.frame = python_innermost(&memory, &process->offsets, state);
	bpf_loop(PYTHON_STEPS_MAX, walk_step, &walk, 0);
	if (walk.frame)
		stack->is_cut = 1;
	if (!stack->nr)
		return 0;
	hashing.hash = compat_unknown(stack->is_cut + 1);
	bpf_loop(PYTHON_FRAMES_MAX, hash_step, &hashing, 0);
	return hashing.hash ?: 1;
}

struct naming {
	const struct python_offsets *offsets;
	struct scratch *scratch;
	u64 at;	  /* the frame */
	u64 part; /* of its table */
	u64 nr_copied;
	u32 tgid;
	u32 nr_failed;
};

static bool has_part(const struct python_code *code, u32 part)
{
	return part < PYTHON_PARTS_MAX && code->table_bytes > part * PYTHON_TABLE_BYTES;
}

/* Copies a part of the code of a frame, unless it is known. Returns whether there are more parts.
 */
static bool name_part(struct naming *naming, const struct python_frame *frame)
{
	struct python_code *code = &naming->scratch->code, *known;
	struct lines_code_key key = { .code = frame->code,
				      .lines = frame->lines,
				      .tgid = naming->tgid,
				      .part = naming->part };

	known = bpf_map_lookup_elem(&lines_codes, &key);
	if (known)
		return has_part(known, key.part + 1);
	naming->nr_copied++;
	if (!python_code_read(&memory, naming->offsets, frame->code, key.part, code) ||
	    bpf_map_update_elem(&lines_codes, &key, code, BPF_NOEXIST)) {
		naming->nr_failed++;
		return false;
	}
	return has_part(code, key.part + 1);
}

static int name_step(u32 i, struct naming *naming)
{
	const struct python_stack *stack = &naming->scratch->stack.stack;
	u64 at = naming->at;

	if (at >= stack->nr || naming->nr_copied >= COPIES_MAX)
		return 1;
	barrier_var(at);
	if (name_part(naming, &stack->frames[at & (PYTHON_FRAMES_MAX - 1)])) {
		naming->part++;
	} else {
		naming->part = 0;
		naming->at = at + 1;
	}
	return 0;
}

/* Copies the code of the stack in the scratch memory that is not known yet. */
static bool stack_name(const struct lines_process *process, struct scratch *scratch, u32 tgid)
{
	struct naming naming = { .offsets = &process->offsets, .scratch = scratch, .tgid = tgid };

	naming.at = compat_unknown(0);
	naming.part = compat_unknown(0);
	naming.nr_copied = compat_unknown(0);
	naming.nr_failed = (u32)compat_unknown(0);
	bpf_loop(NAME_STEPS, name_step, &naming, 0);
	return naming.at >= scratch->stack.stack.nr && !naming.nr_failed;
}

/* Keeps the stack in the scratch memory. */
static bool stack_keep(const struct lines_process *process, struct scratch *scratch,
		       const struct lines_stack_key *key)
{
	struct lines_stack_value *known = bpf_map_lookup_elem(&lines_stacks, key);

	if (known && known->is_named)
		return true;
	scratch->stack.is_named = stack_name(process, scratch, key->tgid);
	if (known) {
		known->is_named = scratch->stack.is_named;
		return true;
	}
	return !bpf_map_update_elem(&lines_stacks, key, &scratch->stack, BPF_NOEXIST);
}

/* The thread ID that the process itself knows: that of its innermost namespace. */
static u32 native_id_of(struct task_struct *p)
{
	struct pid *pid = p->thread_pid;
	u32 level = BPF_CORE_READ(pid, level), nr = 0;

	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * bpf_core_type_size(struct upid));
	return nr;
}

/*
 * Whether the memory of the current task may be read for those who may see its process. A loader
 * that was forked has the interpreter of its consumer; after an exec it is another program, which
 * may have the rights of another user.
 */
static bool may_read(struct task_struct *p, const struct process_state *process)
{
	u32 uid = process->uid;

	if (!p->mm || (p->flags & PF_EXITING) || BPF_CORE_READ(p, cred, uid.val) != uid ||
	    BPF_CORE_READ(p, cred, euid.val) != uid || BPF_CORE_READ(p, cred, suid.val) != uid)
		return false;
	return (u32)p->tgid == process->task.pid || (p->flags & PF_FORKNOEXEC);
}

static bool reads_too_much(struct away *away, u64 now)
{
	u64 paid = (now - away->paid_ns) / READ_PART;

	away->read_ns -= paid < away->read_ns ? paid : away->read_ns;
	away->paid_ns = now;
	return away->read_ns > READ_BURST_NS;
}

/*
 * Reads the stack of the current task and keeps it. Where it cannot be read, the time still
 * counts. A thread spends a small part of its time here at most, however often it leaves its CPU
 * and whatever its memory contains.
 */
static void take_stack(struct task_struct *p, const struct process_state *process,
		       const struct lines_process *python, struct away *away,
		       struct lines_stack_key *ret)
{
	struct scratch *scratch = scratch_get();
	u64 now = bpf_ktime_get_ns();

	*ret = (struct lines_stack_key){ .tgid = p->tgid };
	if (!scratch || reads_too_much(away, now)) {
		__sync_fetch_and_add(&lines_counts.nr_dropped, 1);
		return;
	}
	if (may_read(p, process))
		ret->hash = stack_read(python, away, native_id_of(p), &scratch->stack.stack);
	if (!ret->hash) {
		__sync_fetch_and_add(&lines_counts.nr_unreadable, 1);
	} else if (!stack_keep(python, scratch, ret)) {
		ret->hash = 0;
		__sync_fetch_and_add(&lines_counts.nr_dropped, 1);
	}
	away->read_ns += bpf_ktime_get_ns() - now;
}

static void charge(const struct lines_sum_key *key, u64 done_ns, u64 open_ns)
{
	struct lines_sum *sum = bpf_map_lookup_elem(&lines_sums, key);
	struct lines_sum first = { .done_ns = done_ns, .open_ns = open_ns, .nr_samples = 1 };

	if (sum) {
		__sync_fetch_and_add(&sum->done_ns, done_ns);
		__sync_fetch_and_add(&sum->open_ns, open_ns);
		__sync_fetch_and_add(&sum->nr_samples, 1);
	} else if (bpf_map_update_elem(&lines_sums, key, &first, BPF_NOEXIST)) {
		__sync_fetch_and_add(&lines_counts.nr_dropped, 1);
	}
}

/* The process that a loader works for, while its launcher waits for data and the GPU may be idle.
 */
static struct process_state *waiting_consumer(struct task_struct *p)
{
	struct process_state *process = process_find(p);
	struct task_struct *parent;

	if (!process || !process->launcher_tid) {
		parent = p->real_parent;
		process = parent ? process_find(parent) : NULL;
	}
	return process && process->data_wait_since_ns && process->idle.gpu != IDLE_GPU_BUSY
		       ? process
		       : NULL;
}

static bool may_be_idle(const struct thread_state *thread, const struct process_state *process)
{
	return process->idle.since_ns && process->idle.gpu != IDLE_GPU_BUSY &&
	       (process->idle.gpu == IDLE_GPU_DONE || !thread->depth);
}

static struct lines_sum_key key_of(struct task_struct *p, const struct thread_state *thread,
				   const struct process_state *process, u32 cause)
{
	return (struct lines_sum_key){ .start_ns = process->start_ns,
				       .tgid = process->task.pid,
				       .tid = p->pid,
				       .cause = cause,
				       .role = thread->role };
}

/* A loader counts for the process that it works for. */
static struct process_state *process_of(struct task_struct *p, const struct thread_state *thread,
					bool *ret_loads)
{
	struct process_state *process = process_find(p);

	*ret_loads = false;
	if (process && is_launcher_of(p, thread, process))
		return may_be_idle(thread, process) ? process : NULL;
	*ret_loads = thread->role == ROLE_LOADER;
	return *ret_loads ? waiting_consumer(p) : NULL;
}

/* Whether this tick of the CPU counts. */
static bool is_chosen(struct scratch *scratch)
{
	if (scratch->tick++ % LINES_TICKS == 0)
		scratch->chosen = bpf_get_prandom_u32() % LINES_TICKS;
	return (scratch->tick - 1) % LINES_TICKS == scratch->chosen;
}

SEC("perf_event")
int lines_tick(void *ctx)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_get();
	struct thread_state *thread;
	struct process_state *process;
	const struct lines_process *python;
	struct lines_sum_key key;
	struct away *away;
	bool loads;
	u64 open;

	if (!scratch || !is_chosen(scratch))
		return 0;
	thread = thread_find(p);
	process = thread ? process_of(p, thread, &loads) : NULL;
	python = process ? wanted(process->task.pid) : NULL;
	away = python ? away_get(p) : NULL;
	if (!away)
		return 0;
	key = key_of(p, thread, process, loads ? IDLE_LOADER_CPU : idle_cause_now(&process->idle));
	if (key.cause >= IDLE_CAUSE_NR)
		return 0;
	__sync_fetch_and_add(&lines_counts.nr_samples, 1);
	open = process->idle.gpu == IDLE_GPU_OPEN ? LINES_PERIOD_NS : 0;
	take_stack(p, process, python, away, &key.stack);
	charge(&key, LINES_PERIOD_NS - open, open);
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

static __noinline int thread_left(struct task_struct *p, bool runnable, u64 now)
{
	struct thread_state *thread = thread_find(p);
	const struct lines_process *python;
	struct process_state *process;
	struct away *away;
	u32 cause = 0;
	bool loads;

	process = thread ? process_of(p, thread, &loads) : NULL;
	python = process ? wanted(process->task.pid) : NULL;
	if (python && loads)
		cause = loader_cause(p, runnable);
	away = python && cause < IDLE_CAUSE_NR ? away_get(p) : NULL;
	if (!away)
		return 0;
	__sync_fetch_and_add(&lines_counts.nr_samples, 1);
	away->key = key_of(p, thread, process, cause);
	take_stack(p, process, python, away, &away->key.stack);
	away->wait_ns = loads ? process->data_wait_since_ns : 0;
	away->done = process->idle.done;
	away->open = process->idle.open;
	away->since_ns = now;
	return 0;
}

/* The causes of the launcher's absence are booked by now. */
static void launcher_is_back(struct away *away, const struct process_state *process)
{
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++) {
		u64 done = process->idle.done.cause_ns[cause] - away->done.cause_ns[cause];
		u64 open = process->idle.open.cause_ns[cause] - away->open.cause_ns[cause];

		if (!done && !open)
			continue;
		away->key.cause = cause;
		charge(&away->key, done, open);
	}
}

/* Only the part inside the wait of its consumer counts. */
static void loader_is_back(struct away *away, const struct process_state *consumer, u64 now)
{
	u64 ns = now - away->since_ns;

	if (away->wait_ns == consumer->data_wait_since_ns)
		charge(&away->key, consumer->idle.gpu == IDLE_GPU_DONE ? ns : 0,
		       consumer->idle.gpu == IDLE_GPU_DONE ? 0 : ns);
}

static __noinline int thread_is_back(struct task_struct *p, u64 now)
{
	u32 tid = p->pid;
	struct away *away = bpf_map_lookup_elem(&lines_threads, &tid);
	struct thread_state *thread;
	struct process_state *process;

	if (!away || !away->since_ns)
		return 0;
	thread = thread_find(p);
	process = thread ? process_find(p) : NULL;
	if (away->wait_ns) {
		process = thread ? waiting_consumer(p) : NULL;
		if (process)
			loader_is_back(away, process, now);
	} else if (process && is_launcher_of(p, thread, process)) {
		launcher_is_back(away, process);
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
