/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A snapshot in the formats that Prometheus, and all that speak its language, scrape. */
#include "core/snapshot.h"

enum prometheus_format {
	PROMETHEUS_TEXT,	/* 0.0.4 */
	PROMETHEUS_OPENMETRICS, /* 1.0 */
	PROMETHEUS_PROTOBUF,	/* delimited, with native histograms */
	PROMETHEUS_FORMAT_NR,
};

/* For the Content-Type of an answer. */
const char *prometheus_content_type(enum prometheus_format format);

/*
 * At most `series_max` series (metrics.h). The caller frees *ret; text has a zero after its end,
 * which does not count.
 */
int prometheus_render(const struct snapshot *snapshot, u32 series_max,
		      enum prometheus_format format, char **ret, size_t *ret_len);
