/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Exports a recording to formats of other programs; docs/guides/recording.md describes
 * them. An invalid frame gives -EBADMSG. A recording that ends early is not an error.
 */
#include "record/record.h"

/* Writes a row for each process of each snapshot. */
int record_to_csv(struct record_reader *reader, FILE *out);

/* Writes a trace for ui.perfetto.dev and compatible viewers. */
int record_to_perfetto(struct record_reader *reader, FILE *out);
