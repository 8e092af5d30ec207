/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Fixed inputs of the phase detector and the phases they must give: the vectors
 * of the reference semantics first, then every rule, its edges, and which of two
 * rules wins. The parity test runs them through BPF as well.
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
	u32 phase[PHASE_VECTOR_CALLS]; /* expected, call after call */
	u32 nr_transitions;
};

/* One call with stability 1 from Unknown, which is what most vectors do. */
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
	{ "not ML, anything", .detect_collectives = 1,
	  .signals = { BURST(2000000), SYNC(1000000000), GPU(95), IO(500), NCCL(10) },
	  ONCE(PHASE_UNKNOWN) },
	{ "io 0.5, gpu 5", ML(IO(500), GPU(5)), ONCE(PHASE_DATA_LOADING) },
	{ "gpu 95, burst 0", ML(GPU(95)), ONCE(PHASE_GPU_COMPUTE) },
	{ "burst 2 ms, last sync 1 s", ML(BURST(2000000), SYNC(1000000000)), ONCE(PHASE_OPTIMIZER) },
	{ "detection on, buffers, 10 futex waits", ML(NCCL(10)), .detect_collectives = 1,
	  ONCE(PHASE_COLLECTIVE) },
	{ "detection off, buffers, 10 futex waits", ML(NCCL(10)), ONCE(PHASE_UNKNOWN) },
	{ "io 0.2, gpu 50", ML(IO(200), GPU(50)), ONCE(PHASE_DATA_LOADING) },
	{ "stability 3, io 0.5, gpu 5, three calls", ML(IO(500), GPU(5)),
	  .stability = 3, .nr_calls = 3,
	  .phase = { PHASE_UNKNOWN, PHASE_UNKNOWN, PHASE_DATA_LOADING }, .nr_transitions = 1 },

	/* the edges of each rule */
	{ "rule 2 needs a futex wait", ML(NCCL(0)), .detect_collectives = 1, ONCE(PHASE_UNKNOWN) },
	{ "rule 2 needs buffers", ML(.nr_futex_waits = 10), .detect_collectives = 1,
	  ONCE(PHASE_UNKNOWN) },
	{ "rule 3 begins above the threshold", ML(IO(301), GPU(9)), ONCE(PHASE_DATA_LOADING) },
	{ "rule 3 not at the threshold", ML(IO(300), GPU(9)), ONCE(PHASE_UNKNOWN) },
	{ "rule 3 not at the idle threshold", ML(IO(301), GPU(10)), ONCE(PHASE_UNKNOWN) },
	{ "rule 4 begins above the active threshold", ML(GPU(81)), ONCE(PHASE_GPU_COMPUTE) },
	{ "rule 4 not at the active threshold", ML(GPU(80)), ONCE(PHASE_UNKNOWN) },
	{ "rule 4 not with a burst", ML(GPU(95), BURST(1)), ONCE(PHASE_UNKNOWN) },
	{ "rule 5 begins at one nanosecond", ML(BURST(1), SYNC(1)), ONCE(PHASE_OPTIMIZER) },
	{ "rule 5 up to the longest burst", ML(BURST(4999999), SYNC(1)), ONCE(PHASE_OPTIMIZER) },
	{ "rule 5 not at the burst bound", ML(BURST(5000000), SYNC(1)), ONCE(PHASE_UNKNOWN) },
	{ "rule 5 not without a sync", ML(BURST(2000000)), ONCE(PHASE_UNKNOWN) },
	{ "rule 5 not without a burst", ML(SYNC(1)), ONCE(PHASE_UNKNOWN) },
	{ "rule 6 begins above half the threshold", ML(IO(151), GPU(50)), ONCE(PHASE_DATA_LOADING) },
	{ "rule 6 not at half the threshold", ML(IO(150), GPU(50)), ONCE(PHASE_UNKNOWN) },
	{ "rule 6 from above idle", ML(IO(200), GPU(11)), ONCE(PHASE_DATA_LOADING) },
	{ "rule 6 not at idle", ML(IO(200), GPU(10)), ONCE(PHASE_UNKNOWN) },
	{ "rule 6 up to active", ML(IO(200), GPU(79)), ONCE(PHASE_DATA_LOADING) },
	{ "rule 6 not at active", ML(IO(200), GPU(80)), ONCE(PHASE_UNKNOWN) },
	{ "rule 7 for an ML process at rest", ML(IO(0)), ONCE(PHASE_UNKNOWN) },

	/* the first match wins */
	{ "rule 2 before 3", ML(IO(500), GPU(5), NCCL(1)), .detect_collectives = 1,
	  ONCE(PHASE_COLLECTIVE) },
	{ "rule 2 before 4", ML(GPU(95), NCCL(1)), .detect_collectives = 1, ONCE(PHASE_COLLECTIVE) },
	{ "rule 3 before 5", ML(IO(500), GPU(5), BURST(1), SYNC(1)), ONCE(PHASE_DATA_LOADING) },
	{ "rule 5 before 6", ML(IO(200), GPU(50), BURST(1), SYNC(1)), ONCE(PHASE_OPTIMIZER) },
	{ "rule 5 where a burst keeps 4 away", ML(GPU(95), BURST(1), SYNC(1)), ONCE(PHASE_OPTIMIZER) },

	/* stability */
	{ "stability 0 is like 1", ML(GPU(95)), .stability = 0, .nr_calls = 2,
	  .phase = { PHASE_GPU_COMPUTE, PHASE_GPU_COMPUTE }, .nr_transitions = 1 },
	{ "stability 2 keeps the current phase once", ML(GPU(95)), .stability = 2,
	  .current = PHASE_OPTIMIZER, .nr_calls = 3,
	  .phase = { PHASE_OPTIMIZER, PHASE_GPU_COMPUTE, PHASE_GPU_COMPUTE }, .nr_transitions = 1 },
	{ "stability 3 leaves a phase for Unknown", ML(IO(0)), .stability = 3,
	  .current = PHASE_COLLECTIVE, .nr_calls = 4,
	  .phase = { PHASE_COLLECTIVE, PHASE_COLLECTIVE, PHASE_UNKNOWN, PHASE_UNKNOWN },
	  .nr_transitions = 1 },
	{ "no transition where the phase stays", ML(GPU(95)), .stability = 1,
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
