/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Parses arbitrary text as a snapshot. A parsed snapshot, written and parsed again, must be
 * the same.
 */
#include <string.h>

#include "metrics/metrics.h"
#include "metrics/prometheus.h"
#include "ipc/snapshot_json.h"
#include "fuzz/fuzz.h"

static void check_exports(const struct snapshot *s)
{
	static const struct metrics_config config = {
		.series_max = METRICS_SERIES_MAX,
		.dense_buckets = true,
	};
	char *text = NULL;
	size_t size = 0;

	for (u32 format = 0; format < PROMETHEUS_FORMAT_NR; format++) {
		REQUIRE(prometheus_render(s, &config, format, &text, &size) == 0);
		free(text);
	}
	REQUIRE(snapshot_to_legacy_json(s, &text, &size) == 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot *s = NULL, *again = NULL;
	char *text = NULL, *text_again = NULL;
	size_t length = 0, length_again = 0;

	if (snapshot_from_json((const char *)data, size, &s) < 0)
		return 0;
	check_exports(s);
	REQUIRE(snapshot_to_json(s, &text, &length) == 0);
	REQUIRE(snapshot_from_json(text, length, &again) == 0);
	REQUIRE(snapshot_to_json(again, &text_again, &length_again) == 0);
	REQUIRE(length == length_again && memcmp(text, text_again, length) == 0);
	free(text);
	free(text_again);
	snapshot_free(s);
	snapshot_free(again);
	return 0;
}
