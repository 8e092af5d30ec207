// SPDX-License-Identifier: GPL-2.0-or-later
/* What the kernel does with tasks: wakeups, the choice of the next task, ticks. */
#include "core/places.h"
#include "sim/count.h"
#include "sim/load.h"
#include "sim/model.h"

#define ENQ_LAST (1ULL << 41) /* the kernel's SCX_ENQ_LAST */

#define OPERATION(op, id, call)                                                                    \
	do {                                                                                       \
		machine.here = (id);                                                               \
		count_begin(op, id);                                                               \
		call;                                                                              \
		count_end();                                                                       \
	} while (0)

static void schedule(struct cpu *cpu);

void cpus_make(u32 nr_cpus, u32 nr_llcs, u32 nr_nodes)
{
	machine.nr_cpus = nr_cpus;
	machine.nr_llcs = nr_llcs;
	machine.nr_nodes = nr_nodes;
	machine.cpus = allocate(nr_cpus * sizeof(struct cpu));
	machine.llcs = allocate(nr_llcs * sizeof(struct mask));
	machine.nodes = allocate(nr_nodes * sizeof(struct mask));
	topology = (struct topology){
		.nr_cpus = nr_cpus,
		.nr_llcs = nr_llcs,
		.nr_nodes = nr_nodes,
	};
	for (u32 i = 0; i < nr_cpus; i++) {
		u32 llc = i * nr_llcs / nr_cpus, node = llc * nr_nodes / nr_llcs;

		machine.cpus[i].id = i;
		machine.cpus[i].llc = llc;
		machine.cpus[i].idle.regs.orig_ax = IN_USER_MODE;
		machine.cpus[i].idle.p.group_leader = &machine.cpus[i].idle.p;
		dsq_make(&machine.cpus[i].local, SCX_DSQ_LOCAL_ON | i, true);
		topology.cpu_llc[i] = (u16)llc;
		topology.cpu_node[i] = (u8)(node + 1);
		mask_set(&machine.idle, i, true);
		mask_set(&machine.all, i, true);
		mask_set(&machine.llcs[llc], i, true);
		mask_set(&machine.nodes[node], i, true);
	}
	topology_split(&topology);
	topology_place(&topology);
}

static void on_kick(void *arg, u64 turn)
{
	struct cpu *cpu = arg;

	cpu->is_kicked = false;
	schedule(cpu);
}

void cpu_kick(struct cpu *cpu)
{
	if (cpu->is_kicked)
		return;
	cpu->is_kicked = true;
	event_at(machine.now + IPI_NS, on_kick, cpu, 0);
}

void cpu_preempt(struct cpu *cpu)
{
	if (cpu->curr)
		cpu->curr->p.scx.slice = 0;
	cpu_kick(cpu);
}

void cpu_got_task(struct cpu *cpu, struct task *task, u64 enq_flags)
{
	/* A CPU that chooses its next task looks at its local queue anyway. */
	if (cpu->is_scheduling)
		return;
	if (enq_flags & SCX_ENQ_PREEMPT)
		cpu_preempt(cpu);
	else if (!cpu->curr)
		cpu_kick(cpu);
}

static void update_curr(struct cpu *cpu)
{
	struct task *task = cpu->curr;
	u64 ran_ns = machine.now - task->exec_since_ns;

	task->exec_since_ns = machine.now;
	task->ran_ns += ran_ns;
	task->p.se.sum_exec_runtime += ran_ns;
	task->p.scx.slice -= ran_ns < task->p.scx.slice ? ran_ns : task->p.scx.slice;
	task->burst_ns -= ran_ns < task->burst_ns ? ran_ns : task->burst_ns;
}

static void enqueue(struct task *task, u64 enq_flags)
{
	task->state = TASK_QUEUED;
	task->p.scx.flags |= SCX_TASK_QUEUED;
	task->queued_since_ns = machine.now;
	if (insert_finish(task)) /* ops.select_cpu has dispatched it */
		return;
	count_begin(OP_ENQUEUE, machine.here);
	zernel.enqueue(&task->p, enq_flags);
	if (!insert_finish(task))
		die("ops.enqueue lost task %d", task->p.pid);
	count_end();
}

static u32 select_cpu(struct task *task)
{
	s32 cpu;

	if (task->p.nr_cpus_allowed == 1)
		return bpf_cpumask_first(task->p.cpus_ptr);
	count_begin(OP_SELECT_CPU, machine.here);
	cpu = zernel.select_cpu(&task->p, (s32)task->cpu, 0);
	count_end();
	return mask_has(&task->mask, (u32)cpu) ? (u32)cpu : bpf_cpumask_first(task->p.cpus_ptr);
}

void task_wake(struct task *task, u32 cpu, bool is_call)
{
	struct task *waker = machine.cpus[cpu].curr;

	if (task->state != TASK_ASLEEP)
		return;
	machine.here = cpu;
	if (is_call)
		waker->regs.orig_ax = SYSCALL_OF_WAIT;
	task->turn++;
	task->cpu = select_cpu(task);
	enqueue(task, SCX_ENQ_WAKEUP);
	if (is_call)
		waker->regs.orig_ax = IN_USER_MODE;
}

