/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zernel procdb: shows and changes the learned profiles. A running zerneld holds them in memory;
 * otherwise they are in the database file.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/macros.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/procdb_client.h"
#include "cli/procdb_table.h"
#include "cli/result.h"
#include "store/procdb_store.h"

/* A file version that `export` can write. */
struct format {
	const char *name;
	int (*save)(const struct procdb *db, const char *path, size_t *ret_nr);
};

struct request {
	const char *path;
	const char *socket;  /* NULL: use the file, even if zerneld runs */
	const char *operand; /* a task name, an executable, or a file */
	const struct format *format;
	enum colour colour;
	bool json;
	bool all;
};

static int save_v3(const struct procdb *db, const char *path, size_t *ret_nr)
{
	*ret_nr = procdb_summarize(db).nr_profiles;
	return procdb_store_save(db, path);
}

/* The first one is the default. */
static const struct format formats[] = {
	{ "v3", save_v3 },
	{ "v2", procdb_store_save_v2 },
};

static int parse_format(struct command_call *call, const struct format **ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(optarg, formats[i].name) == 0) {
			*ret = &formats[i];
			return 0;
		}
	return command_misuse(call, "--format must be v2 or v3, not '%s'", optarg);
}

static u64 now_s(void)
{
	return (u64)time(NULL);
}

static int parse(struct command_call *call, struct request *ret)
{
	struct request request = { .format = &formats[0] };
	int option, nr_operands;

	while ((option = command_next(call)) != -1) {
		switch (option) {
		case 'a': request.all = true; break;
		case 'f': request.path = optarg; break;
		case 's': request.socket = optarg; break;
		case 'F':
			if (parse_format(call, &request.format) < 0)
				return -EINVAL;
			break;
		default: return -EINVAL;
		}
	}
	if (!request.path && !request.socket)
		request.socket = PROTOCOL_SOCKET;
	if (!request.path)
		request.path = PROCDB_STATE_DIRECTORY "/" PROCDB_FILE_NAME;
	/* --all takes the place of the operand. */
	nr_operands = call->command->operands && !request.all;
	if (command_operands(call, nr_operands, nr_operands) < 0)
		return -EINVAL;
	request.operand = nr_operands ? call->argv[optind] : NULL;
	request.json = call->json;
	request.colour = call->colour;
	*ret = request;
	return 0;
}

/* *ret stays NULL if zerneld is not running. */
static int open_client(const struct request *request, struct client **ret)
{
	int err = request->socket ? client_connect(request->socket, ret) : -ENOENT;

	if (err == -ENOENT || err == -ECONNREFUSED)
		return 0;
	if (err < 0)
		ask_log_failure(request->socket, err);
	return err;
}

static int new_database(struct procdb **ret)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;

	config.capacity = PREDICTIONS_MAX / 2;
	return procdb_new(&config, ret);
}

/* A missing file counts as an empty database unless `must_exist`. */
static int load(const char *path, bool must_exist, struct procdb **ret)
{
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	char what[PROCDB_DEFECT_TEXT_MAX];
	struct procdb_report report = {};
	int err = new_database(&db);

	if (err == 0)
		err = procdb_store_load(db, path, now_s(), &report);
	if (err == -ENOENT && !must_exist)
		err = 0;
	procdb_text_defect(&report, what, sizeof(what));
	if (err == 0 && report.defect != PROCDB_FILE_SOUND)
		log_warning("%s: %s and are ignored", path, what);
	if (err == -EBADMSG)
		log_error("cannot use %s: %s", path, what);
	else if (err < 0)
		log_error("cannot read %s: %s", path, strerror(-err));
	if (err == 0)
		*ret = TAKE_PTR(db);
	return err;
}

