/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

#define MAX_SIGHTINGS 40000

/* Times from the instant that the program took for the change. */
struct sighting {
	u64 seen_ns;	/* when the reader saw the new phase */
	s64 changed_ns; /* when, by the kernel side, it began */
	u32 phase;
	u32 pad;
};
