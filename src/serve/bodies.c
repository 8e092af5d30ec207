/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/bodies.h"
#include <errno.h>
#include <string.h>
#include "base/cleanup.h"
#include "metrics/prometheus.h"
#include "ipc/snapshot_json.h"

static const enum prometheus_format formats[] = {
	[BODY_TEXT] = PROMETHEUS_TEXT,
	[BODY_OPENMETRICS] = PROMETHEUS_OPENMETRICS,
	[BODY_PROTOBUF] = PROMETHEUS_PROTOBUF,
};

const char *body_content_type(enum body_kind kind)
{
	return kind == BODY_SNAPSHOT ? "application/json" : prometheus_content_type(formats[kind]);
}

/* The data is not set. */
static struct body *body_alloc(size_t length)
{
	struct body *body = malloc(sizeof(*body) + BODY_HEADROOM + length);

	if (body)
		*body = (struct body){ .nr_refs = 1, .length = length };
	return body;
}

struct body *body_new(const char *text, size_t length)
{
	struct body *body = body_alloc(length);

	if (body)
		memcpy(body_data(body), text, length);
	return body;
}

struct body *body_ref(struct body *body)
{
	body->nr_refs++;
	return body;
}

struct body *body_unref(struct body *body)
{
	if (body && --body->nr_refs == 0)
		free(body);
	return NULL;
}

void bodies_clear(struct bodies *bodies)
{
	for (u32 kind = 0; kind < BODY_NR; kind++)
		bodies->rendered[kind] = body_unref(bodies->rendered[kind]);
	bodies->snapshot = snapshot_free(bodies->snapshot);
}

void bodies_set(struct bodies *bodies, struct snapshot *snapshot)
{
	bodies_clear(bodies);
	bodies->snapshot = snapshot;
	bodies->generation++;
}

/* Renders the object that existing dashboards use, and adds the full snapshot under its own key. */
static int render_snapshot(const struct snapshot *snapshot, struct body **ret)
{
	static const char key[] = ",\"snapshot\":";
	CLEANUP_FREE char *known = NULL, *whole = NULL;
	size_t known_length, whole_length;
	struct body *body;
	unsigned char *at;
	int err = snapshot_to_legacy_json(snapshot, &known, &known_length);

	if (err < 0)
		return err;
	err = snapshot_to_json(snapshot, &whole, &whole_length);
	if (err < 0)
		return err;
	known_length--; /* without the closing brace, which is written last */
	body = body_alloc(known_length + strlen(key) + whole_length + 1);
	if (!body)
		return -ENOMEM;
	at = mempcpy(body_data(body), known, known_length);
	at = mempcpy(at, key, strlen(key));
	at = mempcpy(at, whole, whole_length);
	*at = '}';
	*ret = body;
	return 0;
}

static int render(const struct bodies *bodies, enum body_kind kind, struct body **ret)
{
	CLEANUP_FREE char *text = NULL;
	struct body *body;
	size_t length;
	int err;

	if (kind == BODY_SNAPSHOT)
		return render_snapshot(bodies->snapshot, ret);
	err = prometheus_render(bodies->snapshot, &bodies->metrics, formats[kind], &text, &length);
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