static void on_timeout(void *arg, u64 turn)
{
	struct task *task = arg;

	if (task->turn == turn)
		task_wake(task, task->cpu, false);
}

void task_begins(struct task *task, struct cgroup *cgroup)
{
	struct scx_init_task_args args = { .cgroup = cgroup };

	task->p.cpus_ptr = (const struct cpumask *)&task->mask;
	task->regs.orig_ax = IN_USER_MODE;
	OPERATION(OP_OTHER, 0, zernel.init_task(&task->p, &args));
	OPERATION(OP_OTHER, 0, zernel.enable(&task->p));
}

void task_start(struct task *task, u32 parent_cpu)
{
	machine.here = parent_cpu;
	task->cpu = parent_cpu;
	task->cpu = select_cpu(task);
	enqueue(task, 0);
}

static void on_tick(void *arg, u64 turn)
{
	struct cpu *cpu = arg;

	cpu->has_tick = cpu->curr;
	if (!cpu->curr)
		return;
	event_at(machine.now + TICK_NS, on_tick, cpu, 0);
	update_curr(cpu);
	OPERATION(OP_TICK, cpu->id, zernel.tick(&cpu->curr->p));
	if (!cpu->curr->p.scx.slice)
		schedule(cpu);
}

static void goes_to_sleep(struct cpu *cpu, struct task *task, u64 until_ns)
{
	task->regs.orig_ax = SYSCALL_OF_WAIT;
	OPERATION(OP_STOPPING, cpu->id, zernel.stopping(&task->p, false));
	task->p.scx.flags &= ~(u32)SCX_TASK_QUEUED;
	task->state = TASK_ASLEEP;
	task->turn++;
	if (until_ns)
		event_at(until_ns, on_timeout, task, task->turn);
	schedule(cpu);
}

static void burst_ended(void *arg, u64 turn);

static void burst_begins(struct task *task)
{
	if (task->spins_until_ns)
		task->burst_ns =
			task->spins_until_ns > machine.now ? task->spins_until_ns - machine.now : 0;
	event_at(machine.now + task->burst_ns, burst_ended, task, ++task->turn);
}

static void burst_ended(void *arg, u64 turn)
{
	struct task *task = arg;
	struct cpu *cpu = &machine.cpus[task->cpu];
	struct next next;

	if (task->turn != turn || task->state != TASK_RUNNING)
		return;
	update_curr(cpu);
	task->spins_until_ns = 0;
	next = load_next(task);
	switch (next.what) {
	case NEXT_SLEEP: goes_to_sleep(cpu, task, machine.now + next.ns); return;
	case NEXT_BLOCK: goes_to_sleep(cpu, task, 0); return;
	case NEXT_SPIN: task->spins_until_ns = machine.now + next.ns; break;
	case NEXT_YIELD: task->p.scx.slice = 0; break;
	case NEXT_RUN: break;
	}
	task->burst_ns = next.ns;
	burst_begins(task);
	if (next.what == NEXT_YIELD)
		schedule(cpu);
}

/* The task that runs next; NULL if the CPU goes idle. */
static struct task *pick(struct cpu *cpu, struct task *prev)
{
	bool goes_on = prev && prev->state == TASK_RUNNING;

	if (goes_on && prev->p.scx.slice)
		return prev;
	if (cpu->local.nr)
		return cpu->local.first;
	OPERATION(OP_DISPATCH, cpu->id, zernel.dispatch((s32)cpu->id, prev ? &prev->p : NULL));
	if (goes_on && prev->p.scx.slice)
		return prev;
	return cpu->local.first;
}

static void put_prev(struct cpu *cpu, struct task *prev, bool is_last)
{
	if (!prev || prev->state != TASK_RUNNING)
		return;
	OPERATION(OP_STOPPING, cpu->id, zernel.stopping(&prev->p, true));
	prev->turn++;
	enqueue(prev, is_last ? ENQ_LAST : 0);
}

static void set_next(struct cpu *cpu, struct task *next)
{
	cpu->curr = next;
	mask_set(&machine.idle, cpu->id, !next);
	if (!next)
		return;
	if (!next->p.scx.slice)
		next->p.scx.slice = DEFAULT_SLICE_NS;
	next->state = TASK_RUNNING;
	next->exec_since_ns = machine.now;
	load_waited(next, machine.now - next->queued_since_ns);
	OPERATION(OP_RUNNING, cpu->id, zernel.running(&next->p));
	next->regs.orig_ax = IN_USER_MODE;
	burst_begins(next);
	if (cpu->has_tick)
		return;
	cpu->has_tick = true;
	event_at((machine.now / TICK_NS + 1) * TICK_NS, on_tick, cpu, 0);
}

static void schedule(struct cpu *cpu)
{
	struct task *prev = cpu->curr, *next;

	cpu->is_scheduling = true;
	if (prev && prev->state == TASK_RUNNING)
		update_curr(cpu);
	next = pick(cpu, prev);
	if (next && next == prev) {
		if (!next->p.scx.slice)
			next->p.scx.slice = DEFAULT_SLICE_NS;
	} else {
		if (next)
			dsq_remove(next);
		put_prev(cpu, prev, !next);
		set_next(cpu, next);
	}
	cpu->is_scheduling = false;
	if (!cpu->curr && cpu->local.nr)
		cpu_kick(cpu);
}
