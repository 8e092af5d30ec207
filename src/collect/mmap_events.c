/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/mmap_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include "base/cleanup.h"
#include "collect/topology.h"

#define RING_PAGES     8     /* a power of two; a record of a mapping is about 100 bytes */
#define CHECK_INTERVAL 8     /* calls of mmap_events_repair() between two checks of a ring */
#define CHECKS_OF_ALL  2     /* after a change of the CPUs: the second one sees that time stopped */
#define RECORD_BYTES   65536 /* the size of a record is a u16 */

struct ring {
	int fd;		 /* negative: the CPU is offline */
	bool is_missing; /* the kernel refused to open it for a CPU that is online */
	u64 enabled_ns;	 /* time in which the event was enabled */
	struct perf_event_mmap_page *page;
	const u8 *data;
};

struct mmap_events {
	const struct mmap_handler *handler;
	void *ctx;
	int epoll_fd;
	pid_t pid;
	size_t ring_bytes;
	u64 nr_lost;
	u32 nr_rings; /* one for each CPU */
	u32 next;     /* the ring that is checked next */
	u32 nr_full;  /* following checks that are of all rings */
	u64 version;  /* of the CPUs, at the last check */
	bool is_blind;
	struct ring *ring;
	u8 record[RECORD_BYTES] __attribute__((aligned(8)));
};

/* The bodies of the records, as documented in the comments of perf_event.h. */
struct record_map {
	u32 pid, tid;
	u64 address, length, offset;
	u32 major, minor;
	u64 inode, generation;
	u32 protection, flags;
};

struct record_task {
	u32 pid, parent, tid, parent_tid;
	u64 time;
};

struct record_comm {
	u32 pid, tid;
};

struct record_lost {
	u64 id, nr;
};

struct record {
	const struct mmap_handler *handler;
	void *ctx;
	const u8 *body;
	size_t size;
	u16 misc;
};

static u64 decode_map(const struct record *record)
{
	const char *name = (const char *)record->body + sizeof(struct record_map);
	struct record_map map;

	memcpy(&map, record->body, sizeof(map));
	if (memchr(name, '\0', record->size - sizeof(map)))
		record->handler->on_map(record->ctx, (pid_t)map.pid, name,
					makedev(map.major, map.minor), map.inode);
	return 0;
}

/* Records without the flag come from prctl(PR_SET_NAME). */
static u64 decode_comm(const struct record *record)
{
	struct record_comm comm;

	memcpy(&comm, record->body, sizeof(comm));
	if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
		record->handler->on_exec(record->ctx, (pid_t)comm.pid);
	return 0;
}

/* The fork of a new thread has the same pid as its parent. */
static u64 decode_fork(const struct record *record)
{
	struct record_task task;

	memcpy(&task, record->body, sizeof(task));
	if (task.pid != task.parent)
		record->handler->on_fork(record->ctx, (pid_t)task.parent, (pid_t)task.pid);
	return 0;
}

static u64 decode_exit(const struct record *record)
{
	struct record_task task;

	memcpy(&task, record->body, sizeof(task));
	if (task.pid == task.tid)
		record->handler->on_exit(record->ctx, (pid_t)task.pid);
	return 0;
}

static u64 decode_lost(const struct record *record)
{
	struct record_lost lost;

	memcpy(&lost, record->body, sizeof(lost));
	return lost.nr;
}

static const struct {
	size_t size;
	u64 (*decode)(const struct record *record);
} decoders[PERF_RECORD_MAX] = {
	[PERF_RECORD_MMAP2] = { sizeof(struct record_map), decode_map },
	[PERF_RECORD_COMM] = { sizeof(struct record_comm), decode_comm },
	[PERF_RECORD_FORK] = { sizeof(struct record_task), decode_fork },
	[PERF_RECORD_EXIT] = { sizeof(struct record_task), decode_exit },
	[PERF_RECORD_LOST] = { sizeof(struct record_lost), decode_lost },
};

u64 mmap_events_decode(const void *record, size_t size, const struct mmap_handler *handler,
		       void *ctx)
{
	struct perf_event_header header;
	struct record body = { .handler = handler, .ctx = ctx };

	if (size < sizeof(header))
		return 0;
	memcpy(&header, record, sizeof(header));
	body.body = (const u8 *)record + sizeof(header);
	body.size = size - sizeof(header);
	body.misc = header.misc;
	if (header.type >= PERF_RECORD_MAX || !decoders[header.type].decode ||
	    body.size < decoders[header.type].size)
		return 0;
	return decoders[header.type].decode(&body);
}

/* A record can wrap around to the start of the ring. */
static void copy_from_ring(const struct mmap_events *events, const struct ring *ring, u64 at,
			   void *ret, size_t size)
{
	size_t start = at & (events->ring_bytes - 1), first = events->ring_bytes - start;

	if (first > size)
		first = size;
	memcpy(ret, ring->data + start, first);
	memcpy((u8 *)ret + first, ring->data, size - first);
}

static int read_ring(struct mmap_events *events, struct ring *ring)
{
	u64 head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	u64 tail = ring->page->data_tail;
	int nr = 0;

	while (head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;

		copy_from_ring(events, ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail ||
		    header.size > events->ring_bytes)
			break;
		copy_from_ring(events, ring, tail, events->record, header.size);
		tail += header.size;
		/*
		 * The space is released before the handler runs, because the handler can take long.
		 */
		__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
		events->nr_lost += mmap_events_decode(events->record, header.size, events->handler,
						      events->ctx);
		nr++;
	}
	return nr;
}

