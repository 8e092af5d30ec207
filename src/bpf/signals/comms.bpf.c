// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Communicators of the collective runtimes: the rank of a process, the number of
 * ranks, and the effect of splits on both.
 *
 * A call that creates a communicator is recorded at its entry and settled at its
 * return. Inside a group it is settled when the group ends, because only then
 * has the runtime met all ranks, and the handle can be read. A split is also
 * recorded in the group of calls of its parent. All ranks enter the split before
 * any rank returns, so at the return the group contains all ranks on this
 * machine. If these are not all ranks of the parent, rank and size stay unknown
 * (core/comm.h).
 *
 * Trusts nothing that a process passes. A process may report wrong ranks for
 * itself. A process that knows the unique id of another job could join its
 * groups.
 *
 * Accepted races: concurrent calls of two threads on one communicator, which the
 * runtimes forbid, may count as one call. With nonblocking communicators a split
 * may return before all ranks have entered it; its result then stays unknown.
 */
#include "bpf/signals/comms.bpf.h"

#define UNIQUE_ID_WORDS 16
/* Maximum number of retries when other threads settle communicators at the same time. */
#define WORLD_TRIES	64

struct comm_group_map comm_groups SEC(".maps");
u64 nr_dropped_comms;

/*
 * ncclUniqueId is passed by value: above the return address on x86-64, by
 * reference on arm64.
 */
static u64 unique_id_at(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_arm64)
	return PT_REGS_PARM3(ctx);
#else
	return PT_REGS_SP(ctx) + 8;
#endif
}

/* Returns 0 if the id cannot be read. */
static __noinline u64 unique_id_identity(u64 id)
{
	u64 word[UNIQUE_ID_WORDS], identity = 0;

	if (bpf_probe_read_user(word, sizeof(word), (const void *)id) < 0)
		return 0;
	for (u32 i = 0; i < UNIQUE_ID_WORDS; i++)
		identity = comm_mix(identity, word[i]);
	return identity;
}

/*
 * One call creates all ranks of a communicator. `found` is the first one; this
 * adds the next one.
 */
static int rank_step(u32 i, struct walk *walk)
{
	struct comm *first = comm_at(walk->comms, walk->found), *comm;
	u32 rank = i + 1;

	if (!first || rank >= first->nr_ranks)
		return 1;
	comm = comm_claim(walk->comms);
	if (!comm) {
		__sync_fetch_and_add(&nr_dropped_comms, 1);
		return 0;
	}
	comm->handle = 0;
	bpf_probe_read_user(&comm->handle, sizeof(comm->handle),
			    (const void *)(first->out + sizeof(comm->handle) * rank));
	comm->identity = first->identity;
	comm->since_ns = first->since_ns;
	comm->made_by = first->made_by;
	comm->is_uncounted = false;
	comm->nr_splits = 0;
	comm->rank = rank;
	comm->nr_ranks = first->nr_ranks;
	comm_set_state(comm, COMM_READY);
	return 0;
}

static void comm_settle(struct comms *comms, struct comm *comm, u32 i)
{
	struct walk ranks = { .comms = comms, .found = i };

	comm->handle = 0;
	bpf_probe_read_user(&comm->handle, sizeof(comm->handle), (const void *)comm->out);
	if (comm->made_by == DETAIL_SPLIT)
		split_settle(comm);
	else if (comm->made_by == DETAIL_ALL_RANKS)
		bpf_loop(COMMS_MAX, rank_step, &ranks, 0);
	/* A split without a color creates no communicator. */
	comm_set_state(comm, comm->handle || comm->nr_ranks ? COMM_READY : COMM_FREE);
}

/* The call failed or will never return. */
static void comm_give_up(struct comms *comms, struct comm *comm)
{
	u64 key = comm->group;
	struct comm_group *group = key ? bpf_map_lookup_elem(&comm_groups, &key) : NULL;

	if (group)
		split_give_up(comm, comm_find(comms, comm->parent), group);
	comm_set_state(comm, COMM_FREE);
}

