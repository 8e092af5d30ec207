/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Predicts when the GPU finishes its queued work: not before the shortest of the recent
 * spans with about as many launches.
 *
 * The thread that waits for the end may be off its CPU when the end comes. The span that
 * it then sees is too long and is not a sample. It is only an upper limit, so it lowers a
 * longer estimate and never raises one.
 */
#include "abi/types.h"

#define BUSY_SHAPES 4
#define BUSY_RECENT 8 /* spans after which a minimum is replaced by a newer one */

/* The shortest of the spans with about the same number of launches. */
struct busy_shape {
	u64 least_ns;  /* since the last replacement; 0: no span yet */
	u64 before_ns; /* of the BUSY_RECENT spans before that */
	u64 nr;
};

struct busy_estimate {
	u64 since_ns;	 /* when the GPU got work; 0 while it has no work */
	u64 nr_launches; /* launches of the process at that time */
	struct busy_shape shapes[BUSY_SHAPES];
};

static inline u32 busy_shape_of(const struct busy_estimate *busy, u64 nr_launches)
{
	u64 nr = nr_launches - busy->nr_launches;

	return (nr > 1) + (nr > 8) + (nr > 64);
}

static inline u64 busy_shortest(const struct busy_shape *shape)
{
	if (!shape->least_ns || !shape->before_ns)
		return shape->least_ns | shape->before_ns;
	return shape->least_ns < shape->before_ns ? shape->least_ns : shape->before_ns;
}

static inline void busy_begin(struct busy_estimate *busy, u64 nr_launches, u64 now)
{
	if (busy->since_ns)
		return;
	busy->since_ns = now;
	busy->nr_launches = nr_launches;
}

/* `late`: the thread that saw the end got its CPU back only just before it. */
static inline void busy_end(struct busy_estimate *busy, u64 nr_launches, bool late, u64 now)
{
	struct busy_shape *shape = &busy->shapes[busy_shape_of(busy, nr_launches) % BUSY_SHAPES];
	u64 span = now - busy->since_ns, shortest = busy_shortest(shape);

	if (!busy->since_ns)
		return;
	busy->since_ns = 0;
	if (late && (!shortest || span >= shortest))
		return;
	if (!shape->least_ns || span < shape->least_ns)
		shape->least_ns = span;
	if (++shape->nr % BUSY_RECENT)
		return;
	shape->before_ns = shape->least_ns;
	shape->least_ns = 0;
}

/* The expected end of the current work; 0 if not known. */
static inline u64 busy_expected_end(const struct busy_estimate *busy, u64 nr_launches)
{
	u64 span = busy_shortest(&busy->shapes[busy_shape_of(busy, nr_launches) % BUSY_SHAPES]);

	return busy->since_ns && span ? busy->since_ns + span : 0;
}
