/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/worker.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include "base/cleanup.h"
#include "base/signals.h"
#include "base/time.h"

struct entry {
	const void *job;
	int result;
};

struct worker {
	worker_fn run;
	void *ctx;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_cond_t ended;
	int fd;
	bool is_started; /* and not joined yet; used only by the caller */

	/* Protected by the lock. Positions only grow; popped <= run <= pushed. */
	bool quit;
	u64 nr_pushed;
	u64 nr_run;
	u64 nr_popped;
	u32 nr_max;
	struct entry entries[];
};

static struct entry *entry_at(struct worker *worker, u64 position)
{
	return &worker->entries[position % worker->nr_max];
}

/* Call it with the lock held, which it releases while the job runs. */
static void run_next(struct worker *worker)
{
	struct entry *entry = entry_at(worker, worker->nr_run);
	const void *job = entry->job;
	int result;

	pthread_mutex_unlock(&worker->lock);
	result = worker->run(worker->ctx, job);
	pthread_mutex_lock(&worker->lock);
	entry->result = result;
	worker->nr_run++;
	(void)eventfd_write(worker->fd, 1);
	pthread_cond_broadcast(&worker->ended);
}

static void *worker_thread(void *argument)
{
	struct worker *worker = argument;

	pthread_mutex_lock(&worker->lock);
	while (!worker->quit) {
		if (worker->nr_run < worker->nr_pushed)
			run_next(worker);
		else
			pthread_cond_wait(&worker->wake, &worker->lock);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

int worker_new(u32 nr_max, worker_fn run, void *ctx, struct worker **ret)
{
	struct worker *worker = calloc(1, sizeof(*worker) + nr_max * sizeof(struct entry));

	if (!worker)
		return -ENOMEM;
	worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->fd < 0) {
		int err = -errno;

		free(worker);
		return err;
	}
	worker->run = run;
	worker->ctx = ctx;
	worker->nr_max = nr_max;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->wake, NULL);
	pthread_cond_init(&worker->ended, NULL);
	*ret = worker;
	return 0;
}

int worker_start(struct worker *worker)
{
	int err = 0;

	if (!worker->is_started)
		err = signals_start_thread(worker_thread, worker, &worker->thread);
	worker->is_started |= err == 0;
	return err;
}

static void tell_to_quit(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->quit = true;
	pthread_cond_signal(&worker->wake);
	pthread_mutex_unlock(&worker->lock);
}

int worker_stop(struct worker *worker, u64 timeout_ns)
{
	const struct timespec until = time_after(timeout_ns);

	tell_to_quit(worker);
	if (worker->is_started &&
	    pthread_clockjoin_np(worker->thread, NULL, CLOCK_MONOTONIC, &until))
		return -ETIMEDOUT;
	worker->is_started = false;
	return 0;
}

struct worker *worker_free(struct worker *worker)
{
	if (!worker)
		return NULL;
	tell_to_quit(worker);
	if (worker->is_started)
		pthread_join(worker->thread, NULL);
	pthread_cond_destroy(&worker->ended);
	pthread_cond_destroy(&worker->wake);
	pthread_mutex_destroy(&worker->lock);
	cleanup_fd(&worker->fd);
	free(worker);
	return NULL;
}

int worker_push(struct worker *worker, const void *job)
{
	int err = 0;

	pthread_mutex_lock(&worker->lock);
	if (worker->nr_pushed - worker->nr_popped == worker->nr_max)
		err = -ENOSPC;
	else
		entry_at(worker, worker->nr_pushed++)->job = job;
	pthread_cond_signal(&worker->wake);
	pthread_mutex_unlock(&worker->lock);
	return err;
}

bool worker_pop(struct worker *worker, const void **ret_job, int *ret_result)
{
	bool has_job;
	eventfd_t nr;

	pthread_mutex_lock(&worker->lock);
	has_job = worker->nr_popped < worker->nr_run;
	if (has_job) {
		const struct entry *entry = entry_at(worker, worker->nr_popped++);

		*ret_job = entry->job;
		*ret_result = entry->result;
	} else {
		(void)eventfd_read(worker->fd, &nr);
	}
	pthread_mutex_unlock(&worker->lock);
	return has_job;
}

int worker_fd(const struct worker *worker)
{
	return worker->fd;
}

void worker_wait(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	while (worker->nr_run < worker->nr_pushed)
		pthread_cond_wait(&worker->ended, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}
