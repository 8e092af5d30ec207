/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Renders a snapshot in the formats that Prometheus and compatible scrapers read. */
#include "core/snapshot.h"
#include "metrics/metrics.h"

enum prometheus_format {
	PROMETHEUS_TEXT,	/* 0.0.4 */
	PROMETHEUS_OPENMETRICS, /* 1.0 */
	PROMETHEUS_PROTOBUF,	/* delimited, with native histograms */
	PROMETHEUS_FORMAT_NR,
};

/* The value of the Content-Type header. */
const char *prometheus_content_type(enum prometheus_format format);

/* The caller frees *ret. Text has a terminating zero that *ret_len does not count. */
int prometheus_render(const struct snapshot *snapshot, const struct metrics_config *config,
		      enum prometheus_format format, char **ret, size_t *ret_len);
