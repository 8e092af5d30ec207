/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "metrics/metrics.h"

/*
 * Removes series until at most `series_max` are left, and counts the kept and the removed
 * ones. The series must be in the order of their units.
 */
int metrics_limit(struct metrics *metrics, u32 series_max);
