/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "record/record.h"

/*
 * Writes the dashboard with the data of a recording: one file that needs nothing else. An invalid
 * frame gives -EBADMSG. -ENOTSUP: this program was built without the dashboard.
 */
int export_html(struct record_reader *reader, FILE *out);
