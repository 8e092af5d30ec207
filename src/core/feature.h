/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the features of a kernel mean for a user: see abi/features.def. */
#include <stdbool.h>
#include <stddef.h>
#include "abi/feature.h"
#include "abi/types.h"

struct feature_row {
	const char *label; /* for output and files */
	const char *since;
	const char *loss; /* what is missing without it */
	bool is_essential;
};

/* NULL for an invalid value. */
const struct feature_row *feature_row(u32 feature);
const char *feature_label(u32 feature); /* "unknown" for an invalid value */

/* The features that zerneld cannot do without. */
u32 features_essential(void);

/* Writes "a, b" for a set; text that does not fit is truncated. */
void features_list(u32 set, char *ret, size_t size);
