/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A recording in the forms that other programs read; docs/RECORD.md tells what is in them.
 * Frames that make no sense are -EBADMSG; that the recording ends early is no failure.
 */
#include "record/record.h"

/* A row for each process of each snapshot. */
int record_to_csv(struct record_reader *reader, FILE *out);

/* A trace for ui.perfetto.dev and its kin. */
int record_to_perfetto(struct record_reader *reader, FILE *out);
