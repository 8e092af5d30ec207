/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Renders the replies of the gateways of a fleet: `render RANKS OPERATIONS`, per node. Each
 * input line is `FORMAT NODE AGE` (protobuf or text, the number of the node, its age in
 * seconds). The output is the length of the reply on a separate line, then the reply.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "metrics/prometheus.h"
#include "metrics/node.h"

static bool answer(const struct node *node, enum prometheus_format format)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node_snapshot(node);
	CLEANUP_FREE char *text = NULL;
	size_t length;

	if (prometheus_render(s, &node_config, format, &text, &length) < 0)
		return false;
	printf("%zu\n", length);
	return fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
	struct node node = { 0 };
	char format[16];

	if (argc != 3)
		return 2;
	node.nr_ranks = (u32)atoi(argv[1]);
	node.nr_operations = (u32)atoi(argv[2]);
	while (scanf("%15s %u %u", format, &node.number, &node.age_s) == 3)
		if (!answer(&node, strcmp(format, "text") ? PROMETHEUS_PROTOBUF : PROMETHEUS_TEXT))
			return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
