/* SPDX-License-Identifier: GPL-2.0-only */
#include "work/phases.h"

/* The burst bound of a detector left at its defaults. */
static const struct phase_config defaults = PHASE_CONFIG_DEFAULT;

void phases_begin(struct phases *phases, struct truth *truth, enum phase phase)
{
	u64 now = truth_now_ns();

	*phases = (struct phases){
		.truth = truth,
		.phase = phase,
		.since_ns = now,
		.born_ns = now,
	};
}

static void span_close(struct phases *phases, u64 now_ns)
{
	u64 since = phases->since_ns;
	u64 bound = since + defaults.optimizer_burst_max_ns;

	if (phases->phase == PHASE_OPTIMIZER && now_ns > bound) {
		truth_log(phases->truth, TRUTH_PHASE, PHASE_OPTIMIZER, since, bound, 0, 0, 0);
		truth_log(phases->truth, TRUTH_PHASE, PHASE_UNKNOWN, bound, now_ns, 0, 0, 0);
	} else {
		truth_log(phases->truth, TRUTH_PHASE, (u16)phases->phase, since, now_ns, 0, 0, 0);
	}
}

void phases_set(struct phases *phases, enum phase phase, u64 now_ns)
{
	if (phase == phases->phase)
		return;
	span_close(phases, now_ns);
	phases->phase = phase;
	phases->since_ns = now_ns;
}

void phases_end(struct phases *phases, enum truth_role role, u64 now_ns)
{
	span_close(phases, now_ns);
	truth_log(phases->truth, TRUTH_THREAD, (u16)role, phases->born_ns, now_ns, 0, 0, 0);
}
