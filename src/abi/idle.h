/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Causes of idle time. For a process, a GPU is idle from the sync that leaves no
 * work queued to the next launch. Each nanosecond of this time has one cause,
 * determined by what the launcher did. The causes add up to the idle time.
 */
enum idle_cause {
	IDLE_CPU,	      /* the launcher ran and launched nothing */
	IDLE_RUNQUEUE,	      /* the launcher was runnable, other tasks ran */
	IDLE_LOADER_CPU,      /* the launcher waited for data; the loader ran */
	IDLE_LOADER_RUNQUEUE, /* the launcher waited for data; the loader was runnable, other tasks
				 ran */
	IDLE_LOADER_DISK,     /* the launcher waited for data; the loader waited for a disk */
	IDLE_LOADER_OTHER,    /* the launcher waited for data; the loader did something else */
	IDLE_COLLECTIVE,      /* the launcher waited for other ranks */
	IDLE_DISK,	      /* the launcher itself waited for a disk */
	IDLE_MEMORY,	      /* the launcher waited for memory reclaim */
	IDLE_LOCK,	      /* the launcher waited for another thread that brought no data */
	IDLE_OTHER,	      /* the launcher slept for another reason */
	IDLE_CAUSE_NR,
};

/* The maximum number of tasks and disks reported by name that delayed a process. */
#define CULPRITS_MAX 8
