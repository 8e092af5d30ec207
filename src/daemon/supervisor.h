/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps the kernel side: loads it, attaches the scheduler, again when the kernel asks
 * for a fresh start, and goes on watching without the scheduler. What cannot be had now is
 * tried again at a slow pace.
 */
#include "core/snapshot.h"
#include "daemon/learning.h"
#include "daemon/loop.h"

struct supervisor;

struct supervisor_config {
	struct sched_policy policy;
	struct phase_config phase_detection;
	bool scheduler; /* attach it at the start */
	u32 retry_s;
};

struct supervisor_status {
	enum snapshot_sched_state state;
	char reason[SNAPSHOT_TEXT_LEN]; /* why it is not attached; empty when nobody wants it */
	u64 nr_ejected;
	u64 nr_changes; /* of the state, the policy or the phase detector, to notice one by */
};

/* Every event of the kernel side, while what it is about can still be read. */
typedef void (*supervisor_event_fn)(void *ctx, struct kernel *kernel, const struct event *event);

/* Loads and attaches what can be had; that nothing can is no failure. */
int supervisor_new(const struct supervisor_config *config, struct loop *loop,
		   struct learning *learning, supervisor_event_fn on_event, void *ctx,
		   struct supervisor **ret);
struct supervisor *supervisor_free(struct supervisor *supervisor);

/* Call it often: what happened is taken in, and what is due is tried again. */
void supervisor_tick(struct supervisor *supervisor);

/* NULL while it could not be loaded. */
struct kernel *supervisor_kernel(const struct supervisor *supervisor);
/* Mappings of libraries that were not seen. */
u64 supervisor_nr_lost_maps(const struct supervisor *supervisor);
struct library_counts supervisor_libraries(const struct supervisor *supervisor);
const struct supervisor_status *supervisor_status(const struct supervisor *supervisor);

/* The reason of a failure is in the status. */
int supervisor_attach(struct supervisor *supervisor);
void supervisor_detach(struct supervisor *supervisor);

/*
 * Every change of phase, role and step is an event from now on, or is none any more. A
 * snapshot made after this call knows what was before the first of them.
 */
void supervisor_set_timeline(struct supervisor *supervisor, bool wanted);

/* Holds at once. */
void supervisor_set_policy(struct supervisor *supervisor, const struct sched_policy *policy);
const struct sched_policy *supervisor_policy(const struct supervisor *supervisor);
void supervisor_set_phase_config(struct supervisor *supervisor, const struct phase_config *config);
const struct phase_config *supervisor_phase_config(const struct supervisor *supervisor);
void supervisor_set_retry(struct supervisor *supervisor, u32 retry_s);
