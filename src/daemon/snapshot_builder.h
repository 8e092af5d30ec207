/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Builds a snapshot of the whole state. It does so when a client asks, and also at intervals, so
 * that the data of short-lived processes is not lost. It only reads its sources, which include
 * the BPF programs.
 */
#include "base/macros.h"
#include "daemon/devices.h"
#include "daemon/learning.h"
#include "daemon/message.h"
#include "daemon/oom_stacks.h"
#include "daemon/supervisor.h"

struct snapshot_builder;

struct snapshot_sources {
	const struct supervisor *supervisor;
	struct discovery *discovery;
	const struct learning *learning;
	struct devices *devices; /* NULL: GPUs are not sampled */
	struct oom_stacks *oom_stacks;
	const struct hist *loop_turns; /* durations of the iterations of the loop */
};

int snapshot_builder_new(const char *version, struct snapshot_builder **ret);
struct snapshot_builder *snapshot_builder_free(struct snapshot_builder *builder);
DEFINE_CLEANUP(struct snapshot_builder, snapshot_builder_free);

/* The sources must outlive the builder. */
void snapshot_builder_set_sources(struct snapshot_builder *builder,
				  const struct snapshot_sources *sources);

/* Call it once a second. */
void snapshot_builder_tick(struct snapshot_builder *builder);

/* Call it for every event of the BPF programs. Keeps the data of a process that exits. */
void snapshot_builder_on_event(struct snapshot_builder *builder, struct kernel *kernel,
			       const struct event *event);

/* The last snapshot. Valid until the next call of any function in this header. */
const struct snapshot *snapshot_builder_last(const struct snapshot_builder *builder);

/*
 * Whether a snapshot can be taken now. If not, the GPUs are sampled for it: see
 * sampler_prepare().
 */
bool snapshot_builder_prepare(struct snapshot_builder *builder);

/*
 * Returns a reference to the snapshot as JSON; NULL when out of memory. `uid` is that of a user who
 * gets only what belongs to the own processes, at most a second old; or SNAPSHOT_UID_UNKNOWN.
 */
struct message *snapshot_builder_message(struct snapshot_builder *builder, u32 uid);

/* The ended jobs as JSON: see history_show() and above. */
int snapshot_builder_ended(struct snapshot_builder *builder, u32 uid, const char *who,
			   struct message **ret);
