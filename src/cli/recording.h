/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A recording that a command reads. All failures are logged, once. */
#include "record/record.h"

struct recording {
	const char *path;
	FILE *in;
	struct record_reader *reader;
};

/* One that cannot be used at all is a failure. `path` must outlive it. */
int recording_open(const char *path, struct recording *ret);
void recording_close(struct recording *recording);

/* After the last frame: says where and why it ends early, if it does. */
void recording_tell_ending(const struct recording *recording);
/* Says that a snapshot in it has a version that is not known here. */
void recording_tell_version(const struct recording *recording);
