/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config.h"
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "config/config_files.h"
#include "config/config_table.h"

#define FILE_MAX (64UL << 10)

/* State of the parser while it reads one file. */
struct parsing {
	struct config *config;
	struct config_origin *origins;
	struct config_problem *problem;
	const char *file;
	const char *next;
	const char *end;
	u32 line;
	int err;
};

void config_problem_print(const struct config_problem *problem, char *text, size_t size)
{
	if (problem->line)
		snprintf(text, size, "%s:%u: %s", problem->file, problem->line, problem->text);
	else
		snprintf(text, size, "%s: %s", problem->file, problem->text);
}

void config_default(struct config *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];

		key->type->parse(key, key->value, (char *)ret + key->offset);
	}
}

static const struct config_key *find_key(const char *section, size_t section_length,
					 const char *name)
{
	for (size_t i = 0; i < config_nr_keys; i++)
		if (strlen(config_keys[i].section) == section_length &&
		    memcmp(config_keys[i].section, section, section_length) == 0 &&
		    strcmp(config_keys[i].key, name) == 0)
			return &config_keys[i];
	return NULL;
}

static int set(struct config *config, const char *section, size_t section_length, const char *name,
	       const char *value, struct config_problem *problem)
{
	const struct config_key *key = find_key(section, section_length, name);
	char wanted[160];

	if (!key) {
		snprintf(problem->text, sizeof(problem->text),
			 "unknown key %.64s in section [%.*s]: see zernel.conf(5)", name,
			 (int)(section_length < 64 ? section_length : 64), section);
		return -EINVAL;
	}
	if (key->type->parse(key, value, (char *)config + key->offset) == 0)
		return 0;
	config_describe(key, wanted, sizeof(wanted));
	snprintf(problem->text, sizeof(problem->text), "%s must be %s, not '%.40s'", key->key,
		 wanted, value);
	return -EINVAL;
}

int config_set(struct config *config, const char *key, const char *value,
	       struct config_problem *problem)
{
	size_t section_length = strcspn(key, ".");
	const char *name = key + section_length;

	return set(config, key, section_length, *name ? name + 1 : name, value, problem);
}

/* Replaces fgets() and counts lines. Refuses a line that is too long instead of splitting it. */
static char *read_line(char *to, int size, void *stream)
{
	struct parsing *parsing = stream;
	size_t left = (size_t)(parsing->end - parsing->next), length;
	const char *newline;

	if (left == 0 || parsing->err < 0)
		return NULL;
	parsing->line++;
	newline = memchr(parsing->next, '\n', left);
	length = newline ? (size_t)(newline - parsing->next) + 1 : left;
	if (length >= (size_t)size || memchr(parsing->next, '\0', length)) {
		snprintf(parsing->problem->text, sizeof(parsing->problem->text),
			 "the line is too long or contains a NUL byte");
		parsing->err = -EINVAL;
		return NULL;
	}
	memcpy(to, parsing->next, length);
	to[length] = '\0';
	parsing->next += length;
	return to;
}

static void note_origin(const struct parsing *parsing, const struct config_key *key,
			const char *value)
{
	struct config_origin *origin = &parsing->origins[key - config_keys];

	snprintf(origin->file, sizeof(origin->file), "%s", parsing->file);
	snprintf(origin->value, sizeof(origin->value), "%s", value);
	origin->line = parsing->line;
}

/* Returns what the parser expects: 1 on success, 0 on an error. */
static int on_key(void *user, const char *section, const char *name, const char *value)
{
	struct parsing *parsing = user;

	parsing->err =
		set(parsing->config, section, strlen(section), name, value, parsing->problem);
	if (parsing->err == 0)
		note_origin(parsing, find_key(section, strlen(section), name), value);
	return parsing->err == 0;
}

static int load_file(struct config *config, const char *file, struct config_origin *origins,
		     struct config_problem *problem)
{
	struct parsing parsing = {
		.config = config, .origins = origins, .problem = problem, .file = file
	};
	CLEANUP_FREE void *data = NULL;
	size_t size;
	int err = file_read(file, FILE_MAX, &data, &size), line;

	snprintf(problem->file, sizeof(problem->file), "%s", file);
	problem->line = 0;
	if (err < 0) {
		snprintf(problem->text, sizeof(problem->text), "cannot be read: %s",
			 strerror(-err));
		return -EINVAL;
	}
	parsing.next = data;
	parsing.end = parsing.next + size;
	line = ini_parse_stream(read_line, &parsing, on_key, &parsing);
	problem->line = parsing.err < 0 ? parsing.line : (u32)line;
	if (parsing.err == 0 && line != 0)
		snprintf(problem->text, sizeof(problem->text),
			 "the line is neither a [section] nor key=value");
	return line == 0 && parsing.err == 0 ? 0 : -EINVAL;
}

static const struct config_origin *origin_of(const struct config_origin *origins,
					     const char *section, const char *name)
{
	return &origins[find_key(section, strlen(section), name) - config_keys];
}

/* Runs after all files are read, because different files can set the two thresholds. */
static int check_thresholds(const struct config *config, const struct config_origin *origins,
			    struct config_problem *problem)
{
	const struct phase_config *phase = &config->phase_detection;
	const struct config_origin *idle =
		origin_of(origins, "phase_detection", "gpu_idle_threshold");
	const struct config_origin *active =
		origin_of(origins, "phase_detection", "gpu_active_threshold");
	const struct config_origin *origin = idle->file[0] ? idle : active;

	if (phase->gpu_idle_threshold < phase->gpu_active_threshold)
		return 0;
	memcpy(problem->file, origin->file, sizeof(problem->file));
	problem->line = origin->line;
	snprintf(problem->text, sizeof(problem->text),
		 "gpu_idle_threshold (%u) must be less than gpu_active_threshold (%u)",
		 phase->gpu_idle_threshold, phase->gpu_active_threshold);
	return -EINVAL;
}

static int load_files(struct config *config, const struct config_files *files,
		      struct config_origin *origins, struct config_problem *problem)
{
	CLEANUP_FREE struct config_origin *own = NULL;
	struct config loaded = *config;
	int err = 0;

	if (!origins)
		origins = own = calloc(config_nr_keys, sizeof(*own));
	if (!origins)
		return -ENOMEM;
	for (size_t i = 0; i < files->nr && err == 0; i++)
		err = load_file(&loaded, files->paths[i], origins, problem);
	if (err < 0)
		return err;
	err = check_thresholds(&loaded, origins, problem);
	if (err < 0)
		return err;
	*config = loaded;
	return 0;
}

int config_load(struct config *config, const char *file, struct config_origin *origins,
		struct config_problem *problem)
{
	CLEANUP(config_files_done) struct config_files files = {};
	int err;

	if (!file)
		return config_load_below(config, "", origins, problem);
	*problem = (struct config_problem){ .text = "out of memory" };
	err = config_files_beside(file, &files, problem);
	return err < 0 ? err : load_files(config, &files, origins, problem);
}

int config_load_below(struct config *config, const char *root, struct config_origin *origins,
		      struct config_problem *problem)
{
	CLEANUP(config_files_done) struct config_files files = {};
	int err;

	*problem = (struct config_problem){ .text = "out of memory" };
	err = config_files_find(root, &files, problem);
	return err < 0 ? err : load_files(config, &files, origins, problem);
}

const char *config_needs_restart(const struct config *before, const struct config *after)
{
	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (key->restart && strcmp(key->restart, CONFIG_ZERNELD) == 0 &&
		    memcmp((const char *)before + key->offset, (const char *)after + key->offset,
			   key->type->size) != 0)
			return key->key;
	}
	return NULL;
}
