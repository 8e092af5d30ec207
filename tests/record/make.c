/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a recording from standard input, one frame per line: `snapshot TEXT`, `events
 * TEXT`, `stacks TEXT` (needs the option --stacks) or `end`. The header and the times of the
 * frames come from the snapshots.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/record.h"
#include "ipc/snapshot_json.h"

#define WORD(line, word) (strncmp(line, word " ", strlen(word) + 1) == 0)

struct maker {
	FILE *out;
	struct record_writer *writer;
	bool has_stacks;
	u64 time_ns;
};

static int put_snapshot(struct maker *maker, const char *text, size_t length)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
	struct record_info info = { .interval_ms = 200, .has_stacks = maker->has_stacks };
	int err = snapshot_from_json(text, length, &s);

	/* An unknown frame is possible only after a valid snapshot. */
	if (err < 0)
		return maker->writer ? record_write(maker->writer, RECORD_FRAME_SNAPSHOT,
						    ++maker->time_ns, text, length)
				     : err;
	maker->time_ns = info.monotonic_ns = s->monotonic_ns;
	info.time_ms = s->time_ms;
	strcpy(info.host, s->host);
	if (!maker->writer)
		err = record_writer_new(maker->out, &info, &maker->writer);
	return err < 0 ? err
		       : record_write(maker->writer, RECORD_FRAME_SNAPSHOT, maker->time_ns, text,
				      length);
}

static int put_line(struct maker *maker, char *line)
{
	char *text = strchr(line, ' ');

	line[strcspn(line, "\n")] = '\0';
	if (WORD(line, "snapshot"))
		return put_snapshot(maker, text + 1, strlen(text + 1));
	if (WORD(line, "events"))
		return record_write(maker->writer, RECORD_FRAME_EVENTS, maker->time_ns, text + 1,
				    strlen(text + 1));
	if (WORD(line, "stacks"))
		return record_write(maker->writer, RECORD_FRAME_LINES, maker->time_ns, text + 1,
				    strlen(text + 1));
	return record_write(maker->writer, RECORD_FRAME_END, maker->time_ns, "", 0);
}

int main(int argc, char **argv)
{
	CLEANUP_FREE char *line = NULL;
	struct maker maker = { .out = stdout,
			       .has_stacks = argc > 1 && strcmp(argv[1], "--stacks") == 0 };
	size_t capacity = 0;
	int err = 0;

	while (err == 0 && getline(&line, &capacity, stdin) > 0)
		err = put_line(&maker, line);
	record_writer_free(maker.writer);
	return err < 0;
}
