/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "roles/channel.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "work/burn.h"

#define SPIN_NS (2 * NSEC_PER_MSEC) /* CPU time before a reader sleeps */

static bool has_fds(const struct channel *channel)
{
	return channel->kind == CHANNEL_PIPE || channel->kind == CHANNEL_SOCKET;
}

static int fds_open(struct channel *channel)
{
	int r = channel->kind == CHANNEL_PIPE
			? pipe(channel->fds)
			: socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel->fds);

	return r < 0 ? -errno : 0;
}

int channel_init(struct channel *channel, enum channel_kind kind)
{
	pthread_mutexattr_t lock;
	pthread_condattr_t filled;

	*channel = (struct channel){ .kind = kind, .fds = { -1, -1 } };
	if (has_fds(channel))
		return fds_open(channel);
	pthread_mutexattr_init(&lock);
	pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&channel->lock, &lock);
	pthread_mutexattr_destroy(&lock);
	pthread_condattr_init(&filled);
	pthread_condattr_setpshared(&filled, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&channel->filled, &filled);
	pthread_condattr_destroy(&filled);
	return 0;
}

void channel_done(struct channel *channel)
{
	for (int i = 0; i < 2 && has_fds(channel); i++)
		if (channel->fds[i] >= 0)
			close(channel->fds[i]);
}

static int memory_put(struct channel *channel, struct item item)
{
	bool is_full;

	pthread_mutex_lock(&channel->lock);
	is_full = channel->nr == CHANNEL_ROOM;
	if (!is_full) {
		channel->items[(channel->first + channel->nr) % CHANNEL_ROOM] = item;
		__atomic_store_n(&channel->nr, channel->nr + 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&channel->lock);
	pthread_cond_signal(&channel->filled);
	return is_full ? -ENOBUFS : 0;
}

static int item_put(struct channel *channel, struct item item)
{
	if (!has_fds(channel))
		return memory_put(channel, item);
	return write(channel->fds[1], &item, sizeof(item)) == sizeof(item) ? 0 : -errno;
}

int channel_put(struct channel *channel, u64 number)
{
	return item_put(channel, (struct item){ .number = number, .tid = (u32)gettid() });
}

int channel_put_stop(struct channel *channel)
{
	return item_put(channel, (struct item){ .tid = (u32)gettid(), .is_stop = 1 });
}

static bool is_ready(struct channel *channel)
{
	struct pollfd poll_fd = { .fd = channel->fds[0], .events = POLLIN };

	if (has_fds(channel))
		return poll(&poll_fd, 1, 0) > 0;
	return __atomic_load_n(&channel->nr, __ATOMIC_RELAXED) > 0;
}

/* Waits actively, as the kind of the channel demands. */
static void wait_awake(struct channel *channel)
{
	u64 end = thread_cpu_ns() + SPIN_NS;

	while (channel->kind == CHANNEL_YIELD && !is_ready(channel))
		sched_yield();
	while (channel->kind == CHANNEL_SPIN && !is_ready(channel) && thread_cpu_ns() < end)
		;
}

static struct item memory_take(struct channel *channel)
{
	struct item item;

	pthread_mutex_lock(&channel->lock);
	while (channel->nr == 0)
		pthread_cond_wait(&channel->filled, &channel->lock);
	item = channel->items[channel->first];
	channel->first = (channel->first + 1) % CHANNEL_ROOM;
	__atomic_store_n(&channel->nr, channel->nr - 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&channel->lock);
	return item;
}

static struct item item_take(struct channel *channel)
{
	struct item item;

	if (!has_fds(channel))
		return memory_take(channel);
	if (read(channel->fds[0], &item, sizeof(item)) != sizeof(item))
		item = (struct item){ .tid = (u32)gettid(), .is_stop = 1 };
	return item;
}

bool channel_take(struct channel *channel, struct did *did, enum truth_did what, u64 *ret_number)
{
	struct item item;

	if (is_ready(channel)) {
		item = item_take(channel);
	} else {
		u64 start;

		did_set(did, what, 0);
		start = truth_now_ns();
		wait_awake(channel);
		item = item_take(channel);
		if (!item.is_stop)
			did_wait(did, start, item.tid);
		did_set(did, TRUTH_DID_COMPUTE, 0);
	}
	*ret_number = item.number;
	return !item.is_stop;
}
