/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The keys of the configuration, for config*.c and for those who show them. */
#include <stddef.h>
#include "config/config.h"

/* Services, by their units. */
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
	const char *value;   /* the default, as one would write it */
	const char *restart; /* the service that a change takes effect with, or NULL: at once */
	const char *help;
};

struct config_type {
	const char *name; /* for people: "a number from 1 to 2" is made of it */
	size_t size;
	/* -EINVAL when it makes no sense. */
	int (*parse)(const struct config_key *key, const char *value, void *to);
};

extern const struct config_key config_keys[];
extern const size_t config_nr_keys;

/* "yes or no", "a number from 1 to 2": what a value may be. */
void config_describe(const struct config_key *key, char *text, size_t size);
