/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "abi/types.h"
#include "base/macros.h"

/* The command line of a lab program as a table, which also produces its --help. */
enum option_type {
	OPTION_U64,    /* u64 */
	OPTION_DOUBLE, /* double */
	OPTION_STRING, /* const char * */
	OPTION_CHOICE, /* u64: the index of the word in `choices` */
};

struct option_row {
	const char *name;
	enum option_type type;
	size_t offset;		    /* into the program's configuration */
	u64 min;		    /* smallest valid number */
	const char *const *choices; /* terminated by NULL */
	const char *help;
};

/*
 * Parses the command line into `config`, which contains the defaults. Returns 0, 1
 * if --help was printed, or -EINVAL after an error message. *ret_first_operand is the
 * index of the first operand.
 */
int options_parse(const char *usage, const struct option_row *rows, size_t nr_rows, int argc,
		  char **argv, void *config, int *ret_first_operand);

/* Reads a number in decimal digits. Returns 0 or -EINVAL. */
int options_u64(const char *text, u64 *ret);
