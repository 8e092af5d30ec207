/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing: a thread claims a slot with one atomic add and owns it from then on. It
 * stores the kind last, with release order, which publishes the record. The counter
 * is in memory that is wiped on fork, so a child that still uses its parent's log
 * writes nothing, instead of overwriting its parent's slots.
 */
#include "truth/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct truth {
	struct truth_header *header; /* NULL in a forked child: it logs nothing */
	struct truth_record *records;
	u64 capacity;
	size_t map_bytes;
	u32 pid;
	_Atomic u64 next;
};

static u64 clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

u64 truth_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/*
 * gettid is a system call, and tens of thousands of launches are logged, so the tid is
 * cached. The pid beside it shows whether the tid was inherited from a parent.
 */
static u32 cached_tid(u32 pid)
{
	static _Thread_local struct {
		u32 pid;
		u32 tid;
	} self;

	if (self.pid != pid) {
		self.tid = (u32)gettid();
		self.pid = pid;
	}
	return self.tid;
}

static int map_file(const char *path, size_t bytes, void **ret_map)
{
	void *map;
	int r = 0;
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) < 0) {
		r = -errno;
	} else {
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			r = -errno;
		else
			*ret_map = map;
	}
	close(fd);
	return r;
}

static void header_fill(struct truth_header *header, const char *writer, u32 capacity)
{
	header->version = TRUTH_VERSION;
	header->record_size = sizeof(struct truth_record);
	header->pid = (u32)getpid();
	header->capacity = capacity;
	header->start_ns = truth_now_ns();
	header->boottime_minus_monotonic_ns = clock_ns(CLOCK_BOOTTIME) - truth_now_ns();
	snprintf(header->writer, sizeof(header->writer), "%s", writer);
	/* The magic is written last: a file with it has a complete header. */
	atomic_thread_fence(memory_order_release);
	memcpy(header->magic, TRUTH_MAGIC, sizeof(header->magic));
}

int truth_open(const char *dir, const char *writer, u32 capacity, struct truth **ret)
{
	size_t bytes = sizeof(struct truth_header) + (size_t)capacity * sizeof(struct truth_record);
	struct truth *truth;
	char path[4096];
	void *map = NULL;
	int r;

	r = snprintf(path, sizeof(path), "%s/%s.%d.truth", dir, writer, getpid());
	if (r < 0 || (size_t)r >= sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (truth == MAP_FAILED)
		return -errno;
	if (madvise(truth, sizeof(*truth), MADV_WIPEONFORK) < 0)
		r = -errno;
	else
		r = map_file(path, bytes, &map);
	if (r < 0) {
		munmap(truth, sizeof(*truth));
		return r;
	}
	truth->header = map;
	truth->records = (struct truth_record *)(truth->header + 1);
	truth->capacity = capacity;
	truth->map_bytes = bytes;
	truth->pid = (u32)getpid();
	header_fill(truth->header, writer, capacity);
	*ret = truth;
	return 0;
}

struct truth *truth_free(struct truth *truth)
{
	if (!truth)
		return NULL;
	if (truth->header)
		munmap(truth->header, truth->map_bytes);
	munmap(truth, sizeof(*truth));
	return NULL;
}

void truth_log(struct truth *truth, enum truth_kind kind, u16 sub, u64 start_ns, u64 end_ns, u64 a,
	       u64 b, u64 c)
{
	struct truth_record *rec;
	u64 slot;

	if (!truth || !truth->header)
		return;
	slot = atomic_fetch_add_explicit(&truth->next, 1, memory_order_relaxed);
	if (slot >= truth->capacity) {
		__atomic_fetch_add(&truth->header->nr_dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	rec = &truth->records[slot];
	rec->start_ns = start_ns;
	rec->end_ns = end_ns;
	rec->a = a;
	rec->b = b;
	rec->c = c;
	rec->tid = cached_tid(truth->pid);
	rec->sub = sub;
	__atomic_store_n(&rec->kind, (u16)kind, __ATOMIC_RELEASE);
}
