/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The phase detector. The rule and the stability count are compiled twice from this
 * header, for BPF and for user space. All arithmetic is therefore on integers, and
 * fractions are in per mille.
 */
#include "abi/types.h"

enum phase {
	PHASE_UNKNOWN = 0,
	PHASE_DATA_LOADING,
	PHASE_GPU_COMPUTE,
	PHASE_COLLECTIVE,
	PHASE_OPTIMIZER,
	PHASE_NR,
};

struct phase_config {
	u64 optimizer_burst_max_ns; /* a shorter burst after a sync is an optimizer step */
	u32 io_wait_threshold;	    /* per mille; a larger I/O wait indicates data loading */
	u32 gpu_idle_threshold;	    /* percent; below it the GPU counts as idle */
	u32 gpu_active_threshold;   /* percent; above it the GPU counts as busy */
	u32 phase_stability_count;  /* equal samples in a row that change the phase */
	u8 nccl_detection_enabled;
	u8 pad[7];
};
_Static_assert(sizeof(struct phase_config) == 32, "shared with BPF");

/* An initializer, so that it can also initialize read-only data in BPF. */
#define PHASE_CONFIG_DEFAULT                                                                       \
	{                                                                                          \
		.optimizer_burst_max_ns = 5 * NSEC_PER_MSEC,                                       \
		.io_wait_threshold = 300,                                                          \
		.gpu_idle_threshold = 10,                                                          \
		.gpu_active_threshold = 80,                                                        \
		.phase_stability_count = 3,                                                        \
		.nccl_detection_enabled = 0,                                                       \
	}

/* The inputs of the rule. All zero means that nothing is known about the task. */
struct phase_signals {
	u64 burst_ns;	      /* length of the latest CPU burst that ended */
	u64 last_sync_ns;     /* when the last GPU sync was seen; 0: never */
	u32 gpu_utilization;  /* percent */
	u32 io_wait_permille; /* share of time in I/O wait */
	u32 nr_futex_waits;   /* recent ones; see process_infer() */
	u8 is_ml;
	u8 collective_mapped; /* the buffers of a collective library are mapped */
	u8 pad[2];
};
_Static_assert(sizeof(struct phase_signals) == 32, "shared with BPF");

/* The raw phase that may become the current phase. All zero means no candidate. */
struct phase_candidate {
	u32 phase;
	u32 count;
};
_Static_assert(sizeof(struct phase_candidate) == 8, "shared with BPF");

/* Phases are stored as plain integers. An invalid value counts as Unknown. */
static inline enum phase phase_of(u32 value)
{
	return value < PHASE_NR ? (enum phase)value : PHASE_UNKNOWN;
}

/* The raw rule. The numbers are those of the reference semantics. The first match wins. */
static inline enum phase phase_raw(const struct phase_config *c, const struct phase_signals *s)
{
	u32 io = s->io_wait_permille;
	u32 gpu = s->gpu_utilization;

	/* 1 */
	if (!s->is_ml)
		return PHASE_UNKNOWN;
	/* 2 */
	if (c->nccl_detection_enabled && s->collective_mapped && s->nr_futex_waits > 0)
		return PHASE_COLLECTIVE;
	/* 3 */
	if (io > c->io_wait_threshold && gpu < c->gpu_idle_threshold)
		return PHASE_DATA_LOADING;
	/* 4 */
	if (gpu > c->gpu_active_threshold && s->burst_ns == 0)
		return PHASE_GPU_COMPUTE;
	/* 5 */
	if (s->burst_ns > 0 && s->burst_ns < c->optimizer_burst_max_ns && s->last_sync_ns > 0)
		return PHASE_OPTIMIZER;
	/* 6: prefetch overlap; doubles one side, because halving the other side would round */
	if (2ULL * io > c->io_wait_threshold && c->gpu_idle_threshold < gpu &&
	    gpu < c->gpu_active_threshold)
		return PHASE_DATA_LOADING;
	/* 7 */
	return PHASE_UNKNOWN;
}

/*
 * Accepts a raw phase only after it was seen often enough in a row. Returns the phase of
 * the task from now on.
 */
static inline enum phase phase_settle(const struct phase_config *c, struct phase_candidate *cand,
				      u32 current, enum phase raw)
{
	if (c->phase_stability_count <= 1)
		return raw;

	if (cand->phase != (u32)raw) {
		cand->phase = raw;
		cand->count = 1;
	} else if (cand->count < ~0U) {
		cand->count++;
	}
	return cand->count >= c->phase_stability_count ? raw : phase_of(current);
}

/* Drops the candidate, for example because certain evidence decides the phase. */
static inline void phase_forget(struct phase_candidate *cand)
{
	cand->phase = PHASE_UNKNOWN;
	cand->count = 0;
}

/* Applies the rule and the stability count. */
static inline enum phase phase_detect(const struct phase_config *c, const struct phase_signals *s,
				      struct phase_candidate *cand, u32 current)
{
	return phase_settle(c, cand, current, phase_raw(c, s));
}

/* User space only. Both return the strings of PHASE_UNKNOWN for an invalid value. */
const char *phase_name(u32 phase);
const char *phase_label(u32 phase);

/* User space only: the share of a phase in all recorded time, 0 to 1; 0 if no time is recorded. */
double phase_fraction(const u64 phase_ns[static PHASE_NR], u32 phase);
