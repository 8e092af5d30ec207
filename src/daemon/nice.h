/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The nice actuator: samples the threads of ML processes, and sets their nice values by the
 * policy in core/nice.h. It changes only threads with the default nice value and policy, and
 * restores every value: when the policy says so, when it stops, and through its watcher when
 * zerneld is killed (daemon/nice_watch.h).
 */
#include "collect/kernel.h"
#include "core/nice.h"

struct nice;

struct nice_counts {
	u64 nr_threads; /* whose nice value is changed now */
	u64 nr_changes; /* values that were set or restored */
	u64 nr_dropped; /* changes that were not made: a rate limit, a full table or an error */
	u64 nr_lost;	/* threads that another program changed afterwards */
};

/* Does nothing until nice_act() is called. */
int nice_new(struct nice **ret);
/* Restores all values. */
struct nice *nice_free(struct nice *nice);

/*
 * Acts at each call for which a sample is due. `kernel`: NULL to restore all values and stop.
 * Returns a negative error if the watcher cannot be started: then no value is changed.
 */
int nice_act(struct nice *nice, struct kernel *kernel, u32 rules_off);

bool nice_is_acting(const struct nice *nice);
/* Counts since the start of zerneld. */
struct nice_counts nice_counts(const struct nice *nice);
