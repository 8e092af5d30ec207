/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel export --html: the page of zernel serve, with the data of a recording inside. */
#include "cli/export_html.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "answers/jobs.h"
#include "answers/why.h"
#include "base/cleanup.h"
#include "ipc/events_json.h"
#include "ipc/snapshot_json.h"
#include "serve/assets.h"
#include "serve/history.h"

/* The newest ones; a browser draws more of them slowly. */
#define EVENTS_MAX 100000

/* What the page shows. */
struct content {
	struct snapshot *first;
	struct snapshot *last;
	struct rank_history *history;
	struct events events;
};

static void content_done(struct content *content)
{
	if (content->first != content->last)
		snapshot_free(content->first);
	snapshot_free(content->last);
	rank_history_free(content->history);
	events_done(&content->events);
}

static int take_snapshot(struct content *content, const struct record_frame *frame)
{
	struct snapshot *snapshot;
	int err = snapshot_from_json(frame->text, frame->length, &snapshot);

	if (err < 0)
		return err;
	if (content->last != content->first)
		snapshot_free(content->last);
	content->last = snapshot;
	if (!content->first)
		content->first = snapshot;
	/* A recording with too many ranks lacks some of them. */
	rank_history_add(content->history, snapshot);
	return 0;
}

static void drop_oldest_events(struct events *events)
{
	size_t nr = events->nr > EVENTS_MAX ? events->nr - EVENTS_MAX : 0;

	memmove(events->list, events->list + nr, (events->nr - nr) * sizeof(*events->list));
	events->nr -= nr;
	events->nr_lost += nr;
}

static int read_all(struct record_reader *reader, struct content *content)
{
	struct record_frame frame;
	int n, err = rank_history_new(RANK_HISTORY_BYTES_MAX, &content->history);

	while (err == 0 && (n = record_read(reader, &frame)) != 0) {
		if (n < 0)
			return n;
		if (frame.kind == RECORD_FRAME_SNAPSHOT)
			err = take_snapshot(content, &frame);
		else if (frame.kind == RECORD_FRAME_EVENTS)
			err = events_from_json(frame.text, frame.length, &content->events);
		if (content->events.nr > 2 * EVENTS_MAX)
			drop_oldest_events(&content->events);
	}
	if (err == 0 && content->events.nr)
		drop_oldest_events(&content->events);
	return err == 0 && !content->last ? -ENODATA : err;
}

/*
 * Writes JSON inside an element of a page. A '<' could end the element; U+2028 and U+2029 end a
 * line for some programs. All of them occur in strings only.
 */
static void put_escaped(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("\\u003c", out);
		else if (strncmp(text, "\xe2\x80\xa8", 3) == 0 ||
			 strncmp(text, "\xe2\x80\xa9", 3) == 0)
			fprintf(out, "\\u202%c", *(text += 2) == '\xa8' ? '8' : '9');
		else
			fputc(*text, out);
	}
}

/* Frees the text. */
static void put_member(const char *key, char *text, FILE *out)
{
	fprintf(out, ",\"%s\":", key);
	put_escaped(text, out);
	free(text);
}

static int write_why(const struct content *content, char **ret, size_t *length)
{
	CLEANUP(why_free_cleanup) struct why *why = NULL;
	int err = why_new(content->first, content->last, NULL, &why);

	return err < 0 ? err : why_to_json(why, ret, length);
}

static int put_data(const struct content *content, FILE *out)
{
	static const struct snapshot none = {};
	const struct rank_query query = { .since = content->first->time_ms / 1000 };
	size_t length;
	char *text;
	int err;

	fprintf(out, "{\"version\":1,\"since_ms\":%llu,\"until_ms\":%llu", content->first->time_ms,
		content->last->time_ms);
	err = snapshot_to_json(content->last, &text, &length);
	if (err == 0)
		put_member("snapshot", text, out);
	err = err < 0 ? err : write_why(content, &text, &length);
	if (err == 0)
		put_member("why", text, out);
	err = err < 0 ? err : jobs_to_json(content->last, &none, &text, &length);
	if (err == 0)
		put_member("jobs", text, out);
	err = err < 0 ? err : rank_history_to_json(content->history, &query, &text, &length);
	if (err == 0)
		put_member("history", text, out);
	err = err < 0 ? err : events_to_json(&content->events, &text, &length);
	if (err == 0)
		put_member("events", text, out);
	fputc('}', out);
	return err;
}

static void put_part(const unsigned char *part, const unsigned char *end, FILE *out)
{
	fwrite(part, 1, (size_t)(end - part), out);
}

int export_html(struct record_reader *reader, FILE *out)
{
	CLEANUP(content_done) struct content content = {};
	int err = assets->path ? read_all(reader, &content) : -ENOTSUP;

	if (err < 0)
		return err;
	put_part(dashboard_page_before, dashboard_page_before_end, out);
	err = put_data(&content, out);
	put_part(dashboard_page_after, dashboard_page_after_end, out);
	if (err == 0 && ferror(out))
		err = -EIO;
	return err;
}