static int end_step(u32 i, struct walk *walk)
{
	struct comm *comm = comm_at(walk->comms, i);

	if (!comm || comm->state != COMM_JOINING || comm->tid != walk->tid)
		return 0;
	if (walk->wanted && comm->since_ns != walk->wanted)
		return 0;
	if (walk->succeeded)
		comm_settle(walk->comms, comm, i);
	else
		comm_give_up(walk->comms, comm);
	return 0;
}

/* Settles or gives up the requests of this thread from one time; with 0, from any time. */
static void comms_end(struct comms *comms, u32 tid, u64 since_ns, bool succeeded)
{
	struct walk walk = {
		.comms = comms, .wanted = since_ns, .tid = tid, .succeeded = succeeded
	};

	bpf_loop(COMMS_MAX, end_step, &walk, 0);
}

struct world {
	struct process_state *process;
	struct comms *comms;
	u64 found; /* the oldest communicator of the world; COMMS_MAX: not found */
	u32 rank;
	u32 nr_local_ranks;
};

static int world_find_step(u32 i, struct world *world)
{
	static const struct comm none;
	const struct comm *comm = comm_at(world->comms, i);
	const struct comm *best = comm_at(world->comms, world->found);

	if (comm && comm_is_world_before(comm, best ?: &none))
		world->found = i;
	return 0;
}

static int world_count_step(u32 i, struct world *world)
{
	const struct comm *comm = comm_at(world->comms, i);
	const struct comm *first = comm_at(world->comms, world->found);

	if (!comm || !first || !comm_is_same(comm, first))
		return 0;
	if (!world->nr_local_ranks++ || comm->rank < world->rank)
		world->rank = comm->rank;
	return 0;
}

/* The last writer has seen every change before it, or another writer follows. */
static int world_write_step(u32 i, struct world *world)
{
	struct process_state *process = world->process;
	u64 seen = *(volatile u64 *)&world->comms->nr_changes;
	const struct comm *first;

	world->found = compat_unknown(COMMS_MAX);
	world->nr_local_ranks = compat_unknown(0);
	bpf_loop(COMMS_MAX, world_find_step, world, 0);
	bpf_loop(COMMS_MAX, world_count_step, world, 0);
	first = comm_at(world->comms, world->found);
	if (!first)
		return 1;
	/* The world that MPI reported may be larger. */
	if (process->comm_handle && process->nr_ranks > first->nr_ranks)
		return 1;
	process_write_begin(process);
	process->rank = world->rank;
	process->nr_ranks = first->nr_ranks;
	process->nr_local_ranks = world->nr_local_ranks;
	process_write_end(process);
	return *(volatile u64 *)&world->comms->nr_changes == seen;
}

static void world_update(struct process_state *process, struct comms *comms)
{
	struct world world = { .process = process, .comms = comms };

	__sync_fetch_and_add(&comms->nr_changes, 1);
	bpf_loop(WORLD_TRIES, world_write_step, &world, 0);
}

/* Fills in a requested communicator from the arguments of the call. */
static void comm_describe(struct comm *comm, const struct traced_call *call,
			  const struct arguments *args)
{
	comm->out = argument(args, call->row->arg[0]);
	comm->since_ns = call->now;
	comm->tid = call->p->pid;
	comm->made_by = call->row->detail;
	comm->is_uncounted = false;
	comm->nr_splits = 0;
	comm->group = 0;
	comm->identity = 0;
	comm->rank = 0;
	comm->nr_ranks = 0;
	comm->parent = 0;
	if (comm->made_by == DETAIL_SPLIT) {
		comm->parent = argument(args, call->row->arg[1]);
		comm->color = (s32)argument(args, call->row->arg[2]);
	} else if (comm->made_by == DETAIL_SHRINK) {
		comm->parent = argument(args, call->row->arg[1]);
	} else {
		comm->nr_ranks = (u32)argument(args, call->row->arg[1]);
		comm->rank = (u32)argument(args, call->row->arg[2]);
	}
}