int mmap_events_read(struct mmap_events *events)
{
	int nr = 0;

	for (u32 i = 0; i < events->nr_rings; i++)
		if (events->ring[i].fd >= 0)
			nr += read_ring(events, &events->ring[i]);
	return nr;
}

static void ring_close(const struct mmap_events *events, struct ring *ring)
{
	if (ring->page)
		munmap(ring->page, events->ring_bytes + (size_t)getpagesize());
	cleanup_fd(&ring->fd);
	*ring = (struct ring){ .fd = -EBADF };
}

/* -ENODEV: the CPU is offline. */
static int ring_open(const struct mmap_events *events, pid_t pid, int cpu, struct ring *ret)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1, /* so that users can watch their own processes */
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.inherit = pid >= 0,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	struct epoll_event wanted = { .events = EPOLLIN };
	struct ring ring = { .fd = -EBADF };
	void *memory;
	int err;

	ring.fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring.fd < 0)
		return -errno;
	memory = mmap(NULL, events->ring_bytes + (size_t)getpagesize(), PROT_READ | PROT_WRITE,
		      MAP_SHARED, ring.fd, 0);
	if (memory == MAP_FAILED || epoll_ctl(events->epoll_fd, EPOLL_CTL_ADD, ring.fd, &wanted)) {
		err = -errno;
		ring.page = memory == MAP_FAILED ? NULL : memory;
		ring_close(events, &ring);
		return err;
	}
	ring.page = memory;
	ring.data = (const u8 *)memory + getpagesize();
	*ret = ring;
	return 0;
}

int mmap_events_new(pid_t pid, const struct mmap_handler *handler, void *ctx,
		    struct mmap_events **ret)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct mmap_events *events = calloc(1, sizeof(*events));
	int err = 0, nr_open = 0;

	if (!events)
		return -ENOMEM;
	events->handler = handler;
	events->ctx = ctx;
	events->pid = pid;
	events->ring_bytes = RING_PAGES * (size_t)getpagesize();
	events->ring = calloc((size_t)nr_cpus, sizeof(*events->ring));
	events->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!events->ring || events->epoll_fd < 0)
		err = -ENOMEM;
	for (long cpu = 0; cpu < nr_cpus && !err; cpu++) {
		events->ring[events->nr_rings++].fd = -EBADF;
		err = ring_open(events, pid, (int)cpu, &events->ring[cpu]);
		if (!err)
			nr_open++;
		else if (err == -ENODEV)
			err = 0;
	}
	if (!err && !nr_open)
		err = -ENODEV;
	if (err < 0) {
		mmap_events_free(events);
		return err;
	}
	*ret = events;
	return 0;
}

struct mmap_events *mmap_events_free(struct mmap_events *events)
{
	if (!events)
		return NULL;
	for (u32 i = 0; i < events->nr_rings; i++)
		ring_close(events, &events->ring[i]);
	cleanup_fd(&events->epoll_fd);
	free(events->ring);
	free(events);
	return NULL;
}

/*
 * An event whose CPU went offline stays open, but its time stops, also after the CPU came back.
 * Reading the time interrupts the CPU, so without a reason it is done for a few rings at a time.
 */
static bool ring_has_stopped(struct ring *ring)
{
	u64 values[2]; /* count, time enabled */

	if (read(ring->fd, values, sizeof(values)) != sizeof(values))
		return true;
	if (values[1] == ring->enabled_ns)
		return true;
	ring->enabled_ns = values[1];
	return false;
}

/*
 * Returns whether a new ring is in place. Where the kernel refuses to open it, the old event is
 * enabled, which needs no privilege: the records of its CPU come again. Its time stays stopped, so
 * it cannot be told whether the records stop, and the ring counts as missing.
 */
static bool ring_renew(struct mmap_events *events, struct ring *ring, int cpu)
{
	struct ring fresh;
	int err = ring_open(events, events->pid, cpu, &fresh);

	if (err == 0) {
		ring_close(events, ring);
		*ring = fresh;
		return true;
	}
	/* Each of the following checks tries to open it. */
	if (err == -ENODEV) {
		ring_close(events, ring);
		return false;
	}
	if (ring->fd >= 0)
		(void)ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0);
	ring->is_missing = true;
	return false;
}

int mmap_events_repair(struct mmap_events *events)
{
	u64 version = topology_version("/sys");
	int nr = 0;

	if (version != events->version)
		events->nr_full = CHECKS_OF_ALL;
	events->version = version;
	events->is_blind = false;
	for (u32 i = 0; i < events->nr_rings; i++) {
		struct ring *ring = &events->ring[i];
		bool is_due = events->nr_full || (i + events->next) % CHECK_INTERVAL == 0;

		if (ring->fd < 0 || (is_due && ring_has_stopped(ring)))
			nr += ring_renew(events, ring, (int)i);
		events->is_blind |= ring->is_missing;
	}
	events->next++;
	events->nr_full -= events->nr_full > 0;
	return nr;
}

bool mmap_events_is_blind(const struct mmap_events *events)
{
	return events->is_blind;
}

int mmap_events_fd(const struct mmap_events *events)
{
	return events->epoll_fd;
}

u64 mmap_events_lost(const struct mmap_events *events)
{
	return events->nr_lost;
}
