/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of metrics_new(). Series that one call of a function adds for one item share a unit. */
#include "metrics/metrics.h"

void metrics_add_value(struct metrics *m, enum metric metric, const struct metric_labels *labels,
		       u64 value);
/* Takes ownership of `hist`, also when no series is added. */
void metrics_add_owned(struct metrics *m, enum metric metric, const struct metric_labels *labels,
		       struct hist *hist);

void metrics_add_jobs(struct metrics *m, const struct snapshot *s);
/* `order` has the indices of the processes, oldest first. */
int metrics_add_ranks(struct metrics *m, const struct snapshot *s, const u32 *order);
