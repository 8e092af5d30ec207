/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/stacks.h"
#include <errno.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "daemon/lines.h"
#include "daemon/lines_json.h"

/* A stack that is not there until then cannot be read. */
#define SCAN_NS (5 * NSEC_PER_SEC)

struct look {
	struct later later;
	struct look *next;
	struct stacks *stacks;
	pid_t pid;
	int pidfd; /* opened when it was asked for */
	u64 asked_ns;
	bool is_done;
	int err;
	struct process_state process;
	struct lines_stack_now now;
	struct python_place places[PYTHON_FRAMES_MAX];
};

struct stacks {
	struct supervisor *supervisor;
	struct discovery *discovery;
	struct look *looks;
};

/* A client that asks while a stack is sent waits for the next one. */
static void on_frame(void *ctx, const struct scan_frame *frame)
{
	struct stacks *stacks = ctx;

	for (struct look *look = stacks->looks; look; look = look->next) {
		if (look->process.launcher_tid != (u32)frame->pid || look->is_done)
			continue;
		if (frame->index == 0)
			look->now.nr = 0;
		if (frame->index == look->now.nr)
			look->places[look->now.nr++] = frame->place;
	}
}

static void on_end(void *ctx, const struct scan_stacked *end)
{
	struct stacks *stacks = ctx;

	for (struct look *look = stacks->looks; look; look = look->next) {
		if (look->process.launcher_tid != (u32)end->pid || look->is_done ||
		    (end->error == 0 && end->nr != look->now.nr))
			continue;
		look->is_done = true;
		look->err = end->error;
		/* It may have other rights by now. */
		if (look->err == 0 && end->uid != look->process.uid)
			look->err = -EACCES;
		look->now.is_cut = end->is_cut;
	}
}

static bool poll_look(struct later *later, struct reply *reply)
{
	struct look *look = container_of(later, struct look, later);
	struct lines_head head = { .pid = (u32)look->pid,
				   .start_ns = look->process.start_ns,
				   .counts = { .nr_samples = 1 } };

	if (!look->is_done && time_now_ns() < look->asked_ns + SCAN_NS)
		return false;
	/* Whether the stack is that of the process that was asked for. */
	if (!lines_process_lives(look->stacks->supervisor, look->pidfd, look->process.start_ns)) {
		lines_refuse(reply, look->pid, -ESRCH);
		return true;
	}
	if (!look->is_done || look->err < 0) {
		head.counts.nr_unreadable = 1;
		look->now.nr = 0;
	}
	look->now.places = look->places;
	look->now.tid = look->process.launcher_tid;
	look->now.role = ROLE_LAUNCHER;
	reply->result = lines_stack_to_json(&head, &look->now);
	if (!reply->result)
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
	return true;
}

static void free_look(struct later *later)
{
	struct look *look = container_of(later, struct look, later);
	struct look **at = &look->stacks->looks;

	while (*at != look)
		at = &(*at)->next;
	*at = look->next;
	cleanup_fd(&look->pidfd);
	free(look);
}

void stacks_look(struct stacks *stacks, u32 uid, pid_t pid, struct reply *reply)
{
	struct look *look = calloc(1, sizeof(*look));
	int err;

	if (!look) {
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
		return;
	}
	look->later = (struct later){ poll_look, free_look };
	look->next = stacks->looks;
	look->stacks = stacks;
	look->pid = pid;
	look->pidfd = library_open_process(pid);
	look->asked_ns = time_now_ns();
	stacks->looks = look;
	err = lines_find_process(stacks->supervisor, uid, look->pidfd, &look->process);
	if (err < 0) {
		lines_refuse(reply, pid, err);
		free_look(&look->later);
		return;
	}
	discovery_want_stack(stacks->discovery, (pid_t)look->process.launcher_tid);
	reply->is_later = true;
	reply->later = &look->later;
}

int stacks_new(struct supervisor *supervisor, struct discovery *discovery, struct stacks **ret)
{
	static const struct discovery_stack_handler handler = { on_frame, on_end };
	struct stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return -ENOMEM;
	stacks->supervisor = supervisor;
	stacks->discovery = discovery;
	discovery_set_stacks(discovery, &handler, stacks);
	*ret = stacks;
	return 0;
}

struct stacks *stacks_free(struct stacks *stacks)
{
	free(stacks);
	return NULL;
}
