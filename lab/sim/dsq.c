// SPDX-License-Identifier: GPL-2.0-or-later
/* Dispatch queues. A queue is a list; a queue by virtual time is also a tree, as in the kernel. */
#include "sim/count.h"
#include "sim/model.h"

#define DSQS_MAX 8192

static struct dsq *dsqs[DSQS_MAX];

void dsq_make(struct dsq *dsq, u64 id, bool is_local)
{
	*dsq = (struct dsq){ .id = id, .is_local = is_local };
}

struct dsq *dsq_find(u64 id)
{
	if (id >= DSQS_MAX || !dsqs[id])
		die("queue %llu does not exist", (unsigned long long)id);
	return dsqs[id];
}

s32 scx_bpf_create_dsq(u64 id, s32 node)
{
	if (id >= DSQS_MAX)
		die("queue %llu is beyond the table", (unsigned long long)id);
	if (dsqs[id])
		return -17; /* EEXIST */
	dsqs[id] = allocate(sizeof(struct dsq));
	dsq_make(dsqs[id], id, false);
	return 0;
}

u64 dsqs_most_locked(void)
{
	u64 most = 0;

	for (u32 i = 0; i < DSQS_MAX; i++) {
		if (!dsqs[i])
			continue;
		if (dsqs[i]->nr_locked > most)
			most = dsqs[i]->nr_locked;
		dsqs[i]->nr_locked = 0;
	}
	return most;
}

/* The lock of a queue is taken and held for `steps`. */
static void dsq_lock(struct dsq *dsq, u64 steps)
{
	dsq->nr_locked++;
	count_lock(steps);
}

void dsq_insert(struct dsq *dsq, struct task *task, bool by_vtime, bool at_head)
{
	struct task *before = at_head ? NULL : dsq->last;
	u64 steps = 1;

	if (task->dsq)
		die("task %d is in two queues", task->p.pid);
	if (dsq->nr && dsq->is_ordered != by_vtime)
		die("queue %llu is used in two orders", (unsigned long long)dsq->id);
	dsq->is_ordered = by_vtime;
	task->dsq = dsq;
	task->seq = ++dsq->seq;
	if (by_vtime) {
		before = tree_before(dsq->root, task);
		steps = tree_insert(&dsq->root, task);
	}
	task->before = before;
	task->after = before ? before->after : dsq->first;
	*(before ? &before->after : &dsq->first) = task;
	*(task->after ? &task->after->before : &dsq->last) = task;
	dsq->nr++;
	if (!dsq->is_local)
		dsq_lock(dsq, steps);
}

void dsq_remove(struct task *task)
{
	struct dsq *dsq = task->dsq;

	if (dsq->is_ordered)
		tree_remove(&dsq->root, task);
	*(task->before ? &task->before->after : &dsq->first) = task->after;
	*(task->after ? &task->after->before : &dsq->last) = task->before;
	dsq->nr--;
	task->dsq = NULL;
}

/* The queue of an id, and for the queue of a CPU that CPU. */
static struct dsq *dsq_for(u64 id, struct task *task, struct cpu **ret_cpu)
{
	if ((id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON)
		*ret_cpu = &machine.cpus[(u32)id];
	else if (id == (u64)SCX_DSQ_LOCAL)
		*ret_cpu = &machine.cpus[task->cpu];
	else
		return dsq_find(id);
	if (!mask_has(&task->mask, (*ret_cpu)->id))
		die("task %d must not run on CPU %u", task->p.pid, (*ret_cpu)->id);
	return &(*ret_cpu)->local;
}

static void dsq_enter(struct task *task, u64 id, bool by_vtime, u64 enq_flags)
{
	struct cpu *cpu = NULL;
	struct dsq *dsq = dsq_for(id, task, &cpu);

	dsq_insert(dsq, task, by_vtime, enq_flags & SCX_ENQ_PREEMPT);
	if (!cpu)
		return;
	if (cpu->id != task->cpu)
		count_lock(1); /* of the other run queue */
	task->cpu = cpu->id;
	cpu_got_task(cpu, task, enq_flags);
}

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	struct task *task = task_of(p);

