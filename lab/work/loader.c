/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A loader produces every nr_loaders-th batch: it reads from storage, preprocesses,
 * and puts the batch into the ring when there is room. It is always in DataLoading;
 * TRUTH_LOAD logs its activity.
 */
#include "work/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work/phases.h"
#include "work/process.h"

#define IO_BLOCK      4096 /* alignment that O_DIRECT requires */
#define TRUTH_RECORDS (1U << 20)
#define PIECE_NS      (2 * NSEC_PER_MSEC) /* preprocessing time for each record */

struct loader {
	const struct workload *work;
	const struct loading *config;
	struct ring *ring;
	struct truth *truth;
	u64 rank;
	u64 seed;
	u64 first_batch;
	u64 nr_batches;
	int times_fd;
	/* Storage */
	int fd;
	u64 nr_blocks;
	char *buffer;
	/* Thread or process */
	pid_t pid;
	pthread_t thread;
	u32 tid; /* of a thread, once it runs */
	int result;
};

struct loaders {
	u64 nr;
	bool threads;
	struct loader all[];
};

static u64 io_blocks(const struct loading *config)
{
	return (config->io_bytes + IO_BLOCK - 1) / IO_BLOCK;
}

static int storage_open(struct loader *loader)
{
	const char *path = loader->config->io_file;
	off_t size;

	loader->fd = -1;
	if (loader->config->io_bytes == 0)
		return 0;
	loader->fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (loader->fd < 0 && errno == EINVAL)
		loader->fd = open(path, O_RDONLY | O_CLOEXEC);
	/* fstat() does not return the size of a block device. */
	size = loader->fd < 0 ? -1 : lseek(loader->fd, 0, SEEK_END);
	if (size < 0)
		return -errno;
	loader->nr_blocks = (u64)size / IO_BLOCK;
	if (loader->nr_blocks < io_blocks(loader->config))
		return -ENODATA;
	loader->buffer = aligned_alloc(IO_BLOCK, io_blocks(loader->config) * IO_BLOCK);
	return loader->buffer ? 0 : -ENOMEM;
}

static void storage_close(struct loader *loader)
{
	if (loader->fd >= 0)
		close(loader->fd);
	free(loader->buffer);
	loader->buffer = NULL;
}

/* Logs the activity since `start`, with its CPU time and delay. */
static void load_log(const struct loader *loader, enum truth_load what, u64 batch, u64 start,
		     struct times before)
{
	struct times times = times_since(loader->times_fd, before);

	truth_log(loader->truth, TRUTH_LOAD, (u16)what, start, truth_now_ns(),
		  batch | loader->rank << 32, times.cpu_ns, times.delay_ns);
}

