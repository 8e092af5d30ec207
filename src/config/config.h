/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The configuration. One table of keys drives the parser, the shipped file and the manual
 * page. When several files set a key, the file that is read last takes effect;
 * config_files.h defines the order.
 */
#include <stdbool.h>
#include <stdio.h>
#include "core/phase.h"

#define CONFIG_FILE		    "/etc/zernel/zernel.conf"
#define CONFIG_PATH_LEN		    108 /* also the limit of a socket address */
#define CONFIG_TEXT_LEN		    256 /* longer than the longest line of a file */
#define CONFIG_NAME_LEN		    33	/* of a user name */
#define CONFIG_TOKEN_FILE	    "/run/zernel-serve/token"
#define CONFIG_LISTEN_MAX	    8
#define CONFIG_ORIGINS_MAX	    16
#define CONFIG_DEVICE_FILES_MAX	    16
/* Threads that feed a GPU always keep a share. */
#define CONFIG_RESERVED_PERCENT_MAX 90

/* When zerneld attaches the scheduler. */
enum config_attach {
	CONFIG_ATTACH_NO,
	/* For ML processes, unless a cgroup has a CPU limit that the scheduler cannot keep. */
	CONFIG_ATTACH_AUTO,
	CONFIG_ATTACH_YES,
	CONFIG_ATTACH_NR,
};

/* What zerneld acts with. */
enum config_actuator {
	CONFIG_ACTUATOR_AUTO, /* the scheduler, or nice values while it cannot be attached */
	CONFIG_ACTUATOR_SCHED_EXT,
	CONFIG_ACTUATOR_NICE,
	CONFIG_ACTUATOR_NONE,
	CONFIG_ACTUATOR_NR,
};

/* Used by `zernel serve` and not by zerneld. An empty text means: not set. */
struct config_serve {
	char listen[CONFIG_TEXT_LEN]; /* lists are comma-separated */
	u32 port;
	char socket[CONFIG_PATH_LEN]; /* empty: use the one in struct config */
	char tls_cert[CONFIG_PATH_LEN];
	char tls_key[CONFIG_PATH_LEN];
	char tls_client_ca[CONFIG_PATH_LEN];
	char token_file[CONFIG_PATH_LEN]; /* CONFIG_TOKEN_FILE is made by zernel serve */
	char allow_origin[CONFIG_TEXT_LEN];
	char user[CONFIG_NAME_LEN];
	u32 series_max;
	bool legacy_metrics;
	bool dense_buckets;
	bool history;
};

struct config {
	u32 attach;   /* enum config_attach */
	u32 actuator; /* enum config_actuator */
	u32 rules_off;
	u32 reserved_percent;
	u32 promotion_percent;
	struct phase_config phase_detection;
	char state_directory[CONFIG_PATH_LEN];
	u32 nr_profiles;
	char socket[CONFIG_PATH_LEN];
	bool read_own;
	u32 retry_s;
	bool measure_run_time;
	bool sample_gpus;
	char device_files[CONFIG_TEXT_LEN]; /* comma-separated */
	struct config_serve serve;
};

struct config_problem {
	char file[256];
	u32 line; /* 0: the problem concerns the whole file */
	char text[256];
};

/* Where the value of a key comes from. */
struct config_origin {
	char file[256]; /* empty: the value is the default */
	u32 line;
	char value[CONFIG_TEXT_LEN]; /* as written in the file */
};

/* "FILE:LINE: what is wrong" */
void config_problem_print(const struct config_problem *problem, char *text, size_t size);

void config_default(struct config *ret);

/* Sets the key "section.key". On -EINVAL, `problem` describes the error. */
int config_set(struct config *config, const char *key, const char *value,
	       struct config_problem *problem);

/*
 * Reads `file`, which must exist, and its drop-ins in FILE.d. If `file` is NULL, reads the
 * files of the system, which may all be missing. On an error, `config` stays unchanged and
 * `problem` describes the first error. `origins` (unless NULL) receives the origin of each
 * value that the files set, in the order of config_keys.
 */
int config_load(struct config *config, const char *file, struct config_origin *origins,
		struct config_problem *problem);
/* The same for the files of the system below another root directory. */
int config_load_below(struct config *config, const char *root, struct config_origin *origins,
		      struct config_problem *problem);

/* The name of a changed key that takes effect only when zerneld restarts, or NULL. */
const char *config_needs_restart(const struct config *before, const struct config *after);

/* Prints the shipped file: every key with its default, commented out. */
void config_print(FILE *out);
/* Prints zernel.conf(5). */
void config_print_manual(FILE *out);