static int save(const struct procdb *db, const char *path)
{
	int err = procdb_store_save(db, path);

	if (err < 0)
		log_error("cannot write %s: %s", path, strerror(-err));
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A running zerneld holds the database in memory and would overwrite any change to the file. */
static int lock(const char *path, int *ret_fd)
{
	int err = procdb_store_lock(path, ret_fd);

	if (err == -EBUSY)
		log_error("zerneld is running and uses this database: leave out --file, or stop "
			  "zerneld first");
	else if (err < 0)
		log_error("cannot lock %s: %s", path, strerror(-err));
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct procdb_profile *const *x = a, *const *y = b;
	int order = strcmp((*x)->key.comm, (*y)->key.comm);

	return order ? order : memcmp(&(*x)->key, &(*y)->key, sizeof((*x)->key));
}

/* Profiles with this task name or executable, or all profiles, sorted by name. */
static int select_profiles(const struct procdb *db, const char *operand, struct procdb_list *ret)
{
	struct procdb_list list = {};
	const struct procdb_profile *p;

	list.profiles =
		calloc(procdb_summarize(db).nr_profiles + 1, sizeof(struct procdb_profile *));
	if (!list.profiles)
		return -ENOMEM;
	for (size_t i = 0; (p = procdb_at(db, i)); i++)
		if (procdb_text_is_named(p, operand))
			list.profiles[list.nr++] = p;
	qsort(list.profiles, list.nr, sizeof(struct procdb_profile *), compare);
	*ret = list;
	return 0;
}

static int print_list(const struct request *request, const struct procdb_list *list)
{
	struct term term;

	if (request->operand && list->nr == 0) {
		log_error("no profile of %s was learned. List all with: zernel procdb list",
			  request->operand);
		return EXIT_FAILURE;
	}
	if (request->json)
		return procdb_text_json(stdout, list) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	term = term_open(stdout, request->colour);
	return procdb_table(&term, list, now_s()) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int print_live(const struct request *request, struct client *client)
{
	struct procdb_copies copies = {};
	struct procdb_list list = {};
	int status = EXIT_FAILURE;

	if (procdb_client_list(client, request->operand, &copies) < 0)
		return EXIT_FAILURE;
	list.profiles = calloc(copies.nr + 1, sizeof(struct procdb_profile *));
	if (list.profiles) {
		for (; list.nr < copies.nr; list.nr++)
			list.profiles[list.nr] = &copies.profiles[list.nr];
		qsort(list.profiles, list.nr, sizeof(struct procdb_profile *), compare);
		status = print_list(request, &list);
	}
	free(list.profiles);
	free(copies.profiles);
	return status;
}

static int print(const struct request *request)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	struct procdb_list list;
	int status;

	if (open_client(request, &client) < 0)
		return EXIT_FAILURE;
	if (client)
		return print_live(request, client);
	if (load(request->path, false, &db) < 0 || select_profiles(db, request->operand, &list) < 0)
		return EXIT_FAILURE;
	status = print_list(request, &list);
	free(list.profiles);
	return status;
}

/* Prints how many profiles were changed. */
static int print_count(const struct request *request, const char *change, size_t nr)
{
	const struct result_field fields[] = { { change, .number = nr }, {} };

	if (request->json)
		return result_print(fields) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	printf("%zu profiles %s\n", nr, change);
	return EXIT_SUCCESS;
}

static int show(struct command_call *call)
{
	struct request request;

	if (parse(call, &request) < 0)
		return COMMAND_MISUSED;
	return print(&request);
}

static int export(struct command_call *call)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	struct request request;
	size_t nr = 0;
	int err;

	if (parse(call, &request) < 0)
		return COMMAND_MISUSED;
	if (open_client(&request, &client) < 0)
		return EXIT_FAILURE;
	err = client ? new_database(&db) : load(request.path, true, &db);
	if (err == 0 && client)
		err = procdb_client_export(client, db, now_s());
	if (err < 0)
		return EXIT_FAILURE;
	err = request.format->save(db, request.operand, &nr);
	if (err < 0) {
		log_error("cannot write %s: %s", request.operand, strerror(-err));
		return EXIT_FAILURE;
	}
	return print_count(&request, "exported", nr);
}

/* Known profiles are not changed. */
static int import_file(const struct request *request, const struct procdb *from)
{
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	const struct procdb_profile *p;
	CLEANUP_FD int fd = -EBADF;
	size_t nr = 0;

	if (lock(request->path, &fd) < 0 || load(request->path, false, &db) < 0)
		return EXIT_FAILURE;
	for (size_t i = 0; (p = procdb_at(from, i)); i++)
		nr += procdb_restore(db, p, now_s()) == 0;
	if (save(db, request->path) != EXIT_SUCCESS)
		return EXIT_FAILURE;
	return print_count(request, "imported", nr);
}

