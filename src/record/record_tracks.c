/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_tracks.h"
#include <search.h>
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
	const struct track *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static struct track *oldest(const struct tracks *tracks, enum track_kind kind, u32 id)
{
	struct track wanted = { .kind = kind, .id = id };
	struct track **found = tfind(&wanted, &tracks->tree, compare);

	return found ? *found : NULL;
}

struct track *tracks_newest(const struct tracks *tracks, enum track_kind kind, u32 id)
{
	struct track *track = oldest(tracks, kind, id);

	while (track && track->next)
		track = track->next;
	return track;
}

struct track *tracks_present(const struct tracks *tracks, enum track_kind kind, u32 id)
{
	struct track *track = oldest(tracks, kind, id);

	while (track && track->gone)
		track = track->next;
	return track;
}

struct track *tracks_add(struct tracks *tracks, enum track_kind kind, u32 id, u64 which)
{
	struct track *before = tracks_newest(tracks, kind, id);
	struct track *track = calloc(1, sizeof(*track));

	if (!track)
		return NULL;
	track->kind = kind;
	track->id = id;
	track->which = which;
	if (before) {
		before->next = track;
	} else if (!tsearch(track, &tracks->tree, compare)) {
		free(track);
		return NULL;
	}
	return track;
}

struct visitor {
	void (*visit)(void *ctx, struct track *track);
	void *ctx;
};

static void visit_node(const void *node, VISIT order, void *closure)
{
	const struct visitor *visitor = closure;

	if (order != postorder && order != leaf)
		return;
	for (struct track *track = *(struct track *const *)node; track; track = track->next)
		visitor->visit(visitor->ctx, track);
}

void tracks_for_each(const struct tracks *tracks, void (*visit)(void *ctx, struct track *track),
		     void *ctx)
{
	struct visitor visitor = { visit, ctx };

	twalk_r(tracks->tree, visit_node, &visitor);
}

static void free_list(void *node)
{
	struct track *track = node;

	while (track) {
		struct track *next = track->next;

		free(track);
		track = next;
	}
}

void tracks_done(struct tracks *tracks)
{
	tdestroy(tracks->tree, free_list);
	tracks->tree = NULL;
}