	count_add(COUNT_WORK, 1);
	if (task->is_inserted)
		die("task %d was inserted twice by one operation", p->pid);
	task->is_inserted = true;
	task->by_vtime = false;
	task->insert_dsq = dsq_id;
	task->insert_flags = enq_flags;
	p->scx.slice = slice;
}

void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			      u64 enq_flags)
{
	scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags);
	task_of(p)->by_vtime = true;
	p->scx.dsq_vtime = vtime;
}

bool insert_finish(struct task *task)
{
	if (!task->is_inserted)
		return false;
	task->is_inserted = false;
	dsq_enter(task, task->insert_dsq, task->by_vtime, task->insert_flags);
	return true;
}

s32 scx_bpf_dsq_nr_queued(u64 dsq_id)
{
	bool is_local = (dsq_id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON;

	count_add(COUNT_WORK, 1);
	return (s32)(is_local ? &machine.cpus[(u32)dsq_id].local : dsq_find(dsq_id))->nr;
}

/* The kernel looks for the first task that may run here, with the lock of the queue held. */
bool scx_bpf_dsq_move_to_local(u64 dsq_id)
{
	struct dsq *dsq = dsq_find(dsq_id);
	struct cpu *cpu = &machine.cpus[machine.here];
	struct task *task;
	u64 steps = 0;

	count_add(COUNT_WORK, 1);
	if (!dsq->nr)
		return false;
	for (task = dsq->first; task; task = task->after) {
		steps++;
		if (mask_has(&task->mask, cpu->id))
			break;
	}
	dsq_lock(dsq, steps);
	count_add(COUNT_QUEUE_STEPS, steps);
	if (!task)
		return false;
	dsq_remove(task);
	dsq_enter(task, SCX_DSQ_LOCAL_ON | cpu->id, false, 0);
	return true;
}

/* A walk sees the tasks that were queued when it began. Only the current task may be moved. */
struct walk {
	struct dsq *dsq;
	struct task *next;
	u64 last_seq, vtime;
};
_Static_assert(sizeof(struct walk) <= sizeof(struct bpf_iter_scx_dsq), "stored in it");

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags)
{
	struct dsq *dsq = dsq_find(dsq_id);

	*(struct walk *)it = (struct walk){ .dsq = dsq, .next = dsq->first, .last_seq = dsq->seq };
	count_add(COUNT_WORK, 1);
	return 0;
}

struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it)
{
	struct walk *walk = (struct walk *)it;
	struct task *task = walk->next;

	dsq_lock(walk->dsq, 1);
	while (task && task->seq > walk->last_seq)
		task = task->after;
	if (!task)
		return NULL;
	count_add(COUNT_QUEUE_STEPS, 1);
	walk->next = task->after;
	return &task->p;
}

void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it)
{
}

static bool move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, bool by_vtime)
{
	struct task *task = task_of(p);
	struct dsq *from = ((struct walk *)it)->dsq;

	dsq_lock(from, 1);
	if (task->dsq != from)
		return false;
	dsq_remove(task);
	if (dsq_id == (u64)SCX_DSQ_LOCAL)
		dsq_id = SCX_DSQ_LOCAL_ON | machine.here;
	dsq_enter(task, dsq_id, by_vtime, 0);
	return true;
}

bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 flags)
{
	return move(it, p, dsq_id, false);
}

void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime)
{
	((struct walk *)it)->vtime = vtime;
}

bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			    u64 flags)
{
	struct walk *walk = (struct walk *)it;

	dsq_lock(walk->dsq, 1);
	if (task_of(p)->dsq != walk->dsq)
		return false;
	/* The place in the new queue; the old one must not be searched with it. */
	dsq_remove(task_of(p));
	p->scx.dsq_vtime = walk->vtime;
	dsq_enter(task_of(p), dsq_id, true, 0);
	return true;
}
