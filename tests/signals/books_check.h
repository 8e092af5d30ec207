/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One run of the caller, and the data that it is compared with. */
#include <sys/types.h>
#include "collect/kernel.h"
#include "signals/books.h"
#include "truth/truth.h"

#define MAX_LIVE 4096

struct scenario {
	const char *name;
	enum books_mode mode;
	bool is_hip;
	bool killed;	     /* the caller is killed during its calls */
	u32 share;	     /* makes 1/share of all calls */
	const char *visible; /* order of the devices, if it differs from the machine's */
};

/* The accounts of the virtual GPU, by the machine's device numbers. */
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

/* Compares the accounts of the BPF programs with the virtual GPU and, on request, with NVML. */
bool run_compare(struct run *run, bool with_nvml);

/* Returns whether every account had entries: equal zeros would prove nothing. */
bool run_filled_books(const struct run *run);

/* Returns whether no state and no memory of the ended process is left. */
bool run_left_nothing(struct run *run, bool sweep);
