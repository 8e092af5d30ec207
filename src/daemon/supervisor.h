/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Manages the BPF programs: loads them, attaches the scheduler, and attaches it again when the
 * kernel requests a restart. Without the scheduler, watching continues. Failed steps are
 * tried again every `retry_s` seconds. Unless the operator demands it, the scheduler is attached
 * only while there is an ML process, and not while a cgroup has a CPU limit that it cannot keep.
 * Where the scheduler is not attached, the nice actuator can act.
 */
#include "config/config.h"
#include "core/cpu_limit.h"
#include "core/snapshot.h"
#include "daemon/discovery.h"
#include "daemon/learning.h"
#include "daemon/loop.h"
#include "daemon/nice.h"

struct supervisor;

struct supervisor_config {
	struct discovery *discovery; /* must outlive the supervisor */
	struct sched_policy policy;
	struct phase_config phase_detection;
	enum config_attach attach;
	enum config_actuator actuator;
	u32 retry_s;
	char device_files[CONFIG_TEXT_LEN];
};

struct supervisor_status {
	enum snapshot_sched_state state;
	enum snapshot_actuator actuator; /* what zerneld acts with now */
	/*
	 * If the scheduler is not attached: why zerneld refuses to attach it. If it is attached
	 * with attach=yes: the reason that does not count.
	 */
	enum cpu_limit limit;
	char reason[SNAPSHOT_TEXT_LEN]; /* why it is not attached; empty if it is not wanted */
	u64 nr_ejected;
	u64 nr_changes; /* of the state, the policy or the phase detector; to detect changes */
};

/* Called for every event of the BPF programs, while the data it refers to can still be read. */
typedef void (*supervisor_event_fn)(void *ctx, struct kernel *kernel, const struct event *event);

/* Loads and attaches as much as possible. A failure to load or attach is not an error here. */
int supervisor_new(const struct supervisor_config *config, struct loop *loop,
		   struct learning *learning, supervisor_event_fn on_event, void *ctx,
		   struct supervisor **ret);
struct supervisor *supervisor_free(struct supervisor *supervisor);

/* Call it often. Reads events and does the retries that are due. */
void supervisor_tick(struct supervisor *supervisor);

/* NULL while the BPF programs are not loaded. */
struct kernel *supervisor_kernel(const struct supervisor *supervisor);
/* The number of lost mapping events. */
u64 supervisor_nr_lost_maps(const struct supervisor *supervisor);
/* NULL: the programs are not loaded. */
struct library_set *supervisor_library_set(const struct supervisor *supervisor);
struct library_counts supervisor_libraries(const struct supervisor *supervisor);
const struct supervisor_status *supervisor_status(const struct supervisor *supervisor);
struct nice_counts supervisor_nice(const struct supervisor *supervisor);

/*
 * Acts at once with the actuator of the configuration, or stops. On failure, zerneld does not act,
 * and the status contains the reason.
 */
int supervisor_attach(struct supervisor *supervisor);
void supervisor_detach(struct supervisor *supervisor);

/*
 * Turns events for every change of phase, role and step on or off. A snapshot that is built
 * after this call contains the state before the first event.
 */
void supervisor_set_timeline(struct supervisor *supervisor, bool wanted);

/* The setters take effect immediately. */
void supervisor_set_policy(struct supervisor *supervisor, const struct sched_policy *policy);
const struct sched_policy *supervisor_policy(const struct supervisor *supervisor);
void supervisor_set_phase_config(struct supervisor *supervisor, const struct phase_config *config);
const struct phase_config *supervisor_phase_config(const struct supervisor *supervisor);
/* Attaches or detaches the scheduler if the value changes. */
void supervisor_set_attach(struct supervisor *supervisor, enum config_attach attach);
void supervisor_set_actuator(struct supervisor *supervisor, enum config_actuator actuator);
void supervisor_set_device_files(struct supervisor *supervisor, const char *files);
void supervisor_set_retry(struct supervisor *supervisor, u32 retry_s);
