/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/loop.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/time.h"

#define EVENTS_MAX 64

struct loop {
	int fd;
	bool stopped;
	int nr_events;
	struct epoll_event events[EVENTS_MAX]; /* of the current loop iteration */
	struct hist turns;
};

int loop_new(struct loop **ret)
{
	CLEANUP(loop_free_cleanup) struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->fd < 0)
		return -errno;
	*ret = TAKE_PTR(loop);
	return 0;
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop)
		return NULL;
	cleanup_fd(&loop->fd);
	free(loop);
	return NULL;
}

static int control(struct loop *loop, int operation, struct loop_source *source, u32 events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(loop->fd, operation, source->fd, &event) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct loop_source *source, int fd, u32 events)
{
	int err;

	source->fd = fd;
	err = control(loop, EPOLL_CTL_ADD, source, events);
	if (err < 0)
		source->fd = -EBADF;
	return err;
}

int loop_change(struct loop *loop, struct loop_source *source, u32 events)
{
	return control(loop, EPOLL_CTL_MOD, source, events);
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	if (source->fd < 0)
		return;
	control(loop, EPOLL_CTL_DEL, source, 0);
	source->fd = -EBADF;
	for (int i = 0; i < loop->nr_events; i++)
		if (loop->events[i].data.ptr == source)
			loop->events[i].data.ptr = NULL;
}

int loop_timer_open(u32 interval_ms, int *ret_fd)
{
	struct timespec interval = {
		.tv_sec = interval_ms / 1000,
		.tv_nsec = (long)(interval_ms % 1000 * NSEC_PER_MSEC),
	};
	struct itimerspec times = { .it_interval = interval, .it_value = interval };
	CLEANUP_FD int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &times, NULL) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

u64 loop_timer_read(int fd)
{
	uint64_t nr = 0;

	return read(fd, &nr, sizeof(nr)) == sizeof(nr) ? nr : 0;
}

int loop_run(struct loop *loop)
{
	while (!loop->stopped) {
		u64 began;
		int nr = epoll_wait(loop->fd, loop->events, EVENTS_MAX, -1);

		if (nr < 0 && errno != EINTR)
			return -errno;
		began = time_now_ns();
		loop->nr_events = nr;
		for (int i = 0; i < loop->nr_events; i++) {
			struct loop_source *source = loop->events[i].data.ptr;

			if (source)
				source->on_event(source->ctx, loop->events[i].events);
		}
		loop->nr_events = 0;
		hist_record(&loop->turns, time_now_ns() - began);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

const struct hist *loop_turns(const struct loop *loop)
{
	return &loop->turns;
}
