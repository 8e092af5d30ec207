/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs a property on random inputs. A violation prints the seed that makes the
 * failing input the first one, so that one run reproduces it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "base/time.h"
#include "property/random.h"

#define PROPERTY_STANDARD_RUNS 10000000

static inline double property_seconds(void)
{
	return 1e-9 * (double)time_of_ns(CLOCK_MONOTONIC);
}

/*
 * Each call of the property consumes this many inputs: values of a list, steps of
 * a sequence.
 */
static inline void property_holds(bool (*property)(struct random *r), u64 inputs_per_call)
{
	u64 runs = random_runs("PROPERTY_RUNS", PROPERTY_STANDARD_RUNS), done = 0;
	struct random r = random_start();
	double start = property_seconds();

	for (; done < runs; done += inputs_per_call) {
		u64 seed = r.state;

		if (!property(&r)) {
			print_error("# violated: RANDOM_SEED=%" PRIu64 " PROPERTY_RUNS=1\n",
				    (uint64_t)seed);
			fail();
		}
	}
	print_message("# %" PRIu64 " inputs in %.1f s\n", (uint64_t)done,
		      property_seconds() - start);
}

/* Defines the cmocka test of a property. */
#define PROPERTY(name, inputs_per_call)                                                            \
	static void name(void **state)                                                             \
	{                                                                                          \
		property_holds(name##_holds, inputs_per_call);                                     \
	}
