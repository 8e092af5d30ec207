/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the snapshot of a node during a job: `print json|legacy|text|openmetrics|protobuf
 * [RANKS [OPS]]`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "metrics/prometheus.h"
#include "ipc/snapshot_json.h"
#include "metrics/node.h"

static int to_text(const struct snapshot *s, char **ret, size_t *ret_len)
{
	return prometheus_render(s, &node_config, PROMETHEUS_TEXT, ret, ret_len);
}

static int to_openmetrics(const struct snapshot *s, char **ret, size_t *ret_len)
{
	return prometheus_render(s, &node_config, PROMETHEUS_OPENMETRICS, ret, ret_len);
}

static int to_protobuf(const struct snapshot *s, char **ret, size_t *ret_len)
{
	return prometheus_render(s, &node_config, PROMETHEUS_PROTOBUF, ret, ret_len);
}

static const struct {
	const char *name;
	int (*print)(const struct snapshot *s, char **ret, size_t *ret_len);
} formats[] = {
	{ "json", snapshot_to_json }, { "legacy", snapshot_to_legacy_json },
	{ "text", to_text },	      { "openmetrics", to_openmetrics },
	{ "protobuf", to_protobuf },
};

int main(int argc, char **argv)
{
	struct node node = {
		.nr_ranks = argc > 2 ? (u32)atoi(argv[2]) : 8,
		.nr_operations = argc > 3 ? (u32)atoi(argv[3]) : 3,
	};

	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(formats); i++) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
		CLEANUP_FREE char *text = NULL;
		size_t length = 0;

		if (strcmp(formats[i].name, argv[1]) != 0)
			continue;
		s = node_snapshot(&node);
		return formats[i].print(s, &text, &length) < 0 ||
		       fwrite(text, 1, length, stdout) != length;
	}
	return 2;
}
