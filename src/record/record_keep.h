/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The latest minutes of a recording, in memory. They are kept as segments of some snapshots.
 * The first frame of a segment needs no earlier frame, so the oldest segment can be dropped,
 * and the frames of all segments together are a recording.
 */
#include "record/record.h"

struct record_keep;

/* Drops what is older than `span_ns`, and the oldest of what exceeds `bytes_max`. */
int record_keep_new(size_t bytes_max, u64 span_ns, struct record_keep **ret);
struct record_keep *record_keep_free(struct record_keep *keep);
DEFINE_CLEANUP(struct record_keep, record_keep_free);

/* `info` describes the snapshot. A snapshot that is too large is not kept: -E2BIG. */
int record_keep_snapshot(struct record_keep *keep, const struct record_info *info, const char *text,
			 size_t length);
/* The events since the last snapshot. They are dropped if there is no snapshot yet. */
int record_keep_events(struct record_keep *keep, const char *text, size_t length);

size_t record_keep_bytes(const struct record_keep *keep);

/*
 * The newest snapshot that is not newer than `time_ns`, or the oldest one, but none that is
 * older than `since_ns`. The caller frees *ret_text. -ENODATA: there is none.
 */
int record_keep_find(struct record_keep *keep, u64 time_ns, u64 since_ns, char **ret_text,
		     size_t *ret_length);

/*
 * A complete recording, which begins with the segment that has `since_ns`. The caller frees
 * *ret. -ENODATA: there is no snapshot.
 */
int record_keep_copy(struct record_keep *keep, u64 since_ns, char **ret, size_t *ret_length);
