/* SPDX-License-Identifier: GPL-2.0-only */
/* zernel procdb: shows and changes what was learned, in the file where it is kept. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/command.h"
#include "export/procdb_store.h"
#include "export/procdb_text.h"

DEFINE_CLEANUP(struct procdb, procdb_free);

struct request {
	const char *path;
	const char *operand; /* a name, an executable, or a file */
	bool json;
	bool all;
};

static u64 now_s(void)
{
	return (u64)time(NULL);
}

static int parse(int argc, char **argv, struct request *ret)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "all", no_argument, NULL, 'a' },
		{ "file", required_argument, NULL, 'f' },
		{}
	};
	struct request request = { .path = PROCDB_STATE_DIRECTORY "/" PROCDB_FILE_NAME };
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'j': request.json = true; break;
		case 'a': request.all = true; break;
		case 'f': request.path = optarg; break;
		default: return -EINVAL;
		}
	}
	if (optind < argc)
		request.operand = argv[optind++];
	if (optind < argc)
		return -EINVAL;
	*ret = request;
	return 0;
}

/* A database with all that the file has; a file that is not there is an empty one. */
static int load(const char *path, bool must_exist, struct procdb **ret)
{
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	enum procdb_defect defect = PROCDB_FILE_SOUND;
	int err;

	config.capacity = PREDICTIONS_MAX / 2;
	err = procdb_new(&config, &db);
	if (err == 0)
		err = procdb_store_load(db, path, now_s(), &defect);
	if (err == -ENOENT && !must_exist)
		err = 0;
	if (err == -EBADMSG)
		log_error("%s is %s", path, procdb_defect_text(defect));
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

/* zerneld keeps the database in memory while it runs, and would write over any change. */
static int lock(const char *path, int *ret_fd)
{
	int err = procdb_store_lock(path, ret_fd);

	if (err == -EBUSY)
		log_error("zerneld is running and has this database: stop it first");
	else if (err < 0)
		log_error("cannot lock %s: %s", path, strerror(-err));
	return err;
}

static bool is_named(const struct procdb_profile *p, const char *operand)
{
	char executable[17];

	if (!operand || strcmp(p->key.comm, operand) == 0)
		return true;
	snprintf(executable, sizeof(executable), "%016llx", p->key.exe_id);
	return p->key.exe_id && strcmp(executable, operand) == 0;
}

static int compare(const void *a, const void *b)
{
	const struct procdb_profile *const *x = a, *const *y = b;
	int order = strcmp((*x)->key.comm, (*y)->key.comm);

	return order ? order : memcmp(&(*x)->key, &(*y)->key, sizeof((*x)->key));
}

/* Those of that name or executable, or all of them, by name. */
static int select_profiles(const struct procdb *db, const char *operand, struct procdb_list *ret)
{
	struct procdb_list list = {};
	const struct procdb_profile *p;

	list.profiles =
		calloc(procdb_summarize(db).nr_profiles + 1, sizeof(struct procdb_profile *));
	if (!list.profiles)
		return -ENOMEM;
	for (size_t i = 0; (p = procdb_at(db, i)); i++)
		if (is_named(p, operand))
			list.profiles[list.nr++] = p;
	qsort(list.profiles, list.nr, sizeof(struct procdb_profile *), compare);
	*ret = list;
	return 0;
}

static int print(const struct request *request)
{
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	struct procdb_list list;
	int err = load(request->path, false, &db);

	if (err < 0 || select_profiles(db, request->operand, &list) < 0)
		return EXIT_FAILURE;
	if (request->operand && list.nr == 0) {
		log_error("nothing was learned of %s", request->operand);
		err = -ENOENT;
	} else if (request->json) {
		err = procdb_text_json(stdout, &list);
	} else {
		procdb_text_table(stdout, &list, now_s());
	}
	free(list.profiles);
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int list(int argc, char **argv)
{
	struct request request;

	if (parse(argc, argv, &request) < 0 || request.operand || request.all)
		return EXIT_USAGE;
	return print(&request);
}

static int show(int argc, char **argv)
{
	struct request request;

	if (parse(argc, argv, &request) < 0 || !request.operand || request.all)
		return EXIT_USAGE;
	return print(&request);
}

static int export(int argc, char **argv)
{
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	struct request request;

	if (parse(argc, argv, &request) < 0 || !request.operand || request.json || request.all)
		return EXIT_USAGE;
	if (load(request.path, true, &db) < 0)
		return EXIT_FAILURE;
	return save(db, request.operand);
}

/* What is known already stays as it is. */
static int import(int argc, char **argv)
{
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL, *from = NULL;
	const struct procdb_profile *p;
	CLEANUP_FD int fd = -EBADF;
	struct request request;
	size_t nr = 0;

	if (parse(argc, argv, &request) < 0 || !request.operand || request.json || request.all)
		return EXIT_USAGE;
	if (load(request.operand, true, &from) < 0 || lock(request.path, &fd) < 0 ||
	    load(request.path, false, &db) < 0)
		return EXIT_FAILURE;
	for (size_t i = 0; (p = procdb_at(from, i)); i++)
		nr += procdb_restore(db, p, now_s()) == 0;
	printf("%zu profiles taken over\n", nr);
	return save(db, request.path);
}

static int withdraw_nothing(void *userdata, const struct procdb_key *key,
			    const struct procdb_record *prediction)
{
	return 0;
}

static int forget(int argc, char **argv)
{
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	CLEANUP_FD int fd = -EBADF;
	struct request request;
	size_t nr = 0;

	if (parse(argc, argv, &request) < 0 || request.json || !request.operand == !request.all)
		return EXIT_USAGE;
	if (lock(request.path, &fd) < 0 || load(request.path, true, &db) < 0)
		return EXIT_FAILURE;
	/* Backwards: the last one takes the place of one that goes. */
	for (size_t i = procdb_summarize(db).nr_profiles; i-- > 0;) {
		const struct procdb_profile *p = procdb_at(db, i);
		struct procdb_key key = p->key;

		if (is_named(p, request.operand))
			nr += procdb_forget(db, &key, withdraw_nothing, NULL) == 0;
	}
	printf("%zu profiles forgotten\n", nr);
	return nr ? save(db, request.path) : EXIT_FAILURE;
}

int cmd_procdb(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "list", "[--json]", "all profiles", list },
		{ "show", "NAME", "those of a name or an executable, [--json]", show },
		{ "export", "FILE", "copies the database", export },
		{ "import", "FILE", "adds what is not known yet, from any version of the file",
		  import },
		{ "forget", "NAME|--all", "as if it had never run", forget },
		{},
	};
	int status = command_run(commands, "zernel procdb", argc, argv);

	if (status == EXIT_USAGE)
		fputs("\n  --file FILE  the database (" PROCDB_STATE_DIRECTORY "/" PROCDB_FILE_NAME
		      ")\n",
		      stderr);
	return status;
}
