/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/lines.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "core/snapshot.h"
#include "daemon/lines_json.h"

/* Without an answer about the interpreter until then, the watch begins without stacks. */
#define SCAN_NS (5 * NSEC_PER_SEC)

struct watch {
	struct later later;
	struct watch *next;
	struct lines *lines;
	pid_t pid;
	int pidfd; /* opened when it was asked for */
	u64 length_ns;
	u64 asked_ns;
	u64 begun_ns; /* 0: the interpreter is not known yet */
	bool is_begun;
	int err;
	struct process_state process; /* when it was read last */
	u64 read_ns;
	struct idle_account before; /* when the watch began */
};

struct lines {
	struct supervisor *supervisor;
	struct discovery *discovery;
	struct watch *watches;
};

static u64 sum_of(const struct idle_sums *sums)
{
	u64 sum = 0;

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		sum += sums->cause_ns[cause];
	return sum;
}

/* Returns whether the process is still there. */
static bool read_process(struct watch *watch)
{
	struct kernel *kernel = supervisor_kernel(watch->lines->supervisor);
	struct process_state process;
	u64 now_ns = time_now_ns();

	if (!kernel || kernel_read_process(kernel, watch->pidfd, &process) < 0 ||
	    process.start_ns != watch->process.start_ns)
		return false;
	/* A process that changed during the read is read again at the next tick. */
	if (!process_is_whole(&process))
		return true;
	idle_settle(&process.idle, now_ns);
	watch->process = process;
	watch->read_ns = now_ns;
	return true;
}

/* Samples from now on. `process` is zero if it has no interpreter that is known. */
static void begin(struct watch *watch, const struct lines_process *process)
{
	struct kernel *kernel = supervisor_kernel(watch->lines->supervisor);

	watch->begun_ns = watch->read_ns = time_now_ns();
	if (!kernel || !read_process(watch)) {
		watch->err = -ESRCH;
		return;
	}
	watch->before = watch->process.idle;
	watch->err = kernel_begin_lines(kernel, (u32)watch->pid, process);
	watch->is_begun = watch->err == 0;
}

static void on_python(void *ctx, pid_t pid, int pidfd, int err, const struct python_scan *python)
{
	struct lines *lines = ctx;
	struct lines_process process = {};

	if (python) {
		process.runtime = python->runtime;
		process.offsets = python->offsets;
	}
	for (struct watch *watch = lines->watches; watch; watch = watch->next)
		if (watch->pid == pid && !watch->begun_ns)
			begin(watch, &process);
}

/* Without a scan if the interpreter is known, so that a watch can follow another one at once. */
static void find_python(struct watch *watch)
{
	struct kernel *kernel = supervisor_kernel(watch->lines->supervisor);
	struct oom_python python;

	if (kernel && kernel_read_python(kernel, watch->pidfd, &python) == 0)
		begin(watch, &(struct lines_process){ .runtime = python.runtime,
						      .offsets = python.offsets });
	else
		discovery_want_python(watch->lines->discovery, watch->pid);
}

static void answer(const struct watch *watch, struct kernel *kernel, struct reply *reply)
{
	const struct idle_account *now = &watch->process.idle, *before = &watch->before;
	struct lines_head head = {
		.pid = (u32)watch->pid,
		.start_ns = watch->process.start_ns,
		.window_ns = watch->read_ns - watch->begun_ns,
		.idle_ns = sum_of(&now->done) - sum_of(&before->done),
		.open_ns = sum_of(&now->open) - sum_of(&before->open),
		.counts = kernel_lines_counts(kernel, (u32)watch->pid),
	};

	/* The interpreter can be that of a program that the process ran before. */
	if (head.counts.nr_samples && head.counts.nr_unreadable == head.counts.nr_samples)
		discovery_want_python(watch->lines->discovery, watch->pid);
	reply->result = lines_to_json(kernel, &head);
	if (!reply->result)
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
}

