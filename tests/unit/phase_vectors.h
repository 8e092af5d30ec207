/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Fixed inputs of the phase detector and the expected phases: first the vectors of the
 * reference semantics, then the limits of every rule, and the precedence of the rules.
 * The parity test runs them through BPF as well.
 */
#include "base/macros.h"
#include "core/phase.h"

#define PHASE_VECTOR_CALLS 4

struct phase_vector {
	const char *name;
	struct phase_signals signals;
	u32 stability;
	u32 detect_collectives;
	u32 current;
	u32 nr_calls;
	u32 phase[PHASE_VECTOR_CALLS]; /* expected phase after each call */
	u32 nr_transitions;
};

/* One call with stability 1, starting in Unknown. Most vectors use this. */
#define ONCE(want) .stability = 1, .nr_calls = 1, .phase = { want }, .nr_transitions = want != 0
#define ML(...)	   .signals = { .is_ml = 1, __VA_ARGS__ }
#define IO(x)	   .io_wait_permille = x
#define GPU(x)	   .gpu_utilization = x
#define BURST(x)   .burst_ns = x
#define SYNC(x)	   .last_sync_ns = x
#define NCCL(x)	   .collective_mapped = 1, .nr_futex_waits = x

/* clang-format off */
static const struct phase_vector phase_vectors[] = {
	/* the reference vectors */
	{ "not an ML process, any signals", .detect_collectives = 1,
	  .signals = { BURST(2000000), SYNC(1000000000), GPU(95), IO(500), NCCL(10) },
	  ONCE(PHASE_UNKNOWN) },
	{ "io 0.5, gpu 5", ML(IO(500), GPU(5)), ONCE(PHASE_DATA_LOADING) },
	{ "gpu 95, burst 0", ML(GPU(95)), ONCE(PHASE_GPU_COMPUTE) },
	{ "burst 2 ms, last sync 1 s", ML(BURST(2000000), SYNC(1000000000)),
	  ONCE(PHASE_OPTIMIZER) },
	{ "detection on, buffers, 10 futex waits", ML(NCCL(10)), .detect_collectives = 1,
	  ONCE(PHASE_COLLECTIVE) },
	{ "detection off, buffers, 10 futex waits", ML(NCCL(10)), ONCE(PHASE_UNKNOWN) },
	{ "io 0.2, gpu 50", ML(IO(200), GPU(50)), ONCE(PHASE_DATA_LOADING) },
	{ "stability 3, io 0.5, gpu 5, three calls", ML(IO(500), GPU(5)),
	  .stability = 3, .nr_calls = 3,
	  .phase = { PHASE_UNKNOWN, PHASE_UNKNOWN, PHASE_DATA_LOADING }, .nr_transitions = 1 },

	/* the limits of each rule */
	{ "rule 2 needs a futex wait", ML(NCCL(0)), .detect_collectives = 1, ONCE(PHASE_UNKNOWN) },
	{ "rule 2 needs buffers", ML(.nr_futex_waits = 10), .detect_collectives = 1,
	  ONCE(PHASE_UNKNOWN) },
	{ "rule 3 applies above the threshold", ML(IO(301), GPU(9)), ONCE(PHASE_DATA_LOADING) },
	{ "rule 3 does not apply at the threshold", ML(IO(300), GPU(9)), ONCE(PHASE_UNKNOWN) },
	{ "rule 3 does not apply at the idle threshold", ML(IO(301), GPU(10)),
	  ONCE(PHASE_UNKNOWN) },
	{ "rule 4 applies above the active threshold", ML(GPU(81)), ONCE(PHASE_GPU_COMPUTE) },
	{ "rule 4 does not apply at the active threshold", ML(GPU(80)), ONCE(PHASE_UNKNOWN) },
	{ "rule 4 does not apply with a burst", ML(GPU(95), BURST(1)), ONCE(PHASE_UNKNOWN) },
	{ "rule 5 applies to a burst of 1 ns", ML(BURST(1), SYNC(1)), ONCE(PHASE_OPTIMIZER) },
	{ "rule 5 applies just below the burst bound", ML(BURST(4999999), SYNC(1)),
	  ONCE(PHASE_OPTIMIZER) },
	{ "rule 5 does not apply at the burst bound", ML(BURST(5000000), SYNC(1)),
	  ONCE(PHASE_UNKNOWN) },
	{ "rule 5 does not apply without a sync", ML(BURST(2000000)), ONCE(PHASE_UNKNOWN) },
	{ "rule 5 does not apply without a burst", ML(SYNC(1)), ONCE(PHASE_UNKNOWN) },
	{ "rule 6 applies above half the threshold", ML(IO(151), GPU(50)),
	  ONCE(PHASE_DATA_LOADING) },
	{ "rule 6 does not apply at half the threshold", ML(IO(150), GPU(50)),
	  ONCE(PHASE_UNKNOWN) },
	{ "rule 6 applies above the idle threshold", ML(IO(200), GPU(11)),
	  ONCE(PHASE_DATA_LOADING) },
	{ "rule 6 does not apply at the idle threshold", ML(IO(200), GPU(10)),
	  ONCE(PHASE_UNKNOWN) },
	{ "rule 6 applies below the active threshold", ML(IO(200), GPU(79)),
	  ONCE(PHASE_DATA_LOADING) },
	{ "rule 6 does not apply at the active threshold", ML(IO(200), GPU(80)),
	  ONCE(PHASE_UNKNOWN) },
	{ "rule 7 applies to an ML process without signals", ML(IO(0)), ONCE(PHASE_UNKNOWN) },

	/* the first match wins */
	{ "rule 2 wins over rule 3", ML(IO(500), GPU(5), NCCL(1)), .detect_collectives = 1,
	  ONCE(PHASE_COLLECTIVE) },
	{ "rule 2 wins over rule 4", ML(GPU(95), NCCL(1)), .detect_collectives = 1,
	  ONCE(PHASE_COLLECTIVE) },
	{ "rule 3 wins over rule 5", ML(IO(500), GPU(5), BURST(1), SYNC(1)),
	  ONCE(PHASE_DATA_LOADING) },
	{ "rule 5 wins over rule 6", ML(IO(200), GPU(50), BURST(1), SYNC(1)),
	  ONCE(PHASE_OPTIMIZER) },
	{ "rule 5 applies if a burst excludes rule 4", ML(GPU(95), BURST(1), SYNC(1)),
	  ONCE(PHASE_OPTIMIZER) },

	/* stability */
	{ "stability 0 equals stability 1", ML(GPU(95)), .stability = 0, .nr_calls = 2,
	  .phase = { PHASE_GPU_COMPUTE, PHASE_GPU_COMPUTE }, .nr_transitions = 1 },
	{ "stability 2 keeps the current phase once", ML(GPU(95)), .stability = 2,
	  .current = PHASE_OPTIMIZER, .nr_calls = 3,
	  .phase = { PHASE_OPTIMIZER, PHASE_GPU_COMPUTE, PHASE_GPU_COMPUTE }, .nr_transitions = 1 },
	{ "stability 3 leaves a phase for Unknown", ML(IO(0)), .stability = 3,
	  .current = PHASE_COLLECTIVE, .nr_calls = 4,
	  .phase = { PHASE_COLLECTIVE, PHASE_COLLECTIVE, PHASE_UNKNOWN, PHASE_UNKNOWN },
	  .nr_transitions = 1 },
	{ "no transition if the phase stays", ML(GPU(95)), .stability = 1,
	  .current = PHASE_GPU_COMPUTE, .nr_calls = 2,
	  .phase = { PHASE_GPU_COMPUTE, PHASE_GPU_COMPUTE }, .nr_transitions = 0 },
};
/* clang-format on */

#define NR_PHASE_VECTORS ARRAY_SIZE(phase_vectors)

static inline struct phase_config phase_vector_config(const struct phase_vector *v)
{
	struct phase_config config = PHASE_CONFIG_DEFAULT;

	config.phase_stability_count = v->stability;
	config.nccl_detection_enabled = (u8)v->detect_collectives;
	return config;
}
