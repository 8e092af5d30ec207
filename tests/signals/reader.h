/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

#define MAX_SIGHTINGS 40000

/* Times relative to the change, as the test program measured it. */
struct sighting {
	u64 seen_ns;	/* when the reader saw the new phase */
	s64 changed_ns; /* when the phase began, according to the BPF programs */
	u32 phase;
	u32 pad;
};
