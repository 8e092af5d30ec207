/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The stacks of a recording in a Perfetto trace. */
#include "record/perfetto_packets.h"
#include "record/record.h"

/*
 * Writes the stacks of one window, those of all threads together. When each was sampled is not
 * recorded, so all have the time of the end of their window. -EBADMSG: the frame is invalid.
 */
int record_put_stacks(struct perfetto *perfetto, const struct record_frame *frame);
