/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The result of a command as one JSON object, for commands whose result is a few values. */
#include "abi/types.h"

/* A text, or a number where there is none. */
struct result_field {
	const char *name;
	const char *text;
	u64 number;
};

/* On standard output. The fields end with one without a name. */
int result_print(const struct result_field *fields);
