/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The keys of the configuration, for config*.c and for code that prints them. */
#include <stddef.h>
#include "config/config.h"

/* The systemd units of the services. */
#define CONFIG_ZERNELD "zerneld"
#define CONFIG_SERVE   "zernel-serve"

struct config_type;

struct config_key {
	const char *section;
	const char *key;
	const struct config_type *type;
	size_t offset; /* in struct config */
	u32 min;       /* of a number */
	u32 max;
	const char *value;   /* the default, as written in a file */
	const char *restart; /* the service that must restart for a change, or NULL */
	const char *help;
};

struct config_type {
	const char *name; /* description for users; config_describe() adds limits */
	size_t size;
	/* Returns -EINVAL for an invalid value. */
	int (*parse)(const struct config_key *key, const char *value, void *to);
};

extern const struct config_key config_keys[];
extern const size_t config_nr_keys;

/* Describes the valid values: "yes or no", "a number from 1 to 2". */
void config_describe(const struct config_key *key, char *text, size_t size);
