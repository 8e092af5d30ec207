/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One run of the caller, and what it is held against. */
#include <sys/types.h>
#include "collect/kernel.h"
#include "signals/books.h"
#include "truth/truth.h"

#define MAX_LIVE 4096

struct scenario {
	const char *name;
	enum books_mode mode;
	bool is_hip;
	bool killed;	     /* in the middle of it */
	u32 share;	     /* of all calls: one part in so many */
	const char *visible; /* the devices' order, if it is not the machine's */
};

/* What the virtual GPU says, by the machine's numbers. */
struct truth_books {
	struct memory_book gpu[LEVEL_NR][BOOKS_DEVICES];
	struct memory_book host[LEVEL_NR];
	u64 live[MAX_LIVE]; /* pointers that the runtime allocated */
	u32 nr_live;
};

struct run {
	const struct scenario *scenario;
	struct kernel *kernel;
	struct books_shared *shared;
	pid_t pid;
	int pidfd;
	struct truth_record *records;
	u64 nr_read;
	struct truth_books truth;
	u64 nr_comparisons;
};

/* The kernel's books against the virtual GPU's, and on request against what NVML says. */
bool run_compare(struct run *run, bool with_nvml);

/* Whether every book had something in it: equal zeros prove nothing. */
bool run_filled_books(const struct run *run);

/* The process is gone: so must be what was known of it, and its memory. */
bool run_left_nothing(struct run *run, bool sweep);
