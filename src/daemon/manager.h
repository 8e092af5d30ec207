/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Joins the parts of src/collect: finds libraries when processes map them, attaches probes to
 * them, follows threads, and reads events.
 */
#include "base/macros.h"
#include "collect/kernel.h"
#include "collect/library.h"

struct manager;

struct manager_handler {
	kernel_event_fn on_event;
	/* Called when attaching fails. It is tried again when the library is seen again. */
	void (*on_attach_error)(void *ctx, const struct library *library, int err);
	/*
	 * Scan a process, or all processes, in another process, and whether the result is still
	 * missing. All NULL: the manager scans by itself, at once.
	 */
	void (*scan)(void *ctx, pid_t pid, enum library_scan_kind kind);
	void (*scan_all)(void *ctx);
	bool (*is_wanted)(void *ctx, pid_t pid);
	/* A process has mapped a library of PyTorch. May be NULL. */
	void (*torch)(void *ctx, pid_t pid);
};

/*
 * If `pid` is -1, follows the whole machine. Otherwise, follows only this process and its
 * future children, and only their calls: sleeps and wakeups can be followed only for the whole
 * machine. `kernel` must outlive the manager.
 */
int manager_new(struct kernel *kernel, pid_t pid, bool timeline,
		const struct manager_handler *handler, void *ctx, struct manager **ret);
struct manager *manager_free(struct manager *manager);
DEFINE_CLEANUP(struct manager, manager_free);

/*
 * Device files that count as GPUs beside the ones that are known, comma-separated. Returns the
 * number of files that are no character devices; they count as soon as they are.
 */
int manager_set_device_files(struct manager *manager, const char *files);

/*
 * Call it before manager_free() when the caller must not wait for long. Waits for the attach or
 * detach that is under way, and begins no other. -ETIMEDOUT: it is still under way; neither the
 * manager nor the kernel may be freed.
 */
int manager_stop(struct manager *manager);

/*
 * Readable when a library was mapped, attached or detached. Other events are seen only by
 * manager_poll().
 */
int manager_fd(const struct manager *manager);

/*
 * Reads all events. Waits at most `timeout_ms` for the first one. Libraries are attached and
 * detached in another thread, which the first call starts, also for the libraries that
 * manager_new() found.
 */
int manager_poll(struct manager *manager, int timeout_ms);

/* Waits until all libraries that were found are attached. */
int manager_wait(struct manager *manager);

/* The set that gets the results of scans in another process. */
struct library_set *manager_library_set(const struct manager *manager);

/* The number of mapping events that were lost because events arrived too fast. */
u64 manager_nr_lost_maps(const struct manager *manager);
struct library_counts manager_libraries(const struct manager *manager);
