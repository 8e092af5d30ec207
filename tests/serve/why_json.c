/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads two snapshots, one on each line, and prints the answer for the time between them. */
#include <stdio.h>
#include <stdlib.h>

#include "answers/why.h"
#include "ipc/snapshot_json.h"

static struct snapshot *read_snapshot(void)
{
	struct snapshot *snapshot = NULL;
	char *line = NULL;
	size_t size = 0;
	ssize_t length = getline(&line, &size, stdin);

	if (length < 0 || snapshot_from_json(line, (size_t)length, &snapshot) < 0)
		exit(EXIT_FAILURE);
	free(line);
	return snapshot;
}

int main(void)
{
	struct snapshot *before = read_snapshot(), *after = read_snapshot();
	struct why *why;
	size_t length;
	char *text;

	if (why_new(before, after, NULL, &why) < 0 || why_to_json(why, &text, &length) < 0)
		return EXIT_FAILURE;
	puts(text);
	free(text);
	why_free(why);
	snapshot_free(before);
	snapshot_free(after);
	return EXIT_SUCCESS;
}
