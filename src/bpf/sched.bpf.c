// SPDX-License-Identifier: GPL-2.0-only
/*
 * The `zernel` scheduler.
 *
 * Decides which task runs next and where. A task that wakes up while a CPU is
 * idle goes straight to that CPU; everybody else waits in the queue of a
 * last-level cache, ordered by virtual time: CPU time received, divided by the
 * task's weight. A CPU serves the queue of its own cache first and helps the
 * others when that is empty.
 *
 * Trusts the loader for the topology (which CPU is behind which cache) and the
 * kernel for weights and affinity. A queue is only a place to wait: any CPU can
 * take from any queue, so a topology that is wrong costs locality and never a
 * stall. A task is put into a queue that one of its own CPUs serves first,
 * otherwise a busy machine could leave it waiting for a helper for ever.
 *
 * Fair by weight can still mean never: on a busy machine the lightest tasks are
 * due so late that the kernel would take us for dead. So each queue is looked
 * through now and then, and whoever has waited too long moves to a second queue
 * of that cache, first come first served, which gets every other turn.
 *
 * There is no cpu_online and no cpu_offline on purpose: without them the kernel
 * takes us down before a CPU comes or goes and asks for a fresh start, which the
 * loader gives it with the new topology. With them, whoever is bound to a CPU
 * that goes away would be ours to find, in every queue, and the kernel asks us
 * for nothing on behalf of such a CPU any more.
 *
 * Races that are accepted: a cache's clock is advanced without a lock, so it
 * may lag by one slice; a task counted against the old clock while it moves
 * between caches is off by the same.
 */
#include "bpf/compat.bpf.h"
#include "abi/sched.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u64 slice_ns = 5 * NSEC_PER_MSEC;
const volatile u64 patience_ns = NSEC_PER_SEC;
const volatile u64 sweep_interval_ns = NSEC_PER_SEC / 4;
const volatile u32 nr_llcs = 1;
const volatile u16 cpu_llc[MAX_CPUS];

struct sched_exit sched_exit;

/* One line of memory each, so that caches do not fight over their clocks. */
static struct llc {
	u64 clock; /* virtual time that those who run have reached */
	u64 next_sweep_ns;
} __attribute__((aligned(64))) llcs[MAX_LLCS];

struct sched_task {
	u64 running_since_ns;
	u64 queued_since_ns;
	u32 llc; /* whose clock the task's virtual time is measured by */
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_task);
} sched_tasks SEC(".maps");

struct sched_cpu {
	u64 nr_turns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sched_cpu);
} sched_cpus SEC(".maps");

static struct sched_task *sched_task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&sched_tasks, p, NULL, 0);
}

/* Queue i is that of cache i; the ones behind hold who has waited too long there. */
static u64 overdue_dsq(u32 llc)
{
	return MAX_LLCS + llc;
}

static u64 local_dsq(void)
{
	return bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL);
}

static bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static struct llc *llc_at(u32 i)
{
	return &llcs[i < MAX_LLCS ? i : 0];
}

/* The mask says to the verifier what the comparison says to the reader. */
static u32 queue_of_cpu(u32 cpu)
{
	u32 llc = cpu < MAX_CPUS ? cpu_llc[cpu & (MAX_CPUS - 1)] : LLC_UNKNOWN;

	return llc < nr_llcs ? llc : 0;
}

/* A cache that serves the task: its CPU's, unless affinity has just moved away. */
static u32 llc_of_task(struct task_struct *p)
{
	u32 cpu = scx_bpf_task_cpu(p);

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		cpu = bpf_cpumask_first(p->cpus_ptr);
	return queue_of_cpu(cpu);
}

/*
 * What running for so long costs a task: the heavier it is, the less. A kernel
 * thread counts as ordinary at least, however nice it is: preempted while all of
 * RCU waits for it, as the nicest of them are, it would hold up the machine.
 */
static u64 vtime_charge(const struct task_struct *p, u64 ran_ns)
{
	u32 weight = p->scx.weight, least = p->flags & PF_KTHREAD ? 100 : 1;

	return ran_ns * 100 / (weight > least ? weight : least);
}

/*
 * The task's virtual time by the clock of `llc`. Moving to another cache keeps
 * the distance to the clock. Sleeping earns a credit of one slice at most, and
 * running alone, while nobody wanted the CPU, a debt of one slice at most.
 */
static u64 vtime_at(struct task_struct *p, struct sched_task *task, u32 llc)
{
	u64 clock = llc_at(llc)->clock, vtime = p->scx.dsq_vtime;
	u64 debt_limit = clock + vtime_charge(p, slice_ns);

	if (task->llc != llc) {
		vtime += clock - llc_at(task->llc)->clock;
		task->llc = llc;
	}
	if (before(vtime, clock - slice_ns))
		vtime = clock - slice_ns;
	else if (before(debt_limit, vtime))
		vtime = debt_limit;
	return vtime;
}

SEC("struct_ops/zernel_select_cpu")
s32 BPF_PROG(zernel_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle)
		compat_dsq_insert(p, local_dsq(), slice_ns, 0);
	return cpu;
}

