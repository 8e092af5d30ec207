/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/tier.h"

const char *tier_label(u32 tier)
{
	static const char *const labels[TIER_NR] = {
		[TIER_BATCH] = "batch",
		[TIER_INTERACTIVE] = "interactive",
		[TIER_LAT_CRITICAL] = "latency_critical",
	};

	return labels[tier_of(tier)];
}
