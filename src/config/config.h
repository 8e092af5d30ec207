/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What people can set: one table of keys yields reading, the file that is shipped and
 * the manual page. A key that several files set has the value of the file that is read
 * last; config_files.h has their order.
 */
#include <stdbool.h>
#include <stdio.h>
#include "core/phase.h"

#define CONFIG_FILE		    "/etc/zernel/zernel.conf"
#define CONFIG_PATH_LEN		    108 /* of a socket's address, too */
#define CONFIG_TEXT_LEN		    256 /* more than a line of the file can have */
#define CONFIG_NAME_LEN		    33	/* of a user */
#define CONFIG_LISTEN_MAX	    8
#define CONFIG_ORIGINS_MAX	    16
/* Threads that feed a GPU keep a share too, whatever an operator sets. */
#define CONFIG_RESERVED_PERCENT_MAX 90

/* Read by `zernel serve` and not by zerneld. A text that is empty is not set. */
struct config_serve {
	char listen[CONFIG_TEXT_LEN]; /* lists have commas between their items */
	u32 port;
	char socket[CONFIG_PATH_LEN]; /* empty: that of struct config */
	char tls_cert[CONFIG_PATH_LEN];
	char tls_key[CONFIG_PATH_LEN];
	char tls_client_ca[CONFIG_PATH_LEN];
	char token_file[CONFIG_PATH_LEN];
	char allow_origin[CONFIG_TEXT_LEN];
	char user[CONFIG_NAME_LEN];
	u32 series_max;
};

struct config {
	bool attach;
	u32 rules_off;
	u32 reserved_percent;
	struct phase_config phase_detection;
	char state_directory[CONFIG_PATH_LEN];
	u32 nr_profiles;
	char socket[CONFIG_PATH_LEN];
	u32 retry_s;
	bool measure_run_time;
	bool sample_gpus;
	struct config_serve serve;
};

struct config_problem {
	char file[256];
	u32 line; /* 0: the file as a whole */
	char text[256];
};

/* Where the value of a key comes from. */
struct config_origin {
	char file[256]; /* empty: it is the default */
	u32 line;
	char value[CONFIG_TEXT_LEN]; /* as it was written */
};

/* "FILE:LINE: what is wrong" */
void config_problem_print(const struct config_problem *problem, char *text, size_t size);

void config_default(struct config *ret);

/* One key as "section.key". -EINVAL, and `problem` says what is wrong with it. */
int config_set(struct config *config, const char *key, const char *value,
	       struct config_problem *problem);

/*
 * Reads a file, which must be there, and its drop-ins in FILE.d; the files of the system when
 * `file` is NULL, which may all be missing. At the first problem nothing of it all is taken
 * over, and `problem` says what it is. What the files set is noted in `origins`, one for each
 * of config_keys, unless that is NULL.
 */
int config_load(struct config *config, const char *file, struct config_origin *origins,
		struct config_problem *problem);
/* The same with the files of the system below another root. */
int config_load_below(struct config *config, const char *root, struct config_origin *origins,
		      struct config_problem *problem);

/* A key that differs and takes effect when zerneld restarts; its name, or NULL. */
const char *config_needs_restart(const struct config *before, const struct config *after);

/* The file that is shipped: every key with its default, commented out. */
void config_print(FILE *out);
/* zernel.conf(5) */
void config_print_manual(FILE *out);
