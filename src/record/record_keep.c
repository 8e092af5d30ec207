/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_keep.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "record/record_format.h"

/* To find a snapshot, half of a segment is decompressed on average. */
#define SEGMENT_SNAPSHOTS 10
/* The writer needs this much memory three times. */
#define TEXT_MAX	  (4UL << 20)

/* A recording without its last frame. */
struct segment {
	struct segment *next;
	struct record_info info; /* of its first snapshot */
	u64 last_ns;
	u32 nr_snapshots;
	char *bytes;
	size_t length;
};

struct record_keep {
	size_t bytes_max;
	u64 span_ns;
	struct segment *first;
	struct segment *last; /* the open one, unless `writer` is NULL */
	FILE *out;
	struct record_writer *writer;
	size_t bytes;
};

int record_keep_new(size_t bytes_max, u64 span_ns, struct record_keep **ret)
{
	struct record_keep *keep = calloc(1, sizeof(*keep));

	if (!keep)
		return -ENOMEM;
	keep->bytes_max = bytes_max;
	keep->span_ns = span_ns;
	*ret = keep;
	return 0;
}

static void close_segment(struct record_keep *keep)
{
	keep->writer = record_writer_free(keep->writer);
	if (keep->out)
		fclose(keep->out);
	keep->out = NULL;
}

static void drop_first(struct record_keep *keep)
{
	struct segment *segment = keep->first;

	if (segment == keep->last) {
		close_segment(keep);
		keep->last = NULL;
	}
	keep->first = segment->next;
	keep->bytes -= segment->length;
	free(segment->bytes);
	free(segment);
}

struct record_keep *record_keep_free(struct record_keep *keep)
{
	if (!keep)
		return NULL;
	while (keep->first)
		drop_first(keep);
	free(keep);
	return NULL;
}

static int open_segment(struct record_keep *keep, const struct record_info *info)
{
	struct segment *segment;

	close_segment(keep);
	segment = calloc(1, sizeof(*segment));
	if (!segment)
		return -ENOMEM;
	segment->info = *info;
	if (keep->last)
		keep->last->next = segment;
	else
		keep->first = segment;
	keep->last = segment;
	keep->out = open_memstream(&segment->bytes, &segment->length);
	return keep->out ? record_writer_new(keep->out, info, &keep->writer) : -ENOMEM;
}

/* The newest segment stays. */
static void drop_old(struct record_keep *keep, u64 now_ns)
{
	while (keep->first != keep->last &&
	       (keep->bytes > keep->bytes_max || keep->first->last_ns + keep->span_ns < now_ns ||
		keep->first->last_ns > now_ns))
		drop_first(keep);
}

static int add(struct record_keep *keep, enum record_frame_kind kind, u64 time_ns, const char *text,
	       size_t length)
{
	size_t before = keep->last->length;
	int err = record_write(keep->writer, kind, time_ns, text, length);

	keep->bytes += keep->last->length - before;
	if (err < 0)
		close_segment(keep);
	return err;
}

int record_keep_snapshot(struct record_keep *keep, const struct record_info *info, const char *text,
			 size_t length)
{
	int err = 0;

	if (length > TEXT_MAX)
		return -E2BIG;
	if (!keep->writer || keep->last->nr_snapshots == SEGMENT_SNAPSHOTS) {
		err = open_segment(keep, info);
		keep->bytes += keep->last ? keep->last->length : 0;
	}
	if (err < 0) {
		close_segment(keep);
		return err;
	}
	err = add(keep, RECORD_FRAME_SNAPSHOT, info->monotonic_ns, text, length);
	if (err < 0)
		return err;
	keep->last->nr_snapshots++;
	keep->last->last_ns = info->monotonic_ns;
	drop_old(keep, info->monotonic_ns);
	return 0;
}

int record_keep_events(struct record_keep *keep, const char *text, size_t length)
{
	if (!keep->writer || length > TEXT_MAX)
		return 0;
	return add(keep, RECORD_FRAME_EVENTS, keep->last->last_ns, text, length);
}

size_t record_keep_bytes(const struct record_keep *keep)
{
	return keep->bytes;
}

/* The last segment that begins at or before `time_ns`, or the first one. */
static struct segment *find_segment(struct record_keep *keep, u64 time_ns)
{
	struct segment *found = keep->first;

	for (struct segment *each = keep->first; each; each = each->next)
		if (each->info.monotonic_ns <= time_ns)
			found = each;
	return found;
}

static int copy_text(const struct record_frame *frame, char **text, size_t *length)
{
	char *copy = realloc(*text, frame->length + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, frame->text, frame->length + 1);
	*text = copy;
	*length = frame->length;
	return 0;
}

int record_keep_find(struct record_keep *keep, u64 time_ns, u64 since_ns, char **ret_text,
		     size_t *ret_length)
{
	struct segment *segment;
	CLEANUP(record_reader_free_cleanup) struct record_reader *reader = NULL;
	CLEANUP_FREE char *text = NULL;
	struct record_frame frame;
	size_t length = 0;
	FILE *in;
	int err;

	if (time_ns < since_ns)
		time_ns = since_ns;
	segment = find_segment(keep, time_ns);
	if (!segment || !segment->nr_snapshots)
		return -ENODATA;
	in = fmemopen(segment->bytes, segment->length, "r");
	if (!in)
		return -errno;
	err = record_reader_new(in, &reader);
	while (err == 0 && record_read(reader, &frame) == 1) {
		if (frame.kind != RECORD_FRAME_SNAPSHOT || frame.time_ns < since_ns)
			continue;
		if (text && frame.time_ns > time_ns)
			break;
		err = copy_text(&frame, &text, &length);
	}
	fclose(in);
	if (err < 0)
		return err;
	if (!text)
		return -ENODATA;
	*ret_text = TAKE_PTR(text);
	*ret_length = length;
	return 0;
}

/* The first frame of a segment uses no other frame, so it can follow any frame. */
static int copy_segments(const struct segment *first, FILE *out)
{
	CLEANUP(record_writer_free_cleanup) struct record_writer *writer = NULL;
	u64 last_ns = first->last_ns;
	int err = record_writer_new(out, &first->info, &writer);

	for (const struct segment *each = first; each && err == 0; each = each->next) {
		size_t length = each->length - RECORD_HEADER_LEN;

		if (fwrite(each->bytes + RECORD_HEADER_LEN, 1, length, out) != length)
			err = -ENOMEM;
		last_ns = each->last_ns;
	}
	return err < 0 ? err : record_write(writer, RECORD_FRAME_END, last_ns, "", 0);
}

int record_keep_copy(struct record_keep *keep, u64 since_ns, char **ret, size_t *ret_length)
{
	const struct segment *first = find_segment(keep, since_ns);
	char *bytes = NULL;
	size_t length;
	FILE *out;
	int err;

	if (!first || !first->nr_snapshots)
		return -ENODATA;
	out = open_memstream(&bytes, &length);
	if (!out)
		return -ENOMEM;
	err = copy_segments(first, out);
	if (fclose(out) != 0 && err == 0)
		err = -ENOMEM;
	if (err < 0) {
		free(bytes);
		return err;
	}
	*ret = bytes;
	*ret_length = length;
	return 0;
}
