/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The policy of the nice actuator: class_of() of core/policy.h, where no sched_ext scheduler
 * acts. zerneld samples threads a few times a second, so the actuator follows roles, not the
 * phases within a step. A class that promotes a thread lowers its nice value, and a class
 * that ends has its effect for some time longer. A thread that spins keeps its nice value:
 * with a lower one it would take the CPU time of all other tasks.
 *
 * For user space only, and pure.
 */
#include "core/policy.h"
#include "core/process.h"

/* How long a thread stays promoted after its class no longer promotes it. */
#define NICE_HOLD_NS	  NSEC_PER_SEC
/* A thread that was seen to spin is not promoted for this long. */
#define NICE_SPUN_HOLD_NS (10 * NSEC_PER_SEC)
/*
 * A thread spins if it runs longer than it sleeps in syncs, and for more than this part of the
 * time. A collective helper polls if it runs for more than that part of the time. A launcher
 * polls if it was seen to yield again and again.
 */
#define NICE_SPIN_PART	  32
#define NICE_POLL_PART	  8

/* The effect of a class: nice 0 and slice 0 are the defaults of the kernel. */
struct nice_rule {
	s32 nice;
	u64 slice_ns; /* of sched_setattr(), from Linux 6.12 on; 0: do not change it */
};

extern const struct nice_rule nice_rules[CLASS_SLOTS];

/* What a sample shows of a thread. */
struct nice_sample {
	struct class_view view;
	u64 cpu_ns; /* these three since the start of the thread */
	u64 sync_spin_ns;
	u64 sync_sleep_ns;
};

/* The history of a thread. All zero: it was never sampled. */
struct nice_state {
	struct nice_sample last;
	u64 promoted_ns; /* the last sample at which its class promoted it; 0: never */
	u64 spun_ns;	 /* the last sample at which it spun; 0: never */
	u32 class;	 /* enum sched_class: the row of nice_rules in effect */
	u32 pad;
};

/*
 * What the policy knows about a thread of `process`. `consumer`: of a loader, the process that
 * it loads for; NULL if it is not known. Without evidence that this process uses a GPU, the
 * role is ROLE_OTHER, as the scheduler does it.
 */
struct nice_sample nice_look(const struct thread_record *thread,
			     const struct process_state *process,
			     const struct process_state *consumer, u64 now);

/* Adds a sample to the history. Returns the class whose row of nice_rules the thread gets. */
u32 nice_decide(struct nice_state *state, const struct nice_sample *sample, u32 rules_off);
