/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The response bodies of a snapshot. Each format is rendered once, when the first client
 * requests it, and shared by all clients. A connection that still sends an older body keeps
 * a reference to it.
 */
#include <stddef.h>
#include "core/snapshot.h"
#include "metrics/metrics.h"
#include "serve/request.h"

/* Space in front of the data for the header of a frame. */
#define BODY_HEADROOM 16

struct body {
	u32 nr_refs;
	u64 generation; /* of its snapshot; 0: it is no snapshot */
	u64 visit;	/* used by session.c */
	size_t *total;	/* its length is part of this sum; NULL: of none */
	size_t length;
	unsigned char *bytes; /* BODY_HEADROOM, then the data */
};

static inline unsigned char *body_data(struct body *body)
{
	return body->bytes + BODY_HEADROOM;
}

/* Copies the text. Returns NULL when out of memory. */
struct body *body_new(const char *text, size_t length);
/* Adds the length to *total until the body is freed. */
void body_count(struct body *body, size_t *total);
const char *body_content_type(enum body_kind kind);
struct body *body_ref(struct body *body);
struct body *body_unref(struct body *body);

/* The answer for a window of this length. */
struct why_body {
	u32 seconds;
	struct body *body;
};

/* Answers of one snapshot that are kept. Further ones are rendered for each request. */
#define WHY_BODIES_MAX 8

/* Zeroed except for `metrics`, it has no snapshot. */
struct bodies {
	struct metrics_config metrics;
	struct snapshot *snapshot;
	struct snapshot *ended; /* the ended jobs; NULL: not known yet */
	char *events;		/* since the snapshot before, as JSON; NULL: none */
	struct body *rendered[BODY_NR];
	struct why_body why[WHY_BODIES_MAX];
	u64 generation; /* grows with each snapshot */
};

/* Each takes ownership. Events belong to the snapshot before them. */
void bodies_set_events(struct bodies *bodies, char *text);
void bodies_set_ended(struct bodies *bodies, struct snapshot *ended);
void bodies_set(struct bodies *bodies, struct snapshot *snapshot);
void bodies_clear(struct bodies *bodies);

/* Returns a reference that the caller must release. -ENODATA: no snapshot yet. */
int bodies_get(struct bodies *bodies, enum body_kind kind, struct body **ret);
