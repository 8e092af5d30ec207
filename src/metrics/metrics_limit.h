/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "metrics/metrics.h"

/*
 * Leaves out what is more than `series_max`, counts what stays and what does not. The series must
 * be in the order of their units.
 */
int metrics_limit(struct metrics *metrics, u32 series_max);