static int import(struct command_call *call)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	CLEANUP(procdb_free_cleanup) struct procdb *from = NULL;
	struct request request;
	size_t nr = 0;

	if (parse(call, &request) < 0)
		return COMMAND_MISUSED;
	if (load(request.operand, true, &from) < 0 || open_client(&request, &client) < 0)
		return EXIT_FAILURE;
	if (!client)
		return import_file(&request, from);
	if (procdb_client_import(client, from, &nr) < 0)
		return EXIT_FAILURE;
	return print_count(&request, "imported", nr);
}

static int withdraw_nothing(void *userdata, const struct procdb_key *key,
			    const struct procdb_record *prediction)
{
	return 0;
}

static int forget_file(const struct request *request)
{
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	CLEANUP_FD int fd = -EBADF;
	size_t nr = 0;

	if (lock(request->path, &fd) < 0 || load(request->path, true, &db) < 0)
		return EXIT_FAILURE;
	/* Backwards, because the last profile moves to the place of a deleted one. */
	for (size_t i = procdb_summarize(db).nr_profiles; i-- > 0;) {
		const struct procdb_profile *p = procdb_at(db, i);
		struct procdb_key key = p->key;

		if (procdb_text_is_named(p, request->operand))
			nr += procdb_forget(db, &key, withdraw_nothing, NULL) == 0;
	}
	if (nr && save(db, request->path) != EXIT_SUCCESS)
		return EXIT_FAILURE;
	print_count(request, "forgotten", nr);
	return nr ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int forget(struct command_call *call)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	struct request request;
	size_t nr = 0;

	if (parse(call, &request) < 0)
		return COMMAND_MISUSED;
	if (open_client(&request, &client) < 0)
		return EXIT_FAILURE;
	if (!client)
		return forget_file(&request);
	if (procdb_client_forget(client, request.operand, &nr) < 0)
		return EXIT_FAILURE;
	return print_count(&request, "forgotten", nr);
}

#define OPTION_FILE                                                                                \
	{ "file", 'f', "FILE",                                                                     \
	  "use this database file; default if zerneld is not running: " PROCDB_STATE_DIRECTORY     \
	  "/" PROCDB_FILE_NAME,                                                                    \
	  COMPLETE_FILE }

static const struct command_option file_options[] = { OPTION_SOCKET, OPTION_FILE, {} };
static const struct command_option export_options[] = {
	{ "format", 'F', "VERSION",
	  "file version: v3, or v2 for the reference scheduler (default: v3)" },
	OPTION_SOCKET,
	OPTION_FILE,
	{},
};
static const struct command_option forget_options[] = {
	{ "all", 'a', NULL, "delete all profiles" },
	OPTION_SOCKET,
	OPTION_FILE,
	{},
};

static const struct command command_list = {
	.name = "list",
	.help = "list all profiles",
	.options = file_options,
	.run = show,
};
static const struct command command_show = {
	.name = "show",
	.operands = "NAME",
	.help = "list the profiles of a task name or an executable",
	.options = file_options,
	.run = show,
};
static const struct command command_procdb_export = {
	.name = "export",
	.operands = "FILE",
	.completion = COMPLETE_FILE,
	.help = "copy the database to a file",
	.options = export_options,
	.run = export,
};
static const struct command command_import = {
	.name = "import",
	.operands = "FILE",
	.completion = COMPLETE_FILE,
	.help = "add the unknown profiles of a file, which can have any version",
	.options = file_options,
	.run = import,
};
static const struct command command_forget = {
	.name = "forget",
	.operands = "NAME|--all",
	.help = "delete the learned profiles of a program",
	.options = forget_options,
	.run = forget,
};

static const struct command *const commands[] = {
	&command_list,	 &command_show,	  &command_procdb_export,
	&command_import, &command_forget, NULL,
};

const struct command command_procdb = {
	.name = "procdb",
	.operands = "COMMAND",
	.help = "show and change the learned profiles of programs",
	.description =
		"If zerneld is running, the commands ask zerneld. Otherwise they use the database "
		"file.",
	.commands = commands,
};
