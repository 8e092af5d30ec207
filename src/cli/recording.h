/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A recording that a command reads. Each failure is logged once. */
#include "record/record.h"

struct recording {
	const char *path;
	FILE *in;
	struct record_reader *reader;
};

/* Fails if no part of the recording can be used. `path` must outlive `ret`. */
int recording_open(const char *path, struct recording *ret);
void recording_close(struct recording *recording);

/* Call it after the last frame. Logs where and why the recording ends early, if it does. */
void recording_tell_ending(const struct recording *recording);
/* Logs that a snapshot in the recording has an unknown version. */
void recording_tell_version(const struct recording *recording);
