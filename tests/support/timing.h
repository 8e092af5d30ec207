/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Bounds on time hold on a quiet machine only. `./dev test timing` judges them. The common
 * run prints the figures and judges what does not depend on the machine: counts, the order
 * of events, ratios of one run.
 */
#include <stdbool.h>
#include <stdlib.h>

static inline bool timing_is_judged(void)
{
	return getenv("ZERNEL_TIMING") != NULL;
}

#define timing_assert(condition) assert_true(!timing_is_judged() || (condition))
