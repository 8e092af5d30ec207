/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The features of a kernel that zerneld uses. A set of them has a bit for each. */
enum feature {
#define FEATURE(id, label, since, essential, loss) FEATURE_##id,
#include "abi/features.def"
	FEATURE_NR,
};

#define FEATURE_BIT(id) (1U << FEATURE_##id)

_Static_assert(FEATURE_NR <= 32, "a set fits into 32 bits");
