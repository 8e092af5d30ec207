/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "base/time.h"
#include "base/worker.h"
#include "collect/gpu_devices.h"
#include "collect/mmap_events.h"
#include "daemon/manager.h"

/* A driver that is loaded later is noticed after this time. */
#define DEVICES_NS (10 * NSEC_PER_SEC)
/* How long manager_stop() waits. An attach takes seconds on a busy machine. */
#define STOP_NS	   (10 * NSEC_PER_SEC)
#define REPAIR_NS  NSEC_PER_SEC
/* Minimum time between two scans of all processes. */
#define RESCAN_NS  (10 * NSEC_PER_SEC)

struct manager {
	struct kernel *kernel;
	struct library_set *libraries;
	struct mmap_events *maps;
	struct worker *worker; /* attaches and detaches libraries */
	int fd;		       /* an epoll descriptor of maps and worker */
	bool wants_threads;    /* threads must be followed and are not followed yet */
	bool is_whole;	       /* the whole machine is followed */
	char *device_files;
	struct gpu_devices devices;
	u64 devices_ns;	 /* when they were last found */
	u64 repair_ns;	 /* when the events are looked after next */
	u64 rescan_ns;	 /* when all processes may be scanned next */
	u64 nr_lost;	 /* events, at the last scan of all processes */
	bool has_missed; /* events were missed since then */
	const struct manager_handler *handler;
	void *ctx;
};

/*
 * The operations of a library run in the worker. Only the worker uses wants_threads and the links
 * of libraries while it exists.
 */
static int attach(struct manager *manager, const struct library *library)
{
	int err = 0;

	/*
	 * Following threads adds a cost to every context switch of the machine. Start it only when
	 * an ML process exists.
	 */
	if (manager->wants_threads)
		err = kernel_attach_threads(manager->kernel);
	manager->wants_threads &= err < 0;
	return err < 0 ? err : kernel_attach_library(manager->kernel, library);
}

static int set_extra(struct manager *manager, const struct library *library)
{
	return kernel_set_extra(manager->kernel, library);
}

static int detach(struct manager *manager, const struct library *library)
{
	kernel_detach_library(manager->kernel, library);
	return 0;
}

static int run_operation(void *ctx, const void *job)
{
	static int (*const operations[])(struct manager *, const struct library *) = {
		[LIBRARY_ATTACHING] = attach,
		[LIBRARY_CHANGING] = set_extra,
		[LIBRARY_DETACHING] = detach,
	};
	const struct library *library = job;

	return operations[library->state](ctx, library);
}

/*
 * Each call of the kernel waits until all CPUs have left its RCU read-side sections. That takes
 * seconds for a library on a busy machine. Without a worker, the manager is about to be freed.
 */
static int on_operation(void *ctx, const struct library *library)
{
	struct manager *manager = ctx;
	int err;

	if (!manager->worker)
		return run_operation(manager, library);
	err = worker_push(manager->worker, library);
	return err < 0 ? err : LIBRARY_LATER;
}

static u32 on_nr_fds(void *ctx, const struct library_probes *probes)
{
	const struct manager *manager = ctx;

	return kernel_library_fds(manager->kernel, probes);
}

/* Returns whether there were results. */
static bool take_results(struct manager *manager)
{
	const void *job;
	bool any = false;
	int err;

	while (worker_pop(manager->worker, &job, &err)) {
		const struct library *library = job;

		if (err < 0)
			manager->handler->on_attach_error(manager->ctx, library, err);
		library_set_done(manager->libraries, library->slot, err);
		any = true;
	}
	return any;
}

/* Fails if the process has just exited. Then the failure does not matter. */
static void on_collective(void *ctx, int pidfd, bool is_mapped)
{
	struct manager *manager = ctx;

	(void)kernel_set_collective(manager->kernel, pidfd, is_mapped);
}

static void on_torch(void *ctx, pid_t pid)
{
	struct manager *manager = ctx;

	if (manager->handler->torch)
		manager->handler->torch(manager->ctx, pid);
}

static int on_torch_inherited(void *ctx, int parent, int child)
{
	struct manager *manager = ctx;

	return kernel_copy_python(manager->kernel, parent, child);
}