SEC("struct_ops/zernel_enqueue")
void BPF_PROG(zernel_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct sched_task *task = sched_task_of(p);
	u32 llc;
	s32 cpu;

	/* Per-CPU kernel threads are part of the CPU they serve: never behind users. */
	if (!task || ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)) {
		compat_dsq_insert(p, local_dsq(), slice_ns, enq_flags);
		return;
	}
	llc = llc_of_task(p);
	task->queued_since_ns = compat_now();
	compat_dsq_insert_vtime(p, llc, slice_ns, vtime_at(p, task, llc), enq_flags);

	/* A CPU may have gone idle since select_cpu looked, or was never asked. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_IDLE));
}

static void sweep(u32 queue)
{
	struct llc *llc = llc_at(queue);
	u64 now = compat_now(), next = llc->next_sweep_ns;
	struct task_struct *p;

	/* Of the CPUs that come by at the same time, one does it. */
	if (before(now, next) ||
	    !__sync_bool_compare_and_swap(&llc->next_sweep_ns, next, now + sweep_interval_ns))
		return;
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct sched_task *task = sched_task_of(p);

		if (task && before(task->queued_since_ns + patience_ns, now))
			compat_dsq_move(&___it, p, overdue_dsq(queue), 0);
	}
}

/*
 * Whether this CPU looks at the overdue first. Each CPU counts its own turns: of
 * one count for all, a CPU could see the even numbers only, and whoever is bound
 * to it would starve.
 */
static bool overdue_have_the_turn(void)
{
	u32 zero = 0;
	struct sched_cpu *cpu = bpf_map_lookup_elem(&sched_cpus, &zero);

	return cpu && (cpu->nr_turns++ & 1);
}

/* Takes one task for this CPU out of what waits at a cache. */
static bool serve(u32 llc, bool overdue_first)
{
	if (overdue_first && compat_dsq_move_to_local(overdue_dsq(llc)))
		return true;
	return compat_dsq_move_to_local(llc) ||
	       (!overdue_first && compat_dsq_move_to_local(overdue_dsq(llc)));
}

SEC("struct_ops/zernel_dispatch")
void BPF_PROG(zernel_dispatch, s32 cpu, struct task_struct *prev)
{
	bool overdue_first = overdue_have_the_turn();
	u32 own = queue_of_cpu(cpu), i;

	sweep(own);
	bpf_for(i, 0, nr_llcs) {
		if (serve((own + i) % nr_llcs, overdue_first))
			return;
	}
}

SEC("struct_ops/zernel_running")
void BPF_PROG(zernel_running, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);
	struct llc *llc;

	if (!task)
		return;
	/*
	 * By one slice at most: a task far ahead that got an overdue turn must not
	 * take the clock along, or all who wake up from then on queue up behind
	 * those who already wait.
	 */
	llc = llc_at(task->llc);
	if (before(llc->clock + slice_ns, p->scx.dsq_vtime))
		llc->clock += slice_ns;
	else if (before(llc->clock, p->scx.dsq_vtime))
		llc->clock = p->scx.dsq_vtime;
	task->running_since_ns = compat_now();
}

SEC("struct_ops/zernel_stopping")
void BPF_PROG(zernel_stopping, struct task_struct *p, bool runnable)
{
	struct sched_task *task = sched_task_of(p);

	if (!task)
		return;
	compat_set_dsq_vtime(p, p->scx.dsq_vtime +
					vtime_charge(p, compat_now() - task->running_since_ns));
}

SEC("struct_ops.s/zernel_init_task")
s32 BPF_PROG(zernel_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (!bpf_task_storage_get(&sched_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return -12; /* ENOMEM */
	return 0;
}

SEC("struct_ops/zernel_enable")
void BPF_PROG(zernel_enable, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);

	if (!task)
		return;
	task->llc = llc_of_task(p);
	compat_set_dsq_vtime(p, llc_at(task->llc)->clock);
}

SEC("struct_ops.s/zernel_init")
s32 BPF_PROG(zernel_init)
{
	u32 i;
	s32 err;

	bpf_for(i, 0, nr_llcs) {
		err = scx_bpf_create_dsq(i, -1) ?: scx_bpf_create_dsq(overdue_dsq(i), -1);
		if (err)
			return err;
	}
	return 0;
}

SEC("struct_ops/zernel_exit")
void BPF_PROG(zernel_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(sched_exit.reason, sizeof(sched_exit.reason), info->reason);
	bpf_probe_read_kernel_str(sched_exit.msg, sizeof(sched_exit.msg), info->msg);
	bpf_probe_read_kernel_str(sched_exit.dump, sizeof(sched_exit.dump), info->dump);
	sched_exit.code = info->exit_code;
	/* The loader reads the rest once it sees a kind. */
	__sync_fetch_and_add(&sched_exit.kind, info->kind);
}

SEC(".struct_ops.link")
struct sched_ext_ops zernel = {
	.select_cpu = (void *)zernel_select_cpu,
	.enqueue = (void *)zernel_enqueue,
	.dispatch = (void *)zernel_dispatch,
	.running = (void *)zernel_running,
	.stopping = (void *)zernel_stopping,
	.init_task = (void *)zernel_init_task,
	.enable = (void *)zernel_enable,
	.init = (void *)zernel_init,
	.exit = (void *)zernel_exit,
	.timeout_ms = 10000,
	.exit_dump_len = sizeof(((struct sched_exit *)0)->dump),
	.name = "zernel",
};
