/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/tier.h"

/* Found bit by bit from the exact comparison, so it never disagrees with the decision. */
u32 tier_behaviour_permille(const struct tier_votes *v, u32 nr_observations, u64 average,
			    u64 deviation)
{
	u32 permille = 0;

	for (u32 bit = 512; bit > 0; bit >>= 1)
		if (tier_confidence_reaches(v, nr_observations, average, deviation, permille + bit))
			permille += bit;
	return permille;
}

const char *tier_label(u32 tier)
{
	static const char *const labels[TIER_NR] = {
		[TIER_BATCH] = "batch",
		[TIER_INTERACTIVE] = "interactive",
		[TIER_LAT_CRITICAL] = "latency_critical",
	};

	return labels[tier_of(tier)];
}
