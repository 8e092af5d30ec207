/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The job that test_gpus.c runs, in a process of its own. */
#include "abi/types.h"

enum {
	GPUS_ASK_PROPERTIES = 1 << 0,
	GPUS_ASK_UUID = 1 << 1,
	GPUS_ASK_UUID_PART = 1 << 2,
	GPUS_ASK_PCI = 1 << 3,
	GPUS_ASK_ALL = 15,
};

#define GPUS_BYTES(device) (1ULL << (20 + (device)))

struct gpus_job {
	char visible[128]; /* the variable that selects devices; empty: it is not changed */
	u32 asks;	   /* what it asks for */
	u32 uses;	   /* a bit for each of its devices, if it has so many */
	u32 is_hip;
};

/* Says when it is done, and then waits for the end of its input. */
int gpus_caller(const struct gpus_job *job, const char *library_dir);
