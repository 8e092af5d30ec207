/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "train/hidden.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work/process.h"

#define CHUNK_BYTES (256ULL << 10)
#define CHUNK_NS    NSEC_PER_MSEC /* CPU time to copy a chunk, +-20 % */

/* Total number of chunks that a rank has passed on. */
struct hidden_rank {
	u32 nr_chunks;
} __attribute__((aligned(64)));

struct hidden {
	u64 nr_ranks;
	struct hidden_rank ranks[];
};

struct hidden *hidden_new(u64 nr_ranks)
{
	char path[] = "/dev/shm/nccl-XXXXXX";
	size_t size = sizeof(struct hidden) + nr_ranks * sizeof(struct hidden_rank);
	int fd = mkstemp(path);
	struct hidden *hidden = MAP_FAILED;

	if (fd < 0)
		return NULL;
	unlink(path);
	if (ftruncate(fd, (off_t)size) == 0)
		hidden = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (hidden == MAP_FAILED)
		return NULL;
	hidden->nr_ranks = nr_ranks;
	return hidden;
}

static void pass_on(struct hidden_rank *own)
{
	__atomic_add_fetch(&own->nr_chunks, 1, __ATOMIC_RELEASE);
	futex_wake_all(&own->nr_chunks);
}

/* The count may wrap. */
static void wait_for(struct hidden_rank *other, u32 nr_chunks)
{
	u32 nr = __atomic_load_n(&other->nr_chunks, __ATOMIC_ACQUIRE);

	while ((s32)(nr - nr_chunks) < 0) {
		futex_wait(&other->nr_chunks, nr, 0);
		nr = __atomic_load_n(&other->nr_chunks, __ATOMIC_ACQUIRE);
	}
}

void hidden_reduce(struct hidden *hidden, const struct burn *burn, u64 rank, u64 bytes, u64 seed)
{
	struct hidden_rank *own = &hidden->ranks[rank];
	struct hidden_rank *previous =
		&hidden->ranks[(rank + hidden->nr_ranks - 1) % hidden->nr_ranks];

	for (u64 done = 0; done < bytes; done += CHUNK_BYTES) {
		burn_ns(burn, random_around(CHUNK_NS, random_at(seed, rank), own->nr_chunks));
		pass_on(own);
		wait_for(previous, own->nr_chunks);
	}
}
