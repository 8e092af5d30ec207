/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "core/phase.h"
#include "truth/dir.h"

/* Exact quantiles, sorted[min(floor(q n), n - 1)]; all zero without values. */
struct truth_quantiles {
	u64 nr;
	double mean_ms;
	double p50_ms;
	double p99_ms;
};

/* Sorts `values_ns` in place. */
struct truth_quantiles truth_quantiles_of(u64 *values_ns, u64 nr);

struct truth_summary {
	u32 pid;
	struct truth_quantiles steps;
	struct truth_quantiles ttft;
	u64 phase_ns[PHASE_NR]; /* of the launcher if there is one, otherwise of all threads */
	u64 window_ns;		/* first to last step or request; 0 without steps and requests */
	u64 busy_ns;		/* union of GPU time within the window */
};

/* One entry for each process that logged phases, steps or requests, by pid. The caller frees. */
int truth_summarise(const struct truth_dir *dir, struct truth_summary **ret, u64 *ret_nr);

/* One process; -ENOENT if it left no truth. */
int truth_summarise_pid(const struct truth_dir *dir, u32 pid, struct truth_summary *ret);

/* Prints the share of the window that the GPU was busy, as JSON: null without a window. */
void truth_print_busy(const struct truth_summary *summary);