/* The new rank and size follow from the parent's and from the list of excluded ranks. */
static __noinline int shrink_join(struct comm *comm, const struct comm *parent, u64 list, u64 nr)
{
	s32 excluded[COMM_MEMBERS_MAX] = {};
	struct comm_place place;

	if (!comm || !parent || nr > COMM_MEMBERS_MAX ||
	    bpf_probe_read_user(excluded, nr * sizeof(excluded[0]), (const void *)list) < 0)
		return 0;
	place = comm_shrink(parent->rank, parent->nr_ranks, excluded, (u32)nr);
	comm->rank = place.rank;
	comm->nr_ranks = place.nr_ranks;
	comm->identity = comm_mix(parent->identity, nr);
	for (u32 i = 0; i < COMM_MEMBERS_MAX; i++)
		comm->identity = comm_mix(comm->identity, (u32)excluded[i]);
	return 0;
}

CALL_PROGRAM("uprobe.multi", comm_enter)
{
	struct arguments args = ARGUMENTS(ctx);
	struct traced_call call;
	struct comms *comms;
	struct comm *comm;

	if (!call_entered(ctx, &call) || call.thread->depth > MAX_CALL_DEPTH)
		return;
	comms = comms_get(call.p);
	comm = comms ? comm_claim(comms) : NULL;
	if (!comm) {
		__sync_fetch_and_add(&nr_dropped_comms, 1);
		return;
	}
	comm_describe(comm, &call, &args);
	if (comm->made_by == DETAIL_SPLIT)
		split_join(comms, comm, (s32)argument(&args, call.row->arg[2] + 1));
	else if (comm->made_by == DETAIL_ONE_RANK)
		comm->identity = unique_id_identity(unique_id_at(ctx));
	else if (comm->made_by == DETAIL_SCALABLE)
		/* All ranks pass the same list of ids. The first one identifies it. */
		comm->identity = unique_id_identity(argument(&args, call.row->arg[2] + 2));
	else if (comm->made_by == DETAIL_SHRINK)
		shrink_join(comm, comm_find(comms, comm->parent), argument(&args, call.row->arg[2]),
			    (u32)argument(&args, call.row->arg[2] + 1));
	else
		comm->identity = comm_mix(comm_mix(call.process->start_ns, comm->tid), call.now);
	comm_set_state(comm, COMM_JOINING);
}

CALL_PROGRAM("uretprobe.multi", comm_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct comms *comms = frame ? comms_find(call.p) : NULL;
	bool succeeded;

	if (!comms)
		return;
	succeeded = collective_accepted(call.row->runtime, (s32)PT_REGS_RC(ctx));
	if (succeeded && call.thread->nr_groups)
		return;
	comms_end(comms, call.p->pid, frame->entered_ns, succeeded);
	world_update(call.process, comms);
}

/* Free it at the entry: during the call its handle may become that of another communicator. */
CALL_PROGRAM("uprobe.multi", comm_free_enter)
{
	struct comms *comms = comms_find(bpf_get_current_task_btf());
	struct comm *comm = comms ? comm_find(comms, PT_REGS_PARM1(ctx)) : NULL;

	if (comm)
		comm_set_state(comm, COMM_FREE);
}

CALL_PROGRAM("uprobe.multi", group_start_enter)
{
	struct thread_state *thread = thread_get(bpf_get_current_task_btf());

	if (thread)
		thread->nr_groups++;
}

/* A group that was opened before the probes were attached is not counted. */
CALL_PROGRAM("uretprobe.multi", group_end_return)
{
	struct traced_call call;
	struct comms *comms;

	if (!call_returned(ctx, &call) || !call.thread->nr_groups || --call.thread->nr_groups)
		return;
	comms = comms_find(call.p);
	if (!comms)
		return;
	comms_end(comms, call.p->pid, 0,
		  collective_accepted(call.row->runtime, (s32)PT_REGS_RC(ctx)));
	world_update(call.process, comms);
}

/* At exec the other threads have exited, and the communicators no longer exist. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(comms_exec, struct task_struct *p)
{
	bpf_task_storage_delete(&process_comms, p);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(comms_exit, struct task_struct *p)
{
	struct comms *comms = comms_find(p);

	if (comms)
		comms_end(comms, p->pid, 0, false);
	return 0;
}
