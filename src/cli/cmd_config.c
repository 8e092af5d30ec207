/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel config: shows each key with the file that sets it, and checks a file. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/result.h"
#include "cli/term.h"
#include "config/config_table.h"
#include "serve/config.h"

/* The caller frees the origins of the keys. `ret_config` may be NULL. A problem is logged. */
static int load(const char *file, struct config *ret_config, struct config_origin **ret)
{
	CLEANUP_FREE struct config_origin *origins = calloc(config_nr_keys, sizeof(*origins));
	struct config_problem problem = { .text = "out of memory" };
	char text[sizeof(problem)];
	struct config config;
	int err = -ENOMEM;

	config_default(&config);
	if (origins)
		err = config_load(&config, file, origins, &problem);
	if (err < 0) {
		config_problem_print(&problem, text, sizeof(text));
		log_error("%s", text);
		return err;
	}
	*ret = TAKE_PTR(origins);
	if (ret_config)
		*ret_config = config;
	return 0;
}

static int print_table(const struct config_origin *origins, enum colour colour)
{
	static const struct column columns[] = { { "KEY" }, { "VALUE" }, { "FROM" }, {} };
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);
	struct term term = term_open(stdout, colour);

	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];
		const struct config_origin *origin = &origins[i];
		bool is_set = origin->file[0];

		table_cell(table, STYLE_TITLE, "%s.%s", key->section, key->key);
		table_cell(table, STYLE_PLAIN, "%s", is_set ? origin->value : key->value);
		if (is_set)
			table_cell(table, STYLE_PLAIN, "%s:%u", origin->file, origin->line);
		else
			table_cell(table, STYLE_DIM, "default");
	}
	return table_print(table, &term);
}

static int print_json(const struct config_origin *origins)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *keys;
	CLEANUP_FREE char *text = NULL;

	yyjson_mut_doc_set_root(doc, root);
	keys = yyjson_mut_obj_add_arr(doc, root, "keys");
	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];
		bool is_set = origins[i].file[0];
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, keys);

		yyjson_mut_obj_add_str(doc, object, "section", key->section);
		yyjson_mut_obj_add_str(doc, object, "key", key->key);
		yyjson_mut_obj_add_str(doc, object, "value",
				       is_set ? origins[i].value : key->value);
		yyjson_mut_obj_add_str(doc, object, "default", key->value);
		if (!is_set)
			continue;
		yyjson_mut_obj_add_str(doc, object, "file", origins[i].file);
		yyjson_mut_obj_add_uint(doc, object, "line", origins[i].line);
	}
	text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY | YYJSON_WRITE_ALLOW_INVALID_UNICODE,
				NULL);
	yyjson_mut_doc_free(doc);
	return text && puts(text) >= 0 ? 0 : -ENOMEM;
}

static int show(struct command_call *call)
{
	CLEANUP_FREE struct config_origin *origins = NULL;
	const char *file = NULL;
	int option, err;

	while ((option = command_next(call)) != -1) {
		if (option != 'c')
			return COMMAND_MISUSED;
		file = optarg;
	}
	if (command_operands(call, 0, 0) < 0)
		return COMMAND_MISUSED;
	err = load(file, NULL, &origins);
	if (err == 0)
		err = call->json ? print_json(origins) : print_table(origins, call->colour);
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int check(struct command_call *call)
{
	struct result_field fields[] = { { "file" }, { "status", "valid" }, {} };
	CLEANUP_FREE struct config_origin *origins = NULL;
	struct serve_config serve = {};
	struct config config;
	const char *defect;

	if (command_next(call) != -1 || command_operands(call, 1, 1) < 0)
		return COMMAND_MISUSED;
	fields[0].text = call->argv[optind];
	if (load(fields[0].text, &config, &origins) < 0)
		return EXIT_FAILURE;
	serve_config_fill(&serve, &config);
	defect = serve_config_defect(&serve);
	if (defect) {
		log_error("%s: section [serve]: %s", fields[0].text, defect);
		return EXIT_FAILURE;
	}
	if (call->json)
		return result_print(fields) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	printf("%s is valid\n", fields[0].text);
	return EXIT_SUCCESS;
}

static const struct command_option show_options[] = {
	{ "config", 'c', "FILE", "read this file instead of " CONFIG_FILE, COMPLETE_FILE },
	{},
};

static const struct command command_show = {
	.name = "show",
	.help = "print every key, its value and the file that sets it",
	.description =
		"Prints the values that zerneld, and zernel serve for section [serve], would read\n"
		"now. Command-line options override them. A client that calls `policy.set`\n"
		"overrides them until zerneld restarts.",
	.options = show_options,
	.run = show,
};
static const struct command command_check = {
	.name = "check",
	.operands = "FILE",
	.completion = COMPLETE_FILE,
	.help = "check whether zerneld and zernel serve accept a file and its drop-ins",
	.run = check,
};

static const struct command *const commands[] = { &command_show, &command_check, NULL };

const struct command command_config = {
	.name = "config",
	.operands = "COMMAND",
	.help = "show or check the configuration of zerneld and zernel serve",
	.commands = commands,
};
