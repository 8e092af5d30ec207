/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the gateway remembers of earlier snapshots: core/history.h has the ended jobs. */
#include "record/record_keep.h"
#include "serve/history.h"

/* The longest window of an answer, and of a recording. */
#define PAST_SECONDS_MAX     900
#define PAST_RECORDING_BYTES (16UL << 20)

/* Zeroed, it is switched off. */
struct past {
	struct rank_history *history; /* NULL: switched off */
	struct record_keep *recording;
	u64 since_ns; /* the first snapshot of this connection to zerneld; 0: none yet */
	u64 kept_ns;  /* the last snapshot of the recording */
	bool is_new;  /* the connection to zerneld is new */
	bool is_full; /* a snapshot was too large, which is logged once */
};

int past_start(struct past *past);
void past_clear(struct past *past);

/* The counters of another zerneld start anew. */
void past_interrupt(struct past *past);
int past_add(struct past *past, const struct snapshot *snapshot);
int past_add_events(struct past *past, const char *text);

/* A snapshot that is `seconds` older than `now`, or the oldest one. -ENODATA: there is none. */
int past_snapshot(struct past *past, const struct snapshot *now, u32 seconds,
		  struct snapshot **ret);

/* As `zernel why --json`, for this window. The caller frees *ret. */
int past_why(struct past *past, const struct snapshot *now, u32 seconds, char **ret,
	     size_t *ret_length);