static bool on_holds_gpu(void *ctx, pid_t pid, int pidfd)
{
	struct manager *manager = ctx;

	return kernel_holds_gpu(manager->kernel, pid, pidfd);
}

static void on_map(void *ctx, pid_t pid, const char *name, u64 device, u64 inode)
{
	struct manager *manager = ctx;

	if (library_runtime_of(name) >= 0 || library_is_collective(name))
		library_set_scan_process(manager->libraries, pid);
}

static void on_exec(void *ctx, pid_t pid)
{
	struct manager *manager = ctx;

	library_set_exec_process(manager->libraries, pid);
}

/* A process frees its memory before its exit event is sent. Every user may read its size. */
static bool has_memory(pid_t pid)
{
	char path[32];
	uint64_t nr_pages;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	return file_read_number(path, &nr_pages) == 0 && nr_pages > 0;
}

static void on_scan(void *ctx, pid_t pid, enum library_scan_kind kind)
{
	struct manager *manager = ctx;

	manager->handler->scan(manager->ctx, pid, kind);
}

static void on_scan_all(void *ctx)
{
	struct manager *manager = ctx;

	manager->handler->scan_all(manager->ctx);
}

/* Events of different CPUs are not ordered: the exit of the child can arrive before the fork. */
static void on_fork(void *ctx, pid_t parent, pid_t child)
{
	struct manager *manager = ctx;

	/* A child inherits mappings that are not known yet. */
	if (manager->handler->is_wanted && manager->handler->is_wanted(manager->ctx, parent))
		on_scan(manager, child, LIBRARY_SCAN_MAPS);
	if (!library_set_has_process(manager->libraries, parent))
		return;
	library_set_fork_process(manager->libraries, parent, child);
	if (!has_memory(child))
		library_set_forget_process(manager->libraries, child);
}

static void on_exit_process(void *ctx, pid_t pid)
{
	struct manager *manager = ctx;

	library_set_forget_process(manager->libraries, pid);
}

/* Files that were opened before their device was known to be a GPU are found now. */
static int update_devices(struct manager *manager)
{
	struct gpu_devices devices;
	int nr_missing = gpu_devices_find("/proc", manager->device_files, &devices);

	manager->devices_ns = time_now_ns();
	if (memcmp(&devices, &manager->devices, sizeof(devices)) == 0)
		return nr_missing;
	manager->devices = devices;
	kernel_set_gpu_devices(manager->kernel, &devices);
	if (manager->is_whole)
		(void)kernel_find_holders(manager->kernel);
	return nr_missing;
}

int manager_set_device_files(struct manager *manager, const char *files)
{
	char *copy = strdup(files);

	if (!copy)
		return -ENOMEM;
	free(manager->device_files);
	manager->device_files = copy;
	return update_devices(manager);
}

/* The opens are watched before the first search, so that no open is missed between them. */
static int watch_devices(struct manager *manager)
{
	int err = manager->is_whole ? kernel_attach_devices(manager->kernel) : 0;

	return err < 0 ? err : manager_set_device_files(manager, "");
}

