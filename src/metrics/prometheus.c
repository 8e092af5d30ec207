/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "metrics/prometheus.h"
#include <errno.h>
#include "base/cleanup.h"
#include "metrics/prometheus_internal.h"

const char *prometheus_content_type(enum prometheus_format format)
{
	static const char *const types[PROMETHEUS_FORMAT_NR] = {
		[PROMETHEUS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
		[PROMETHEUS_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; "
					   "charset=utf-8",
		[PROMETHEUS_PROTOBUF] = "application/vnd.google.protobuf; "
					"proto=io.prometheus.client.MetricFamily; "
					"encoding=delimited",
	};

	return types[format];
}

int prometheus_render(const struct snapshot *snapshot, const struct metrics_config *config,
		      enum prometheus_format format, char **ret, size_t *ret_len)
{
	CLEANUP(metrics_free_cleanup) struct metrics *metrics = NULL;
	int err = metrics_new(snapshot, config, &metrics);

	if (err < 0)
		return err;
	if (format == PROMETHEUS_PROTOBUF)
		return prometheus_protobuf(metrics, ret, ret_len);
	return prometheus_text(metrics, format == PROMETHEUS_OPENMETRICS, ret, ret_len);
}