static int batch_read(struct loader *loader, u64 batch)
{
	u64 want = io_blocks(loader->config) * IO_BLOCK;
	u64 places = loader->nr_blocks - io_blocks(loader->config) + 1;
	u64 at = random_at(loader->seed, batch) % places * IO_BLOCK;
	u64 start = truth_now_ns();
	struct times times = times_read(loader->times_fd);

	for (u64 done = 0; done < want;) {
		ssize_t n =
			pread(loader->fd, loader->buffer + done, want - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (u64)n;
	}
	load_log(loader, TRUTH_LOAD_IO, batch, start, times);
	return 0;
}

static int batch_make(struct loader *loader, u64 batch)
{
	const struct loading *config = loader->config;
	u64 left = random_around(config->cpu_us * NSEC_PER_USEC, ~loader->seed, batch);
	int r = config->io_bytes ? batch_read(loader, batch) : 0;

	if (r < 0)
		return r;
	while (left > 0) {
		u64 piece = left < PIECE_NS ? left : PIECE_NS;
		u64 start = truth_now_ns();
		struct times times = times_read(loader->times_fd);

		burn_ns(&loader->work->burn, piece);
		load_log(loader, TRUTH_LOAD_CPU, batch, start, times);
		left -= piece;
	}
	return 0;
}

/* Returns false when the rank takes no more batches. */
static bool wait_for_room(struct loader *loader, u64 batch)
{
	struct times times;
	u64 start;

	if (ring_has_room(loader->ring, batch))
		return true;
	start = truth_now_ns();
	times = times_read(loader->times_fd);
	while (!ring_has_room(loader->ring, batch) && !ring_stopped(loader->ring))
		ring_wait_room(loader->ring, batch);
	load_log(loader, TRUTH_LOAD_BLOCKED, batch, start, times);
	return !ring_stopped(loader->ring);
}

static int loader_run(struct loader *loader)
{
	struct phases phases;
	int r;

	prctl(PR_SET_NAME, "loader");
	phases_begin(&phases, loader->truth, PHASE_DATA_LOADING);
	loader->times_fd = times_open();
	r = storage_open(loader);
	for (u64 batch = loader->first_batch; r == 0 && batch < loader->nr_batches;
	     batch += loader->config->loaders) {
		if (!wait_for_room(loader, batch))
			break;
		r = batch_make(loader, batch);
		if (r == 0)
			ring_put(loader->ring, batch);
	}
	storage_close(loader);
	if (loader->times_fd >= 0)
		close(loader->times_fd);
	phases_end(&phases, TRUTH_ROLE_LOADER, truth_now_ns());
	if (r < 0)
		fprintf(stderr, "loader: %s: %s\n", loader->config->io_file, strerror(-r));
	return r;
}

static void *loader_thread(void *arg)
{
	struct loader *loader = arg;

	__atomic_store_n(&loader->tid, (u32)gettid(), __ATOMIC_RELAXED);
	__atomic_store_n(&loader->result, loader_run(loader), __ATOMIC_RELEASE);
	return NULL;
}

static int loader_process(struct loader *loader)
{
	const char *dir = loader->work->truth;
	int r = dir ? truth_open(dir, "loader", TRUTH_RECORDS, &loader->truth) : 0;

	if (r < 0) {
		fprintf(stderr, "loader: truth in %s: %s\n", dir, strerror(-r));
		return r;
	}
	r = loader_run(loader);
	truth_free(loader->truth);
	return r;
}

static int loader_start(struct loader *loader, struct truth *truth)
{
	if (loader->config->threads) {
		loader->truth = truth;
		return -pthread_create(&loader->thread, NULL, loader_thread, loader);
	}
	loader->pid = fork_tied();
	if (loader->pid == 0)
		_exit(loader_process(loader) < 0);
	return loader->pid < 0 ? -errno : 0;
}

int loaders_start(const struct workload *work, const struct loading *config, u64 rank,
		  u64 nr_batches, struct ring *ring, struct truth *truth, struct loaders **ret)
{
	struct loaders *loaders =
		calloc(1, sizeof(*loaders) + config->loaders * sizeof(struct loader));
	int r = 0;

	if (!loaders)
		return -ENOMEM;
	loaders->threads = config->threads;
	for (u64 i = 0; i < config->loaders && r == 0; i++) {
		loaders->all[i] = (struct loader){
			.work = work,
			.config = config,
			.ring = ring,
			.rank = rank,
			.seed = random_at(work->seed, rank),
			.first_batch = i,
			.nr_batches = nr_batches,
		};
		r = loader_start(&loaders->all[i], truth);
		loaders->nr += r == 0;
	}
	if (r < 0) {
		ring_stop(ring);
		loaders_finish(loaders);
		return r;
	}
	*ret = loaders;
	return 0;
}

bool loaders_lost(struct loaders *loaders, u64 batch)
{
	const struct loader *loader = &loaders->all[batch % loaders->nr];
	siginfo_t info = {};

	if (loaders->threads)
		return __atomic_load_n(&loader->result, __ATOMIC_ACQUIRE) < 0;
	return waitid(P_PID, (id_t)loader->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == loader->pid;
}

u32 loaders_tid(const struct loaders *loaders, u64 batch)
{
	const struct loader *loader = &loaders->all[batch % loaders->nr];

	return loaders->threads ? __atomic_load_n(&loader->tid, __ATOMIC_RELAXED)
				: (u32)loader->pid;
}

int loaders_finish(struct loaders *loaders)
{
	int r = 0;

	for (u64 i = 0; i < loaders->nr; i++) {
		struct loader *loader = &loaders->all[i];
		int status = 0;

		if (loaders->threads)
			pthread_join(loader->thread, NULL);
		else
			waitpid(loader->pid, &status, 0);
		if (loader->result < 0 || status != 0)
			r = -ECHILD;
	}
	free(loaders);
	return r;
}
