/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Joins what collect brings in: libraries are found when processes map them and
 * get their probes, threads are followed, events and snapshots can be read.
 */
#include "base/macros.h"
#include "collect/kernel.h"
#include "collect/library.h"

struct manager;

struct manager_handler {
	kernel_event_fn on_event;
	/* A library could not be attached; it is tried again when seen again. */
	void (*on_attach_error)(void *ctx, const struct library *library, int err);
};

/*
 * Follows the whole machine when `pid` is -1. Else that process and the children it
 * has from now on, and of them only the calls: who sleeps and who wakes whom is heard
 * of everybody or of nobody. `kernel` must outlive the manager.
 */
int manager_new(struct kernel *kernel, pid_t pid, bool timeline,
		const struct manager_handler *handler, void *ctx, struct manager **ret);
struct manager *manager_free(struct manager *manager);
DEFINE_CLEANUP(struct manager, manager_free);

/* Readable when a library was mapped; what else happened shows only when one looks. */
int manager_fd(const struct manager *manager);

/* Takes in what happened; waits for it so long at most. */
int manager_poll(struct manager *manager, int timeout_ms);

/* Maps that happened and were not seen, since events came too fast. */
u64 manager_nr_lost_maps(const struct manager *manager);
struct library_counts manager_libraries(const struct manager *manager);
