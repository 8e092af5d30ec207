/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "core/tier.h"

#define WATCH_TIERS	4 /* a power of two, for the verifier */
#define WATCH_PROCESSES 65536

/* A watched process, from its exec on. */
struct watched {
	u64 exec_ns;
	u64 since_ns; /* when it began to run; 0 if it is not running */
	u64 ran_ns[WATCH_TIERS];
	u32 nr_slices;
	u8 first_tier; /* tier at its exec */
	u8 predicted;
	u8 tier; /* tier when it began to run */
	u8 pad;
};
