/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 64

static void print_default(const struct option_row *row, const void *config)
{
	const char *at = (const char *)config + row->offset;

	switch (row->type) {
	case OPTION_U64: printf(" [%" PRIu64 "]", (uint64_t)(*(const u64 *)at)); break;
	case OPTION_DOUBLE: printf(" [%g]", *(const double *)at); break;
	case OPTION_CHOICE: printf(" [%s]", row->choices[*(const u64 *)at]); break;
	case OPTION_STRING: break;
	}
}

static void print_help(const char *usage, const struct option_row *rows, size_t nr_rows,
		       const void *config)
{
	printf("Usage: %s\n\n", usage);
	for (size_t i = 0; i < nr_rows; i++) {
		printf("  --%-18s %s", rows[i].name, rows[i].help);
		for (size_t j = 0; rows[i].choices && rows[i].choices[j]; j++)
			printf("%s%s", j ? "|" : ": ", rows[i].choices[j]);
		print_default(&rows[i], config);
		putchar('\n');
	}
}

int options_u64(const char *text, u64 *ret)
{
	char *end;
	u64 value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-')
		return -EINVAL;
	*ret = value;
	return 0;
}

static int parse_double(const char *text, double *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0) || value > 1e18)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int parse_choice(const struct option_row *row, const char *text, u64 *ret)
{
	for (u64 i = 0; row->choices[i]; i++) {
		if (strcmp(row->choices[i], text) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int option_set(const struct option_row *row, const char *text, void *config)
{
	char *at = (char *)config + row->offset;
	int r = 0;

	switch (row->type) {
	case OPTION_U64:
		r = options_u64(text, (u64 *)at);
		if (r == 0 && *(u64 *)at < row->min)
			r = -EINVAL;
		break;
	case OPTION_DOUBLE: r = parse_double(text, (double *)at); break;
	case OPTION_CHOICE: r = parse_choice(row, text, (u64 *)at); break;
	case OPTION_STRING: *(const char **)at = text; break;
	}
	return r;
}

int options_parse(const char *usage, const struct option_row *rows, size_t nr_rows, int argc,
		  char **argv, void *config, int *ret_first_operand)
{
	struct option longs[MAX_ROWS + 2] = {};
	int index;

	if (nr_rows > MAX_ROWS)
		return -E2BIG;
	for (size_t i = 0; i < nr_rows; i++)
		longs[i] = (struct option){ rows[i].name, required_argument, NULL, 1 };
	longs[nr_rows] = (struct option){ "help", no_argument, NULL, 'h' };
	for (;;) {
		int found = getopt_long(argc, argv, "h", longs, &index);

		if (found == -1)
			break;
		if (found == 'h') {
			print_help(usage, rows, nr_rows, config);
			return 1;
		}
		if (found != 1)
			return -EINVAL;
		if (option_set(&rows[index], optarg, config) < 0) {
			fprintf(stderr, "%s: invalid value for --%s: '%s'; see --help\n", argv[0],
				rows[index].name, optarg);
			return -EINVAL;
		}
	}
	*ret_first_operand = optind;
	return 0;
}
