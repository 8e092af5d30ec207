/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

#include "work/burn.h"
#include "work/options.h"

/* What every workload is told and knows: the first member of its configuration. */
struct workload {
	u64 sync; /* position in spin, yield, block */
	u64 seed;
	const char *truth; /* directory, NULL: none */
	struct burn burn;
};

/* The end of every workload's table of options. */
/* clang-format off */
#define WORKLOAD_AT(field) offsetof(struct workload, field)
#define WORKLOAD_OPTIONS \
	{ "sync", OPTION_CHOICE, WORKLOAD_AT(sync), 0, workload_syncs, "how a sync waits" }, \
	{ "seed", OPTION_U64, WORKLOAD_AT(seed), 0, NULL, "of everything random" }, \
	{ "truth", OPTION_STRING, WORKLOAD_AT(truth), 0, NULL, "directory for truth logs" }
/* clang-format on */
extern const char *const workload_syncs[];

struct workload_kind {
	const char *name;
	const struct option_row *options;
	size_t nr_options;
	const char *(*wrong)(const void *config); /* what is wrong with it, or NULL */
};

/*
 * Fills the configuration, which holds the defaults, and makes ready to run. False
 * when the program is to end now: with *ret_status, having said why.
 */
bool workload_begin(const struct workload_kind *kind, int argc, char **argv,
		    struct workload *config, int *ret_status);

/* For cudaSetDeviceFlags(). */
unsigned int workload_sync_flags(const struct workload *workload);

/* Share of the time the device was busy for that process, by the truth, as JSON. */
void workload_print_busy(const struct workload *workload, pid_t pid);