static int open_fd(struct manager *manager)
{
	const int fds[] = { mmap_events_fd(manager->maps), worker_fd(manager->worker) };
	struct epoll_event event = { .events = EPOLLIN };

	manager->fd = epoll_create1(EPOLL_CLOEXEC);
	if (manager->fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (epoll_ctl(manager->fd, EPOLL_CTL_ADD, fds[i], &event) < 0)
			return -errno;
	return 0;
}

int manager_new(struct kernel *kernel, pid_t pid, bool timeline,
		const struct manager_handler *handler, void *ctx, struct manager **ret)
{
	static const struct library_ops library_ops = {
		.attach = on_operation,
		.detach = on_operation,
		.set_extra = on_operation,
		.nr_fds = on_nr_fds,
		.collective = on_collective,
		.holds_gpu = on_holds_gpu,
	};
	static const struct library_ops remote_ops = {
		.attach = on_operation,
		.detach = on_operation,
		.set_extra = on_operation,
		.nr_fds = on_nr_fds,
		.scan = on_scan,
		.scan_all = on_scan_all,
		.collective = on_collective,
		.torch = on_torch,
		.torch_inherited = on_torch_inherited,
		.holds_gpu = on_holds_gpu,
	};
	static const struct mmap_handler mmap_handler = {
		.on_map = on_map,
		.on_exec = on_exec,
		.on_fork = on_fork,
		.on_exit = on_exit_process,
	};
	CLEANUP(manager_free_cleanup) struct manager *manager = calloc(1, sizeof(*manager));
	int err;

	if (!manager)
		return -ENOMEM;
	manager->fd = -EBADF;
	manager->kernel = kernel;
	manager->handler = handler;
	manager->ctx = ctx;
	manager->wants_threads = manager->is_whole = pid < 0;
	err = watch_devices(manager);
	if (err < 0)
		return err;
	err = kernel_open_events(kernel, timeline, handler->on_event, ctx);
	if (err < 0)
		return err;
	/* A library has at most one operation under way. */
	err = worker_new(LIBRARY_MAX, run_operation, manager, &manager->worker);
	if (err < 0)
		return err;
	err = library_set_new("/proc", handler->scan ? &remote_ops : &library_ops, manager,
			      &manager->libraries);
	if (err < 0)
		return err;
	err = mmap_events_new(pid, &mmap_handler, manager, &manager->maps);
	if (err < 0)
		return err;
	err = open_fd(manager);
	if (err < 0)
		return err;
	/* Then scan for libraries that were mapped before the events were opened. */
	err = pid < 0 ? library_set_scan_all(manager->libraries)
		      : library_set_scan_process(manager->libraries, pid);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(manager);
	return 0;
}

struct manager *manager_free(struct manager *manager)
{
	if (!manager)
		return NULL;
	mmap_events_free(manager->maps);
	manager->worker = worker_free(manager->worker);
	library_set_free(manager->libraries);
	cleanup_fd(&manager->fd);
	free(manager->device_files);
	free(manager);
	return NULL;
}

int manager_stop(struct manager *manager)
{
	return worker_stop(manager->worker, STOP_NS);
}

int manager_fd(const struct manager *manager)
{
	return manager->fd;
}

int manager_wait(struct manager *manager)
{
	int err = worker_start(manager->worker);

	if (err < 0)
		return err;
	/* An operation that ended can be followed by another one. */
	do
		worker_wait(manager->worker);
	while (take_results(manager));
	return 0;
}

/*
 * After lost events, and after a CPU came back, mappings are missing that no later event reports.
 * On a CPU whose events the kernel refuses (kernel.perf_event_paranoid is 3, and zerneld has
 * dropped CAP_SYS_ADMIN), they may stay missing.
 */
static void tend_events(struct manager *manager, u64 now_ns)
{
	u64 nr_lost = mmap_events_lost(manager->maps);

	if (!manager->is_whole || now_ns < manager->repair_ns)
		return;
	manager->repair_ns = now_ns + REPAIR_NS;
	/* Unlike lost events, users cannot cause this, so the scan need not wait. */
	if (mmap_events_repair(manager->maps) > 0) {
		manager->has_missed = true;
		manager->rescan_ns = now_ns;
	}
	manager->has_missed |= mmap_events_is_blind(manager->maps) || nr_lost != manager->nr_lost;
	if (!manager->has_missed || now_ns < manager->rescan_ns)
		return;
	manager->rescan_ns = now_ns + RESCAN_NS;
	manager->nr_lost = nr_lost;
	manager->has_missed = false;
	(void)library_set_scan_all(manager->libraries);
}

int manager_poll(struct manager *manager, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = manager->fd, .events = POLLIN },
		{ .fd = kernel_events_fd(manager->kernel), .events = POLLIN },
	};
	int err = worker_start(manager->worker);

	if (err < 0)
		return err;
	if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	take_results(manager);
	if (time_now_ns() >= manager->devices_ns + DEVICES_NS)
		(void)update_devices(manager);
	err = mmap_events_read(manager->maps);
	tend_events(manager, time_now_ns());
	library_set_look_again(manager->libraries, time_now_ns());
	library_set_drop_unused(manager->libraries, time_now_ns());
	return err < 0 ? err : kernel_read_events(manager->kernel);
}

struct library_set *manager_library_set(const struct manager *manager)
{
	return manager->libraries;
}

u64 manager_nr_lost_maps(const struct manager *manager)
{
	return mmap_events_lost(manager->maps);
}

struct library_counts manager_libraries(const struct manager *manager)
{
	return library_set_count(manager->libraries);
}
