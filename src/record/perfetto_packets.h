/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The packets of a Perfetto trace. Times are CLOCK_MONOTONIC. */
#include <stdio.h>
#include "abi/types.h"

/* Write errors are reported by ferror(out). */
struct perfetto {
	FILE *out;
	u64 now_ns; /* timestamp of descriptors, which apply to the whole trace */
};

/* Must be called first: relates CLOCK_MONOTONIC to `time_ms` since the epoch. */
void perfetto_begin(struct perfetto *trace, u64 time_ms, u64 monotonic_ns);

/* The uuid of a track is unique in the trace. */
void perfetto_process(struct perfetto *trace, u64 uuid, u32 pid, const char *name);
void perfetto_thread(struct perfetto *trace, u64 uuid, u32 pid, u32 tid, const char *name);
/* A track of slices, below the track `parent`. */
void perfetto_lane(struct perfetto *trace, u64 uuid, u64 parent, const char *name);
/* A counter track, below the track `parent`, or at the top level (0). */
void perfetto_counter(struct perfetto *trace, u64 uuid, u64 parent, const char *name,
		      const char *unit);

void perfetto_slice(struct perfetto *trace, u64 uuid, const char *name, u64 begin_ns, u64 end_ns);
void perfetto_value(struct perfetto *trace, u64 uuid, u64 time_ns, double value);

#define PERFETTO_FRAMES_MAX 512

struct perfetto_frame {
	const char *function;
	const char *file; /* NULL: not known */
	u32 line;	  /* 0: not known */
};

/* A stack of a process, outermost frame first, and its time up to `time_ns`. */
void perfetto_stack(struct perfetto *trace, u64 time_ns, u32 pid,
		    const struct perfetto_frame *frames, u32 nr, u64 ns);
