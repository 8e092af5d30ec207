/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* zernel why --lines */
#include "cli/why/lines_print.h"

struct why_lines_request {
	const char *socket;
	const char *who; /* a process or a job, as in choose.h; NULL: the only one */
	u64 seconds;
	enum lines_format format;
	enum colour colour;
};

/* Samples a process and prints the answer. -ENOENT: no process was selected. Logs failures. */
int why_lines(const struct why_lines_request *request);
