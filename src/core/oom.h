/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The report of PyTorch's allocator when it finds no GPU memory for a request, even after it has
 * returned all memory that it did not need. It calls a function for its profiler with these
 * values, whether or not a profiler runs, and then throws. A program can catch that and go on.
 */
#include <stdbool.h>
#include "abi/signals.h"

/* A process that fails again and again sends so many events. */
#define OOM_EVENT_NS NSEC_PER_SEC

struct oom_report {
	u64 time_ns; /* of the latest error, in CLOCK_MONOTONIC */
	u64 asked_bytes;
	u64 allocated_bytes; /* given out by the allocator */
	u64 reserved_bytes;  /* got from the driver */
	u64 nr;		     /* errors so far; 0: the other fields are not valid */
	u64 told_ns;	     /* when the last event was sent */
	u32 device;	     /* as the process numbers it; GPU_MAX: not known */
	u32 tid;
};
_Static_assert(sizeof(struct oom_report) == 56, "shared with BPF");

/* c10::Device is passed as two bytes: its type, of which 0 is the CPU, and its number, or -1. */
static inline bool oom_is_gpu(u64 device)
{
	return (device & 0xff) != 0;
}

static inline u32 oom_device(u64 device)
{
	u32 number = device >> 8 & 0xff;

	return number < GPU_MAX ? number : GPU_MAX;
}

/* Returns whether an event is due. Of two threads, the later report can come first. */
static inline bool oom_add(struct oom_report *to, const struct oom_report *latest)
{
	bool is_due = !to->nr || (s64)(latest->time_ns - to->told_ns) >= (s64)OOM_EVENT_NS;

	to->time_ns = latest->time_ns;
	to->asked_bytes = latest->asked_bytes;
	to->allocated_bytes = latest->allocated_bytes;
	to->reserved_bytes = latest->reserved_bytes;
	to->device = latest->device;
	to->tid = latest->tid;
	to->nr++;
	if (is_due)
		to->told_ns = latest->time_ns;
	return is_due;
}
