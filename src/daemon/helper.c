/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/helper.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/socket.h"
#include "base/time.h"

#define BACKOFF_MIN_NS NSEC_PER_SEC
#define BACKOFF_MAX_NS (64 * NSEC_PER_SEC)
/* A process that lived longer than this starts again with the shortest pause. */
#define LASTING_NS     (60 * NSEC_PER_SEC)

static void stop(struct helper *helper)
{
	if (!helper->is_running)
		return;
	starter_kill(helper->starter, helper->program);
	loop_remove(helper->loop, &helper->source);
	cleanup_fd(&helper->fd);
	helper->fd = -EBADF;
	helper->is_running = helper->is_asked = false;
}

/* Keeps the socket of a process that hangs, to know when it ends. Returns its number. */
static int keep_remain(struct helper *helper)
{
	int i = 0;

	while (helper->remains[i] > 0)
		i++;
	helper->remains[i] = fcntl(helper->fd, F_DUPFD_CLOEXEC, 1);
	if (helper->remains[i] < 0)
		return HELPER_NONE;
	if (++helper->nr_remains == helper->ops->max_remains)
		log_event(LOG_LEVEL_ERROR, "process-remains",
			  "%u processes %s cannot be killed, because a driver or a file server "
			  "does not answer: zerneld starts another one when one of them ends",
			  helper->nr_remains, helper->name);
	return i;
}

static void forget_remains(struct helper *helper)
{
	for (int i = 0; helper->nr_remains && i < HELPER_REMAINS_MAX; i++) {
		struct pollfd poll_fd = { .fd = helper->remains[i], .events = POLLRDHUP };

		if (helper->remains[i] <= 0 || poll(&poll_fd, 1, 0) <= 0)
			continue;
		cleanup_fd(&helper->remains[i]);
		helper->remains[i] = 0;
		helper->nr_remains--;
		if (helper->ops->on_gone)
			helper->ops->on_gone(helper->ctx, i);
	}
}

/*
 * Pauses grow, so that the log stays short: after the longest pause, nothing is logged. A process
 * that hung took its time already, and others wait for the next one.
 */
static void fail(struct helper *helper, enum helper_failure failure, const char *why)
{
	u64 now_ns = time_now_ns(), pause_ns;
	int remain;

	if (!helper->is_asked)
		failure = HELPER_LEFT;
	remain = failure == HELPER_HUNG ? keep_remain(helper) : HELPER_NONE;
	stop(helper);
	if (now_ns >= helper->started_ns + LASTING_NS)
		helper->backoff_ns = BACKOFF_MIN_NS;
	pause_ns = failure == HELPER_HUNG ? BACKOFF_MIN_NS : helper->backoff_ns;
	if (helper->backoff_ns < BACKOFF_MAX_NS)
		log_event(LOG_LEVEL_WARNING, "process-failed",
			  "%s %s: zerneld starts it again in %llu s", helper->name, why,
			  pause_ns / NSEC_PER_SEC);
	helper->start_ns = now_ns + pause_ns;
	if (helper->backoff_ns < BACKOFF_MAX_NS)
		helper->backoff_ns *= 2;
	if (helper->ops->on_fail)
		helper->ops->on_fail(helper->ctx, failure, remain);
}

static void on_event(void *ctx, u32 events)
{
	struct helper *helper = ctx;
	CLEANUP_FD int fd = -EBADF;
	ssize_t size = socket_receive(helper->fd, MSG_DONTWAIT, helper->buffer,
				      helper->ops->message_bytes, &fd);
	int more = -EBADMSG;

	if (size == -EAGAIN || size == -EINTR)
		return;
	if (size == 0 || size == -ECONNRESET) {
		fail(helper, HELPER_ENDED, "ended");
		return;
	}
	if (size > 0 && helper->is_asked)
		more = helper->ops->on_answer(helper->ctx, helper->buffer, (size_t)size, fd);
	if (more < 0) {
		fail(helper, HELPER_ENDED, "sent an invalid message");
		return;
	}
	helper->is_asked = more > 0;
	helper->asked_ns = time_now_ns();
	helper->has_answered = true;
	if (!more && helper->ops->on_idle)
		helper->ops->on_idle(helper->ctx);
}

static void start(struct helper *helper, u64 now_ns)
{
	int err = starter_start(helper->starter, helper->program, &helper->fd);

	helper->started_ns = now_ns;
	if (err == 0) {
		helper->is_running = true;
		err = loop_add(helper->loop, &helper->source, helper->fd, EPOLLIN);
	}
	if (err < 0) {
		fail(helper, HELPER_LEFT, strerror(-err));
		return;
	}
	helper->nr_restarts += helper->start_ns != 0;
	helper->has_answered = false;
}

int helper_init(struct helper *helper, struct starter *starter, struct loop *loop,
		enum program program, const char *name, const struct helper_ops *ops, void *ctx)
{
	*helper = (struct helper){
		.starter = starter,
		.loop = loop,
		.program = program,
		.name = name,
		.ops = ops,
		.ctx = ctx,
		.buffer = malloc(ops->message_bytes),
		.source = { .on_event = on_event, .ctx = helper, .fd = -EBADF },
		.fd = -EBADF,
		.backoff_ns = BACKOFF_MIN_NS,
	};
	return helper->buffer ? 0 : -ENOMEM;
}

void helper_done(struct helper *helper)
{
	stop(helper);
	for (int i = 0; i < HELPER_REMAINS_MAX; i++)
		if (helper->remains[i] > 0)
			cleanup_fd(&helper->remains[i]);
	free(helper->buffer);
}

void helper_tick(struct helper *helper, u64 now_ns)
{
	u64 patience_ns = helper->has_answered ? helper->ops->answer_ns : helper->ops->first_ns;

	forget_remains(helper);
	if (!helper->is_running) {
		if (now_ns >= helper->start_ns && helper->nr_remains < helper->ops->max_remains)
			start(helper, now_ns);
	} else if (helper->is_asked && now_ns >= helper->asked_ns + patience_ns) {
		fail(helper, HELPER_HUNG, "does not answer");
	}
}

bool helper_is_idle(const struct helper *helper)
{
	return helper->is_running && !helper->is_asked;
}

void helper_ask(struct helper *helper, const void *request, size_t size, u64 now_ns)
{
	int err = socket_send(helper->fd, MSG_DONTWAIT, request, size, -1);

	if (err < 0) {
		fail(helper, HELPER_LEFT, "ended");
		return;
	}
	helper->is_asked = true;
	helper->asked_ns = now_ns;
}
