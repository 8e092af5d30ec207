/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What is sent of a snapshot, rendered once for each format when the first client asks for
 * it and shared by all of them. A client that is still sending an older one keeps it.
 */
#include <stddef.h>
#include "core/snapshot.h"
#include "serve/request.h"

/* Room in front of the data, where a frame's header is put. */
#define BODY_HEADROOM 16

struct body {
	u32 nr_refs;
	size_t length;
	unsigned char bytes[]; /* BODY_HEADROOM, then the data */
};

static inline unsigned char *body_data(struct body *body)
{
	return body->bytes + BODY_HEADROOM;
}

/* A copy of the text; NULL without memory. */
struct body *body_new(const char *text, size_t length);
const char *body_content_type(enum body_kind kind);
struct body *body_ref(struct body *body);
struct body *body_unref(struct body *body);

/* All zero but for the limit is one without a snapshot. */
struct bodies {
	u32 series_max; /* of metrics */
	struct snapshot *snapshot;
	struct body *rendered[BODY_NR];
	u64 generation; /* grows with each snapshot */
};

/* Takes the snapshot over. */
void bodies_set(struct bodies *bodies, struct snapshot *snapshot);
void bodies_clear(struct bodies *bodies);

/* A reference of the caller's own. -ENODATA: there is no snapshot. */
int bodies_get(struct bodies *bodies, enum body_kind kind, struct body **ret);
