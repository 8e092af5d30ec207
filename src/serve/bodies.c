/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/bodies.h"
#include <errno.h>
#include <string.h>
#include "base/cleanup.h"
#include "answers/jobs.h"
#include "metrics/prometheus.h"
#include "ipc/snapshot_json.h"

static const enum prometheus_format formats[] = {
	[BODY_TEXT] = PROMETHEUS_TEXT,
	[BODY_OPENMETRICS] = PROMETHEUS_OPENMETRICS,
	[BODY_PROTOBUF] = PROMETHEUS_PROTOBUF,
};

const char *body_content_type(enum body_kind kind)
{
	return kind < ARRAY_SIZE(formats) ? prometheus_content_type(formats[kind])
					  : "application/json";
}

/* A text that begins with the headroom. */
static void begin_body(struct text *text)
{
	static const char headroom[BODY_HEADROOM] = {};

	text_add(text, headroom, sizeof(headroom));
}

/* Takes the data of the text. */
static int end_body(struct text *text, struct body **ret)
{
	struct body *body = calloc(1, sizeof(*body));

	if (!body || text_end(text) < 0) {
		free(body);
		return -ENOMEM;
	}
	*body = (struct body){ .nr_refs = 1, .length = text->length - BODY_HEADROOM };
	body->bytes = (unsigned char *)TAKE_PTR(text->data);
	*ret = body;
	return 0;
}

struct body *body_new(const char *data, size_t length)
{
	CLEANUP_TEXT struct text text = {};
	struct body *body = NULL;

	begin_body(&text);
	text_add(&text, data, length);
	end_body(&text, &body);
	return body;
}

struct body *body_ref(struct body *body)
{
	body->nr_refs++;
	return body;
}

struct body *body_unref(struct body *body)
{
	if (!body || --body->nr_refs)
		return NULL;
	if (body->total)
		*body->total -= body->length;
	free(body->bytes);
	free(body);
	return NULL;
}

void body_count(struct body *body, size_t *total)
{
	body->total = total;
	*total += body->length;
}

/* What was made of a snapshot. */
static void drop_snapshot(struct bodies *bodies)
{
	for (u32 kind = 0; kind < BODY_NR; kind++)
		bodies->rendered[kind] = body_unref(bodies->rendered[kind]);
	for (u32 i = 0; i < WHY_BODIES_MAX; i++)
		bodies->why[i].body = body_unref(bodies->why[i].body);
	bodies->snapshot = snapshot_free(bodies->snapshot);
	free(bodies->events);
	bodies->events = NULL;
}

void bodies_clear(struct bodies *bodies)
{
	drop_snapshot(bodies);
	bodies->ended = snapshot_free(bodies->ended);
}

void bodies_set_events(struct bodies *bodies, char *text)
{
	free(bodies->events);
	bodies->events = text;
	bodies->rendered[BODY_EVENTS] = body_unref(bodies->rendered[BODY_EVENTS]);
}

void bodies_set_ended(struct bodies *bodies, struct snapshot *ended)
{
	snapshot_free(bodies->ended);
	bodies->ended = ended;
	bodies->rendered[BODY_JOBS] = body_unref(bodies->rendered[BODY_JOBS]);
}

void bodies_set(struct bodies *bodies, struct snapshot *snapshot)
{
	drop_snapshot(bodies);
	bodies->snapshot = snapshot;
	bodies->generation++;
}

/* Renders the object that existing dashboards use, and adds the full snapshot under its own key. */
static int render_snapshot(const struct snapshot *snapshot, struct body **ret)
{
	CLEANUP_TEXT struct text text = {};
	CLEANUP_FREE char *known = NULL;
	size_t length;
	int err = snapshot_to_legacy_json(snapshot, &known, &length);

	if (err < 0)
		return err;
	begin_body(&text);
	text_add(&text, known, length - 1); /* without the closing brace, which is added last */
	text_add_string(&text, ",\"snapshot\":");
	err = snapshot_add_json(snapshot, &text);
	text_add_string(&text, "}");
	return err < 0 ? err : end_body(&text, ret);
}

/* Adds the events to the object of a snapshot. */
static int render_events(struct bodies *bodies, struct body **ret)
{
	CLEANUP_TEXT struct text text = {};
	struct body *without;
	char between[64];
	int err = bodies_get(bodies, BODY_SNAPSHOT, &without);

	if (err < 0)
		return err;
	snprintf(between, sizeof(between), ",\"sequence\":%llu,\"events\":", bodies->generation);
	begin_body(&text);
	text_add(&text, (const char *)body_data(without), without->length - 1);
	body_unref(without);
	text_add_string(&text, between);
	text_add_string(&text, bodies->events ? bodies->events : "null");
	text_add_string(&text, "}");
	return end_body(&text, ret);
}

static int render_text(const struct bodies *bodies, enum body_kind kind, char **ret, size_t *length)
{
	static const struct snapshot none = {};

	if (kind == BODY_JOBS)
		return jobs_to_json(bodies->snapshot, bodies->ended ? bodies->ended : &none, ret,
				    length);
	return prometheus_render(bodies->snapshot, &bodies->metrics, formats[kind], ret, length);
}

static int render(struct bodies *bodies, enum body_kind kind, struct body **ret)
{
	CLEANUP_FREE char *text = NULL;
	struct body *body;
	size_t length;
	int err;

	if (kind == BODY_SNAPSHOT)
		return render_snapshot(bodies->snapshot, ret);
	if (kind == BODY_EVENTS)
		return render_events(bodies, ret);
	err = render_text(bodies, kind, &text, &length);
	if (err < 0)
		return err;
	body = body_new(text, length);
	if (!body)
		return -ENOMEM;
	*ret = body;
	return 0;
}

int bodies_get(struct bodies *bodies, enum body_kind kind, struct body **ret)
{
	int err;

	if (!bodies->snapshot)
		return -ENODATA;
	if (!bodies->rendered[kind]) {
		err = render(bodies, kind, &bodies->rendered[kind]);
		if (err < 0)
			return err;
		bodies->rendered[kind]->generation = bodies->generation;
	}
	*ret = body_ref(bodies->rendered[kind]);
	return 0;
}
