/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

#include "work/burn.h"
#include "work/options.h"

/* Options and state of every workload: the first member of its configuration. */
struct workload {
	u64 sync; /* index into spin, yield, block */
	u64 seed;
	const char *truth; /* directory; NULL: no truth log */
	struct burn burn;
};

/* The last rows of the option table of every workload. */
/* clang-format off */
#define WORKLOAD_AT(field) offsetof(struct workload, field)
#define WORKLOAD_OPTIONS \
	{ "sync", OPTION_CHOICE, WORKLOAD_AT(sync), 0, workload_syncs, "how a sync waits" }, \
	{ "seed", OPTION_U64, WORKLOAD_AT(seed), 0, NULL, "seed of all random numbers" }, \
	{ "truth", OPTION_STRING, WORKLOAD_AT(truth), 0, NULL, "write truth logs to this directory" }
/* clang-format on */
extern const char *const workload_syncs[];

struct workload_kind {
	const char *name;
	const struct option_row *options;
	size_t nr_options;
	const char *(*wrong)(const void *config); /* an error message, or NULL if it is valid */
};

/*
 * Parses the command line into the configuration, which contains the defaults, and
 * prepares the run. Returns false if the program must exit now with *ret_status; a
 * message was printed.
 */
bool workload_begin(const struct workload_kind *kind, int argc, char **argv,
		    struct workload *config, int *ret_status);

/* For cudaSetDeviceFlags(). */
unsigned int workload_sync_flags(const struct workload *workload);

/* Prints the share of the time that the GPU was busy for this process, from the truth, as JSON. */
void workload_print_busy(const struct workload *workload, pid_t pid);
