/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Builds a snapshot of all that is known, when a client asks and now and then, so that
 * nothing is lost of processes that come and go in between. It reads its sources, the
 * kernel side among them, and writes to none of them.
 */
#include "base/macros.h"
#include "daemon/devices.h"
#include "daemon/learning.h"
#include "daemon/message.h"
#include "daemon/supervisor.h"

struct snapshot_builder;

struct snapshot_sources {
	const struct supervisor *supervisor;
	const struct learning *learning;
	const struct devices *devices; /* NULL: devices are not asked */
};

int snapshot_builder_new(const char *version, struct snapshot_builder **ret);
struct snapshot_builder *snapshot_builder_free(struct snapshot_builder *builder);
DEFINE_CLEANUP(struct snapshot_builder, snapshot_builder_free);

/* From now on; they must outlive the builder. */
void snapshot_builder_set_sources(struct snapshot_builder *builder,
				  const struct snapshot_sources *sources);

/* Call it once a second. */
void snapshot_builder_tick(struct snapshot_builder *builder);

/* For every event of the kernel side: what a process measured up to its end is kept. */
void snapshot_builder_on_event(struct snapshot_builder *builder, struct kernel *kernel,
			       const struct event *event);

/* As it was built last. Good until the next call of any function here. */
const struct snapshot *snapshot_builder_last(const struct snapshot_builder *builder);

/* A reference to the snapshot as JSON; NULL for want of memory. */
struct message *snapshot_builder_message(struct snapshot_builder *builder);
