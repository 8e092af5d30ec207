/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The packets of a Perfetto trace. Times are CLOCK_MONOTONIC. */
#include <stdio.h>
#include "abi/types.h"

/* Whether all of it could be written shows in ferror(). */
struct perfetto {
	FILE *out;
	u64 now_ns; /* of descriptors, which hold for the whole trace */
};

/* Comes first: what the clock showed when it was `time_ms` since the epoch. */
void perfetto_begin(struct perfetto *trace, u64 time_ms, u64 monotonic_ns);

/* Tracks have a number that nobody else in the trace has. */
void perfetto_process(struct perfetto *trace, u64 uuid, u32 pid, const char *name);
void perfetto_thread(struct perfetto *trace, u64 uuid, u32 pid, u32 tid, const char *name);
/* Of slices, below another one. */
void perfetto_lane(struct perfetto *trace, u64 uuid, u64 parent, const char *name);
/* Below another one, or below none (0). */
void perfetto_counter(struct perfetto *trace, u64 uuid, u64 parent, const char *name,
		      const char *unit);

void perfetto_slice(struct perfetto *trace, u64 uuid, const char *name, u64 begin_ns, u64 end_ns);
void perfetto_value(struct perfetto *trace, u64 uuid, u64 time_ns, double value);
