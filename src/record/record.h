/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A recording contains the messages of zerneld, unchanged. A recording that is cut off is
 * readable up to its last complete frame. docs/reference/recording-format.md describes the
 * format. Each frame is compressed separately, with the previous frame of the same kind as
 * dictionary, because consecutive snapshots differ little. A reader has to keep only that
 * previous frame.
 */
#include <stdbool.h>
#include <stdio.h>
#include "base/macros.h"
#include "core/snapshot.h"

/* A recording without stacks has the older version, so that an older reader can read it. */
#define RECORD_VERSION_PLAIN  1
#define RECORD_VERSION_STACKS 2
#define RECORD_VERSION	      RECORD_VERSION_STACKS
/* The largest frame, as text: the longest line of the protocol. */
#define RECORD_FRAME_MAX      (16UL << 20)

enum record_frame_kind {
	RECORD_FRAME_SNAPSHOT, /* ipc/snapshot_json.h */
	RECORD_FRAME_EVENTS,   /* ipc/events_json.h */
	RECORD_FRAME_END,      /* the last frame of a complete recording */
	RECORD_FRAME_LINES,    /* answers/lines.h: the stacks of one process in one window */
	RECORD_FRAME_NR,
};

/* The header of a recording: its node and its time. Texts as in struct snapshot. */
struct record_info {
	u64 time_ms;
	u64 monotonic_ns;
	u32 interval_ms;
	bool has_stacks; /* it can have frames with stacks */
	char host[SNAPSHOT_TEXT_LEN];
	char version[SNAPSHOT_TEXT_LEN];
	char kernel[SNAPSHOT_TEXT_LEN];
};

struct record_writer;

/* Writes the header. The caller keeps ownership of `out`, which must outlive the writer. */
int record_writer_new(FILE *out, const struct record_info *info, struct record_writer **ret);
struct record_writer *record_writer_free(struct record_writer *writer);
DEFINE_CLEANUP(struct record_writer, record_writer_free);

/* Writes and flushes one frame. `time_ns` is CLOCK_MONOTONIC. */
int record_write(struct record_writer *writer, enum record_frame_kind kind, u64 time_ns,
		 const char *text, size_t length);

u64 record_writer_nr_bytes(const struct record_writer *writer);

/* How a recording ends. */
enum record_ending {
	RECORD_OPEN,	/* not read to the end yet */
	RECORD_ENDED,	/* complete */
	RECORD_CUT,	/* inside a frame, or without the last frame */
	RECORD_DAMAGED, /* by data that no writer writes */
	RECORD_NEWER,	/* of a newer version */
	RECORD_FOREIGN, /* not a recording */
};

struct record_frame {
	enum record_frame_kind kind;
	u64 time_ns;
	const char *text; /* zero-terminated; valid until the next frame is read */
	size_t length;
};

struct record_reader;

/*
 * The input is not trusted. Invalid input is not an error of this function: the reader then
 * has no frames, and its ending has the reason. The caller keeps ownership of `in`, which
 * must outlive the reader.
 */
int record_reader_new(FILE *in, struct record_reader **ret);
struct record_reader *record_reader_free(struct record_reader *reader);
DEFINE_CLEANUP(struct record_reader, record_reader_free);

const struct record_info *record_reader_info(const struct record_reader *reader);

/* 1: a frame; 0: no more frames; negative: the file cannot be read. */
int record_read(struct record_reader *reader, struct record_frame *ret);

enum record_ending record_reader_ending(const struct record_reader *reader);
/* The size of the usable part, and its number of frames. */
u64 record_reader_nr_bytes(const struct record_reader *reader);
u64 record_reader_nr_frames(const struct record_reader *reader);

/* The ending as text, for example "cut off". */
const char *record_ending_text(enum record_ending ending);
