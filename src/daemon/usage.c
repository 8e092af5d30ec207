/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/usage.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "core/snapshot.h"
#include "daemon/lines.h"
#include "daemon/usage_json.h"

/* On a busy machine, a probe is attached after seconds. */
#define ATTACH_NS (20 * NSEC_PER_SEC)

struct watch {
	struct later later;
	struct watch *next;
	struct usages *usages;
	pid_t pid;
	int pidfd; /* opened when it was asked for */
	u64 length_ns;
	u64 asked_ns;
	u64 begun_ns; /* 0: the allocator is not probed yet */
	struct process_state process;
};

struct usages {
	struct supervisor *supervisor;
	struct watch *watches;
};

_Static_assert(USAGE_OF_USER == 8, "named in a text");
_Static_assert(ATTACH_NS == 20 * NSEC_PER_SEC, "named in a text");

static const struct {
	int err;
	enum protocol_error code;
	const char *text;
} refusals[] = {
	{ -EEXIST, PROTOCOL_FAILED,
	  "another client watches its memory: try again when it has ended" },
	{ -E2BIG, PROTOCOL_FAILED, "the memory of too many processes is watched: try again later" },
	{ -EDQUOT, PROTOCOL_FAILED,
	  "the memory of 8 processes of its user is watched: try again later" },
	{ -EOPNOTSUPP, PROTOCOL_UNSUPPORTED,
	  "this kernel cannot watch the memory of PyTorch: run `zernel doctor`" },
	{ -ENODATA, PROTOCOL_UNSUPPORTED, "its PyTorch does not report its memory in a known way" },
	{ -ENOENT, PROTOCOL_NOT_FOUND,
	  "it is not known to use PyTorch (libc10.so): run `zernel doctor` to list the libraries "
	  "that were found" },
	{ -EIO, PROTOCOL_FAILED, "its allocator could not be probed: the log of zerneld says why" },
	{ -ETIMEDOUT, PROTOCOL_FAILED,
	  "its allocator was not probed within 20 s, because the machine is busy: try again" },
	{ -ESRCH, PROTOCOL_NOT_FOUND, "it has ended or uses no GPU: run `zernel status`" },
};

static void refuse(struct reply *reply, pid_t pid, int err)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		if (refusals[i].err == err) {
			reply_refuse(reply, refusals[i].code, "process %d: %s", pid,
				     refusals[i].text);
			return;
		}
	reply_refuse(reply, PROTOCOL_FAILED, "process %d: cannot watch its memory: %s", pid,
		     strerror(-err));
}

static struct library_set *libraries_of(const struct watch *watch)
{
	return supervisor_library_set(watch->usages->supervisor);
}

static u64 part_of(const struct watch *watch)
{
	return watch->length_ns / USAGE_PARTS;
}

static bool still_lives(const struct watch *watch)
{
	return lines_process_lives(watch->usages->supervisor, watch->pidfd,
				   watch->process.start_ns);
}

/* Begins when the allocator is probed. Negative: it cannot. */
static int begin(struct watch *watch, u64 now_ns)
{
	struct kernel *kernel = supervisor_kernel(watch->usages->supervisor);
	struct library_set *libraries = libraries_of(watch);
	int err;

	if (!kernel || !libraries || !still_lives(watch))
		return -ESRCH;
	err = library_set_has_usage(libraries, watch->pid);
	if (err == 0)
		return now_ns < watch->asked_ns + ATTACH_NS ? 0 : -ETIMEDOUT;
	if (err < 0)
		return err;
	err = kernel_begin_usage(
		kernel, (u32)watch->pid,
		&(struct usage_process){ .begin_ns = now_ns, .part_ns = part_of(watch) });
	if (err == 0)
		watch->begun_ns = now_ns;
	return err;
}

/* A process can lose its library, and with it what zerneld knows of the watch. */
static bool goes_on(const struct watch *watch)
{
	const struct library_set *libraries = libraries_of(watch);

	return still_lives(watch) && libraries && library_set_has_usage(libraries, watch->pid) >= 0;
}

static void answer(const struct watch *watch, u64 now_ns, struct reply *reply)
{
	const struct kernel *kernel = supervisor_kernel(watch->usages->supervisor);
	struct usage_head head = { .process = &watch->process,
				   .window_ns = now_ns - watch->begun_ns,
				   .part_ns = part_of(watch) };

	reply->result = usage_to_json(kernel, &head);
	if (!reply->result)
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
}

static bool poll_watch(struct later *later, struct reply *reply)
{
	struct watch *watch = container_of(later, struct watch, later);
	u64 now_ns = time_now_ns();
	int err;

	if (!watch->begun_ns) {
		err = begin(watch, now_ns);
		if (err < 0)
			refuse(reply, watch->pid, err);
		return err < 0;
	}
	if (goes_on(watch) && now_ns < watch->begun_ns + watch->length_ns)
		return false;
	if (supervisor_kernel(watch->usages->supervisor))
		answer(watch, now_ns, reply);
	else
		refuse(reply, watch->pid, -ESRCH);
	return true;
}

static void free_watch(struct later *later)
{
	struct watch *watch = container_of(later, struct watch, later);
	struct kernel *kernel = supervisor_kernel(watch->usages->supervisor);
	struct library_set *libraries = libraries_of(watch);
	struct watch **at = &watch->usages->watches;

	if (watch->begun_ns && kernel)
		kernel_end_usage(kernel, (u32)watch->pid);
	if (libraries)
		(void)library_set_want_usage(libraries, watch->pid, false);
	while (*at != watch)
		at = &(*at)->next;
	*at = watch->next;
	cleanup_fd(&watch->pidfd);
	free(watch);
}

/* The watches of one user leave room for those of other users. */
static int check_others(const struct usages *usages, pid_t pid, u32 uid)
{
	u32 nr = 0;

	for (const struct watch *at = usages->watches; at; at = at->next) {
		if (at->pid == pid)
			return -EEXIST;
		nr += at->process.uid == uid;
	}
	return nr >= USAGE_OF_USER ? -EDQUOT : 0;
}

static int want(struct watch *watch, u32 uid)
{
	struct usages *usages = watch->usages;
	struct library_set *libraries = supervisor_library_set(usages->supervisor);
	int err = lines_find_process(usages->supervisor, uid, watch->pidfd, &watch->process);

	if (err == 0)
		err = check_others(usages, watch->pid, watch->process.uid);
	if (err < 0)
		return err;
	return libraries ? library_set_want_usage(libraries, watch->pid, true) : -ESRCH;
}

void usages_watch(struct usages *usages, u32 uid, pid_t pid, u64 seconds, struct reply *reply)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch) {
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
		return;
	}
	*watch = (struct watch){ .later = { poll_watch, free_watch },
				 .usages = usages,
				 .pid = pid,
				 .pidfd = library_open_process(pid),
				 .length_ns = seconds * NSEC_PER_SEC,
				 .asked_ns = time_now_ns() };
	err = want(watch, uid);
	if (err < 0) {
		refuse(reply, pid, err);
		cleanup_fd(&watch->pidfd);
		free(watch);
		return;
	}
	watch->next = usages->watches;
	usages->watches = watch;
	reply->is_later = true;
	reply->later = &watch->later;
}

int usages_new(struct supervisor *supervisor, struct usages **ret)
{
	struct usages *usages = calloc(1, sizeof(*usages));

	if (!usages)
		return -ENOMEM;
	usages->supervisor = supervisor;
	*ret = usages;
	return 0;
}

struct usages *usages_free(struct usages *usages)
{
	free(usages);
	return NULL;
}
