/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Why a GPU waits. It is idle for a process from the sync that leaves nothing queued to
 * the next launch, and every nanosecond of that has one cause, by what the launching
 * thread did: the causes add up to the idle time.
 */
enum idle_cause {
	IDLE_CPU,	      /* it ran, and launched nothing */
	IDLE_RUNQUEUE,	      /* it could have run, and others did */
	IDLE_LOADER_CPU,      /* it waited for data; the loader that brought it ran */
	IDLE_LOADER_RUNQUEUE, /* likewise, and the loader could have run, and others did */
	IDLE_LOADER_DISK,     /* likewise, and the loader waited for a disk */
	IDLE_LOADER_OTHER,    /* likewise, and the loader did something else */
	IDLE_COLLECTIVE,      /* it waited for other ranks */
	IDLE_DISK,	      /* it waited for a disk itself */
	IDLE_MEMORY,	      /* it waited for memory to be reclaimed */
	IDLE_LOCK,	      /* it waited for another thread, which brought no data */
	IDLE_OTHER,	      /* it slept for another reason */
	IDLE_CAUSE_NR,
};

/* How many of those who stood in the way of a process are told by name. */
#define CULPRITS_MAX 8
