/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A recording: what zerneld said, as it said it, in a file that is readable up to its last
 * whole frame when it was cut off. docs/RECORD.md has the format. Each frame is compressed
 * on its own, with the one of its kind before it as the dictionary: snapshots differ little
 * from one to the next, and nothing but that one must be kept to read on.
 */
#include <stdio.h>
#include "base/macros.h"
#include "core/snapshot.h"

#define RECORD_VERSION	 1
/* The largest frame, as text: what a line of the protocol can hold. */
#define RECORD_FRAME_MAX (16UL << 20)

enum record_frame_kind {
	RECORD_FRAME_SNAPSHOT, /* export/snapshot_json.h */
	RECORD_FRAME_EVENTS,   /* export/events_json.h */
	RECORD_FRAME_END,      /* the last one of a recording that was ended in good order */
	RECORD_FRAME_NR,
};

/* What a recording begins with: who it is about, and when. Texts as in struct snapshot. */
struct record_info {
	u64 time_ms;
	u64 monotonic_ns;
	u32 interval_ms;
	char host[SNAPSHOT_TEXT_LEN];
	char version[SNAPSHOT_TEXT_LEN];
	char kernel[SNAPSHOT_TEXT_LEN];
};

struct record_writer;

/* Writes the beginning. `out` stays the caller's, and must outlive the writer. */
int record_writer_new(FILE *out, const struct record_info *info, struct record_writer **ret);
struct record_writer *record_writer_free(struct record_writer *writer);
DEFINE_CLEANUP(struct record_writer, record_writer_free);

/* One frame, handed to the kernel whole. `time_ns` is CLOCK_MONOTONIC. */
int record_write(struct record_writer *writer, enum record_frame_kind kind, u64 time_ns,
		 const char *text, size_t length);

u64 record_writer_nr_bytes(const struct record_writer *writer);

/* How a recording ends. */
enum record_ending {
	RECORD_OPEN,	/* not yet */
	RECORD_ENDED,	/* in good order */
	RECORD_CUT,	/* in the midst of a frame, or without its last one */
	RECORD_DAMAGED, /* by something that no writer writes */
	RECORD_NEWER,	/* of a version that is not known here */
	RECORD_FOREIGN, /* no recording at all */
};

struct record_frame {
	enum record_frame_kind kind;
	u64 time_ns;
	const char *text; /* zero-terminated; good until the next frame is read */
	size_t length;
};

struct record_reader;

/*
 * Trusts nothing of what it reads. That nothing can be made of it is no failure: there is no
 * frame then, and the ending says why. `in` stays the caller's, and must outlive the reader.
 */
int record_reader_new(FILE *in, struct record_reader **ret);
struct record_reader *record_reader_free(struct record_reader *reader);
DEFINE_CLEANUP(struct record_reader, record_reader_free);

const struct record_info *record_reader_info(const struct record_reader *reader);

/* 1: a frame; 0: there are no more; below 0: the file cannot be read. */
int record_read(struct record_reader *reader, struct record_frame *ret);

enum record_ending record_reader_ending(const struct record_reader *reader);
/* Where what can be used ends, and how many frames that are. */
u64 record_reader_nr_bytes(const struct record_reader *reader);
u64 record_reader_nr_frames(const struct record_reader *reader);

/* For people: "cut off". */
const char *record_ending_text(enum record_ending ending);