void lines_refuse(struct reply *reply, pid_t pid, int err)
{
	if (err == -EEXIST)
		reply_refuse(reply, PROTOCOL_FAILED,
			     "another client samples process %d: try again when it has ended", pid);
	else if (err == -E2BIG)
		reply_refuse(reply, PROTOCOL_FAILED,
			     "too many processes are sampled: try again later");
	else if (err == -EDQUOT)
		reply_refuse(reply, PROTOCOL_FAILED,
			     "%d processes of the user of process %d are sampled: try again later",
			     LINES_OF_USER, pid);
	else if (err == -EOPNOTSUPP)
		reply_refuse(reply, PROTOCOL_UNSUPPORTED,
			     "this kernel cannot sample stacks: run `zernel doctor`");
	else if (err == -ESRCH)
		reply_refuse(reply, PROTOCOL_NOT_FOUND,
			     "process %d has ended or uses no GPU: run `zernel status`", pid);
	else
		reply_refuse(reply, PROTOCOL_FAILED, "cannot sample process %d: %s", pid,
			     strerror(-err));
}

static bool poll_watch(struct later *later, struct reply *reply)
{
	struct watch *watch = container_of(later, struct watch, later);
	struct kernel *kernel = supervisor_kernel(watch->lines->supervisor);
	u64 now_ns = time_now_ns();
	bool lives;

	if (!watch->begun_ns && now_ns >= watch->asked_ns + SCAN_NS)
		begin(watch, &(struct lines_process){});
	if (!watch->begun_ns)
		return false;
	lives = !watch->err && read_process(watch);
	if (!watch->err && kernel && lives && now_ns < watch->begun_ns + watch->length_ns)
		return false;
	if (watch->err || !kernel)
		lines_refuse(reply, watch->pid, watch->err ?: -ESRCH);
	else
		answer(watch, kernel, reply);
	return true;
}

static void free_watch(struct later *later)
{
	struct watch *watch = container_of(later, struct watch, later);
	struct kernel *kernel = supervisor_kernel(watch->lines->supervisor);
	struct watch **at = &watch->lines->watches;

	if (watch->is_begun && kernel)
		kernel_end_lines(kernel, (u32)watch->pid);
	while (*at != watch)
		at = &(*at)->next;
	*at = watch->next;
	cleanup_fd(&watch->pidfd);
	free(watch);
}

/* A process of another user does not exist for the caller. */
int lines_find_process(struct supervisor *supervisor, u32 uid, int pidfd, struct process_state *ret)
{
	struct kernel *kernel = supervisor_kernel(supervisor);

	if (!kernel || pidfd < 0 || kernel_read_process(kernel, pidfd, ret) < 0 ||
	    !ret->launcher_tid)
		return -ESRCH;
	return uid == SNAPSHOT_UID_UNKNOWN || uid == ret->uid ? 0 : -ESRCH;
}

bool lines_process_lives(struct supervisor *supervisor, int pidfd, u64 start_ns)
{
	struct kernel *kernel = supervisor_kernel(supervisor);
	struct process_state process;

	return kernel && kernel_read_process(kernel, pidfd, &process) == 0 &&
	       process.start_ns == start_ns;
}

/* So that the watches of one user leave room for those of other users. */
static int check_share(const struct watch *watch)
{
	u32 nr = 0;

	for (const struct watch *at = watch->lines->watches; at; at = at->next)
		nr += at->process.uid == watch->process.uid;
	return nr > LINES_OF_USER ? -EDQUOT : 0;
}

void lines_watch(struct lines *lines, u32 uid, pid_t pid, u64 seconds, struct reply *reply)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch) {
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
		return;
	}
	*watch = (struct watch){ .later = { poll_watch, free_watch },
				 .next = lines->watches,
				 .lines = lines,
				 .pid = pid,
				 .pidfd = library_open_process(pid),
				 .length_ns = seconds * NSEC_PER_SEC,
				 .asked_ns = time_now_ns() };
	lines->watches = watch;
	err = lines_find_process(lines->supervisor, uid, watch->pidfd, &watch->process);
	if (err == 0)
		err = check_share(watch);
	if (err < 0) {
		lines_refuse(reply, pid, err);
		free_watch(&watch->later);
		return;
	}
	find_python(watch);
	reply->is_later = true;
	reply->later = &watch->later;
}

void lines_tick(struct lines *lines)
{
	struct kernel *kernel = supervisor_kernel(lines->supervisor);

	if (lines->watches && kernel)
		kernel_vary_lines(kernel);
}

int lines_new(struct supervisor *supervisor, struct discovery *discovery, struct lines **ret)
{
	struct lines *lines = calloc(1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	lines->supervisor = supervisor;
	lines->discovery = discovery;
	discovery_add_python(discovery, on_python, lines);
	*ret = lines;
	return 0;
}

struct lines *lines_free(struct lines *lines)
{
	free(lines);
	return NULL;
}
