/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the few result values of a command as one JSON object. */
#include "abi/types.h"

/* A number if `text` is NULL. */
struct result_field {
	const char *name;
	const char *text;
	u64 number;
};

/* Prints to standard output. A field without a name ends the list. */
int result_print(const struct result_field *fields);
