/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "metrics/metrics.h"

int prometheus_text(const struct metrics *metrics, bool openmetrics, char **ret, size_t *ret_len);
int prometheus_protobuf(const struct metrics *metrics, char **ret, size_t *ret_len);

/* The index after the last series of this metric, starting at `i`; `i` if it has no series. */
static inline size_t metrics_family_end(const struct metrics *metrics, enum metric metric, size_t i)
{
	while (i < metrics->nr && metrics->series[i].metric == metric)
		i++;
	return i;
}
