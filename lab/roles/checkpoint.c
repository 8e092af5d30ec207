/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asynchronous checkpoints: after every few steps the launcher forks a process that
 * serializes its memory, writes it to disk, and ends. No task waits for it. Forked loaders
 * feed the launcher all the time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "roles/roles.h"
#include "work/process.h"

#define EVERY_STEPS   8
#define CHUNKS	      16
#define CHUNK_BYTES   (256U << 10)
#define TRUTH_RECORDS (1U << 16)

static int chunks_write(const struct framework_config *config, int fd)
{
	static char chunk[CHUNK_BYTES];

	for (u64 i = 0; i < CHUNKS; i++) {
		burn_ns(&config->work.burn, config->member_us * NSEC_PER_USEC / CHUNKS);
		if (write(fd, chunk, sizeof(chunk)) != sizeof(chunk))
			return -errno;
	}
	return fdatasync(fd) < 0 ? -errno : 0;
}

static int writer_run(const struct framework_config *config)
{
	const char *dir = getenv("TMPDIR");
	struct truth *truth = NULL;
	struct did did;
	char path[4096];
	int fd, r = 0;

	prctl(PR_SET_NAME, "writer");
	if (config->work.truth)
		r = truth_open(config->work.truth, "writer", TRUTH_RECORDS, &truth);
	if (r < 0)
		return r;
	did_begin(&did, truth, TRUTH_DID_COMPUTE);
	snprintf(path, sizeof(path), "%s/roles-checkpoint-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	r = fd < 0 ? -errno : chunks_write(config, fd);
	if (fd >= 0) {
		unlink(path);
		close(fd);
	}
	did_end(&did, TRUTH_ROLE_OTHER);
	truth_free(truth);
	return r;
}

/* Returns whether there is no writer any more. */
static bool writer_ended(struct rank *rank, pid_t writer, int flags)
{
	int status = 0;

	if (writer > 0 && waitpid(writer, &status, flags) == 0)
		return false;
	if (status != 0)
		rank_fail(rank, "writer", "failed");
	return true;
}

static pid_t writer_start(struct rank *rank)
{
	pid_t pid = fork_tied();

	if (pid == 0)
		_exit(writer_run(rank->config) < 0);
	if (pid < 0)
		rank_fail(rank, "fork", strerror(errno));
	return pid;
}

void checkpoint_run(struct rank *rank)
{
	pid_t writer = 0;

	while (rank_next_step(rank)) {
		train_batch(rank, NULL);
		device_kernels(rank, &rank->did, NULL, rank->config->launches);
		train_optimizer(rank, NULL);
		train_loss(rank, NULL);
		if (rank->nr_begun % EVERY_STEPS == 0 && writer_ended(rank, writer, WNOHANG))
			writer = writer_start(rank);
	}
	writer_ended(rank, writer, 0);
}
