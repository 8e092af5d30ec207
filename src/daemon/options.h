/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line of zerneld. Most options override a key of the configuration. */
#include "base/log.h"
#include "config/config.h"

#define OPTIONS_MAX 8

struct options {
	const char *config_file; /* NULL: read the files of the system */
	bool foreground;
	enum log_level log_level;
	struct {
		const char *key;
		const char *value;
	} overrides[OPTIONS_MAX];
	u32 nr_overrides;
};

/* Returns 0 to continue, -EINVAL for invalid usage, and 1 if the program must exit now. */
int options_parse(int argc, char **argv, struct options *ret);

/* Loads the files, then applies the command line. On an error, *ret is unchanged. */
int options_load_config(const struct options *options, struct config *ret,
			struct config_problem *problem);
