/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "abi/types.h"
#include "base/macros.h"

/* The command line of a lab program as one table, which also is its --help. */
enum option_type {
	OPTION_U64,    /* u64 */
	OPTION_DOUBLE, /* double */
	OPTION_STRING, /* const char * */
	OPTION_CHOICE, /* u64: the position of the word in `choices` */
};

struct option_row {
	const char *name;
	enum option_type type;
	size_t offset;		    /* into the program's configuration */
	u64 min;		    /* of a number */
	const char *const *choices; /* ends with NULL */
	const char *help;
};

/*
 * Fills `config`, which holds the defaults. 0, 1 when --help was answered, or
 * -EINVAL after saying what is wrong. *ret_first_operand is where operands start.
 */
int options_parse(const char *usage, const struct option_row *rows, size_t nr_rows, int argc,
		  char **argv, void *config, int *ret_first_operand);
