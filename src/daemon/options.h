/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line of zerneld. Most options are keys of the configuration that count more. */
#include "base/log.h"
#include "config/config.h"

#define OPTIONS_MAX 8

struct options {
	const char *config_file; /* NULL: the usual one, if it is there */
	bool foreground;
	enum log_level log_level;
	struct {
		const char *key;
		const char *value;
	} overrides[OPTIONS_MAX];
	u32 nr_overrides;
};

/* 0 to go on, -EINVAL when it makes no sense, 1 when there is nothing more to do. */
int options_parse(int argc, char **argv, struct options *ret);

/* What the files say and, above that, the command line. Nothing changes at a problem. */
int options_load_config(const struct options *options, struct config *ret,
			struct config_problem *problem);
