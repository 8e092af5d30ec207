/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/nice_thread.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/file.h"

/* The number of the start time in /proc/PID/stat, counted from the state, which follows ")". */
#define FIELD_AFTER_NAME 3
#define FIELD_START	 22
/* A slice with which nice_has_slices() tests the kernel. */
#define PROBE_SLICE_NS	 (2 * NSEC_PER_MSEC)

static int get(u32 tid, struct sched_attr *ret)
{
	*ret = (struct sched_attr){};
	return syscall(SYS_sched_getattr, tid, ret, sizeof(*ret), 0) < 0 ? -errno : 0;
}

static int set(u32 tid, u32 policy, u64 flags, s32 nice, u64 slice_ns)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = policy,
		.sched_flags = flags,
		.sched_nice = nice,
		.sched_runtime = slice_ns,
	};

	return syscall(SYS_sched_setattr, tid, &attr, 0) < 0 ? -errno : 0;
}

/* The name of a thread can contain spaces and parentheses, so the last parenthesis ends it. */
static int read_start(u32 tgid, u32 tid, u64 *ret)
{
	char path[64], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", tgid, tid);
	if (file_read_text(path, text, sizeof(text)) <= 0)
		return -ESRCH;
	at = strrchr(text, ')');
	for (u32 field = FIELD_AFTER_NAME - 1; at && field < FIELD_START; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -ESRCH;
	*ret = strtoull(at + 1, NULL, 10);
	return 0;
}

/* The start time is read last: if it is the right one, `ret` is of the right thread. */
static int examine(const struct nice_thread *thread, struct sched_attr *ret)
{
	u64 start_ticks;
	int err = get(thread->tid, ret);

	if (err == 0)
		err = read_start(thread->tgid, thread->tid, &start_ticks);
	if (err < 0)
		return err;
	return start_ticks == thread->start_ticks ? 0 : -ESRCH;
}

static bool is_fair(const struct sched_attr *attr)
{
	return attr->sched_policy == SCHED_NORMAL || attr->sched_policy == SCHED_BATCH;
}

bool nice_has_slices(void)
{
	struct sched_attr before, after;

	if (get(0, &before) < 0 || !is_fair(&before) ||
	    set(0, before.sched_policy, before.sched_flags, before.sched_nice, PROBE_SLICE_NS) < 0)
		return false;
	if (get(0, &after) < 0)
		after = before;
	set(0, before.sched_policy, before.sched_flags, before.sched_nice, 0);
	return after.sched_runtime == PROBE_SLICE_NS;
}

int nice_thread_set(const struct nice_thread *thread)
{
	struct sched_attr attr, own;
	int err = examine(thread, &attr);

	if (err == 0)
		err = get(0, &own);
	if (err < 0)
		return err;
	/* zerneld has the default slice, so a different one was chosen by somebody. */
	if (!is_fair(&attr) || attr.sched_nice || attr.sched_flags & SCHED_FLAG_RESET_ON_FORK ||
	    attr.sched_runtime != own.sched_runtime)
		return -EBUSY;
	return set(thread->tid, attr.sched_policy, SCHED_FLAG_RESET_ON_FORK, thread->nice,
		   thread->slice_ns);
}

static int examine_changed(const struct nice_thread *thread, struct sched_attr *ret)
{
	int err = examine(thread, ret);

	if (err < 0)
		return err;
	return is_fair(ret) && ret->sched_nice == thread->nice &&
			       ret->sched_flags & SCHED_FLAG_RESET_ON_FORK &&
			       (!thread->slice_ns || ret->sched_runtime == thread->slice_ns)
		       ? 0
		       : -ESTALE;
}

int nice_thread_check(const struct nice_thread *thread)
{
	struct sched_attr attr;

	return examine_changed(thread, &attr);
}

int nice_thread_restore(const struct nice_thread *thread)
{
	struct sched_attr attr;
	int err = examine_changed(thread, &attr);

	return err < 0 ? err : set(thread->tid, attr.sched_policy, 0, 0, 0);
}
