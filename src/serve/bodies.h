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
	size_t length;
	unsigned char bytes[]; /* BODY_HEADROOM, then the data */
};

static inline unsigned char *body_data(struct body *body)
{
	return body->bytes + BODY_HEADROOM;
}

/* Copies the text. Returns NULL when out of memory. */
struct body *body_new(const char *text, size_t length);
const char *body_content_type(enum body_kind kind);
struct body *body_ref(struct body *body);
struct body *body_unref(struct body *body);

/* Zeroed except for `metrics`, it has no snapshot. */
struct bodies {
	struct metrics_config metrics;
	struct snapshot *snapshot;
	struct body *rendered[BODY_NR];
	u64 generation; /* grows with each snapshot */
};

/* Takes ownership of the snapshot. */
void bodies_set(struct bodies *bodies, struct snapshot *snapshot);
void bodies_clear(struct bodies *bodies);

/* Returns a reference that the caller must release. -ENODATA: no snapshot yet. */
int bodies_get(struct bodies *bodies, enum body_kind kind, struct body **ret);
