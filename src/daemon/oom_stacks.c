/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/oom_stacks.h"
#include <errno.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "collect/tenant.h"
#include "core/python_place.h"
#include "core/snapshot.h"
#include "daemon/lines_json.h"

/*
 * Stacks that are kept: in all, and of one user or one group, except of root and the root group. So
 * the errors of a tenant leave room for those of others.
 */
#define STACKS_MAX	 64
#define STACKS_OF_TENANT 16

struct oom_stack {
	u32 pid; /* 0: free */
	u32 tid;
	u32 role;
	struct tenant owner;
	u64 start_ns;
	u64 time_ns; /* of the error */
	bool is_cut;
	u32 nr;
	struct python_place *places; /* innermost first */
};

struct oom_stacks {
	struct oom_stack of[STACKS_MAX];
	u64 nr_dropped;
};

static bool is_of(const struct oom_stack *stack, const struct process_state *process)
{
	return stack->pid == process->task.pid && stack->start_ns == process->start_ns;
}

/* Whether a stack of the owner in this place leaves neither its user nor its group too many. */
static bool may_replace(const struct oom_stack *at, const struct tenant *owner,
			const struct tenant_count *count)
{
	return (count->nr_of_user < STACKS_OF_TENANT || at->owner.uid == owner->uid) &&
	       (count->nr_of_group < STACKS_OF_TENANT || at->owner.group == owner->group);
}

/* The oldest stack in whose place one of the owner may be; a free place is older than any stack. */
static struct oom_stack *oldest(struct oom_stacks *stacks, const struct tenant *owner,
				const struct tenant_count *count)
{
	struct oom_stack *found = NULL;

	for (u32 i = 0; i < STACKS_MAX; i++) {
		struct oom_stack *at = &stacks->of[i];

		if (may_replace(at, owner, count) && (!found || at->time_ns < found->time_ns))
			found = at;
	}
	return found;
}

/* The place for the stack of a process: its own one if it had an error before. NULL: none. */
static struct oom_stack *place_of(struct oom_stacks *stacks, const struct process_state *process)
{
	const struct tenant owner = { .uid = process->uid, .group = process->group };
	struct tenant_count count = {};

	for (u32 i = 0; i < STACKS_MAX; i++) {
		if (is_of(&stacks->of[i], process))
			return &stacks->of[i];
		tenant_count(&count, &owner, &stacks->of[i].owner, 1);
	}
	return oldest(stacks, &owner, &count);
}

/* Only the first part of a table of lines was read. */
static int read_part(void *ctx, const struct python_frame *frame, u32 part, struct python_code *ret)
{
	const struct oom_frame *oom = ctx;

	if (part > 0 || !oom->is_named)
		return -ENOENT;
	*ret = oom->code;
	return 0;
}

/*
 * Returns the number of frames. A frame that cannot be named has an empty name. Frames of earlier
 * errors, which lie further out, are removed too.
 */
static u32 take_places(struct kernel *kernel, const struct process_state *process,
		       struct python_place *places, bool *ret_cut)
{
	CLEANUP_FREE struct oom_frame *frame = malloc(sizeof(*frame));
	u32 nr = 0, nr_removed = 0;

	for (u32 i = 0; frame && i < OOM_FRAMES_MAX; i++) {
		int err = kernel_take_oom_frame(kernel, process, i, frame);

		if (err == -ENOENT && i == 0)
			return 0;
		nr_removed += err == 0 || err == -ESTALE;
		if (err < 0 || nr < i)
			continue;
		python_place(read_part, frame, &frame->frame, &places[nr++]);
		*ret_cut = frame->is_cut || frame->nr_frames > nr;
	}
	kernel_release_oom_frames(kernel, process, nr_removed);
	return nr;
}

void oom_stacks_keep(struct oom_stacks *stacks, struct kernel *kernel,
		     const struct process_state *process)
{
	CLEANUP_FREE struct python_place *places = NULL;
	struct oom_stack *to = NULL;
	bool is_cut = false;
	u32 nr;

	if (!process->oom.nr)
		return;
	to = place_of(stacks, process);
	if (to && is_of(to, process) && to->time_ns >= process->oom.time_ns)
		return;
	places = calloc(OOM_FRAMES_MAX, sizeof(*places));
	nr = places ? take_places(kernel, process, places, &is_cut) : 0;
	if (!nr)
		return;
	/* One of two stacks is lost. */
	stacks->nr_dropped += !to || (to->pid && !is_of(to, process));
	if (!to || to->time_ns > process->oom.time_ns)
		return;
	free(to->places);
	*to = (struct oom_stack){ .pid = process->task.pid,
				  .tid = process->oom.tid,
				  .role = process->oom.tid == process->launcher_tid ? ROLE_LAUNCHER
										    : ROLE_OTHER,
				  .owner = { .uid = process->uid, .group = process->group },
				  .start_ns = process->start_ns,
				  .time_ns = process->oom.time_ns,
				  .is_cut = is_cut,
				  .nr = nr,
				  .places = TAKE_PTR(places) };
}

u64 oom_stacks_dropped(const struct oom_stacks *stacks)
{
	return stacks->nr_dropped;
}

/* An error of another user does not exist for the caller. */
static const struct oom_stack *find(const struct oom_stacks *stacks, u32 uid, u32 pid, u64 time_ns)
{
	for (u32 i = 0; i < STACKS_MAX; i++) {
		const struct oom_stack *at = &stacks->of[i];

		if (at->pid == pid && at->time_ns == time_ns &&
		    (uid == SNAPSHOT_UID_UNKNOWN || uid == at->owner.uid))
			return at;
	}
	return NULL;
}

void oom_stacks_show(const struct oom_stacks *stacks, u32 uid, u32 pid, u64 time_ns,
		     struct reply *reply)
{
	const struct oom_stack *stack = find(stacks, uid, pid, time_ns);

	if (!stack) {
		reply_refuse(reply, PROTOCOL_NOT_FOUND,
			     "no stack of this out-of-memory error of process %u is kept", pid);
		return;
	}
	reply->result = lines_stack_to_json(&(struct lines_head){ .pid = pid,
								  .start_ns = stack->start_ns,
								  .counts = { .nr_samples = 1 } },
					    &(struct lines_stack_now){ .tid = stack->tid,
								       .role = stack->role,
								       .nr = stack->nr,
								       .is_cut = stack->is_cut,
								       .places = stack->places });
	if (!reply->result)
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
}

int oom_stacks_new(struct oom_stacks **ret)
{
	struct oom_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return -ENOMEM;
	*ret = stacks;
	return 0;
}

struct oom_stacks *oom_stacks_free(struct oom_stacks *stacks)
{
	for (u32 i = 0; stacks && i < STACKS_MAX; i++)
		free(stacks->of[i].places);
	free(stacks);
	return NULL;
}
