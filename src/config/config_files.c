/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config_files.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "base/cleanup.h"

#define NAME	"zernel.conf"
#define DROP_IN ".conf"

/* In the order of priority: the first has the highest. */
static const char *const folders[] = { "/etc/zernel", "/run/zernel", "/usr/lib/zernel" };

void config_files_done(struct config_files *files)
{
	for (size_t i = 0; i < files->nr; i++)
		free(files->paths[i]);
	free(files->paths);
	*files = (struct config_files){};
}

static int add(struct config_files *files, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int add(struct config_files *files, const char *format, ...)
{
	char **paths = reallocarray(files->paths, files->nr + 1, sizeof(*paths));
	va_list arguments;
	int n;

	if (!paths)
		return -ENOMEM;
	files->paths = paths;
	va_start(arguments, format);
	n = vasprintf(&paths[files->nr], format, arguments);
	va_end(arguments);
	if (n < 0)
		return -ENOMEM;
	files->nr++;
	return 0;
}

static const char *name_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* Compares bytes: the order must not depend on the locale of the program. */
static int compare_names(const void *a, const void *b)
{
	return strcmp(name_of(*(char *const *)a), name_of(*(char *const *)b));
}

static bool is_drop_in(const char *name)
{
	size_t length = strlen(name), suffix = strlen(DROP_IN);

	return name[0] != '.' && length > suffix && strcmp(name + length - suffix, DROP_IN) == 0;
}

static bool is_masked(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static bool has_drop_in(const struct config_files *files, size_t first, const char *name)
{
	for (size_t i = first; i < files->nr; i++)
		if (strcmp(name_of(files->paths[i]), name) == 0)
			return true;
	return false;
}

/* Adds the drop-ins of a folder, except those that an already listed drop-in hides. */
static int add_folder(struct config_files *files, size_t first, const char *folder,
		      struct config_problem *problem)
{
	const struct dirent *entry;
	DIR *directory = opendir(folder);
	int err = 0;

	if (!directory && errno == ENOENT)
		return 0;
	if (!directory) {
		err = -errno;
		snprintf(problem->file, sizeof(problem->file), "%s", folder);
		snprintf(problem->text, sizeof(problem->text), "cannot be read: %s",
			 strerror(-err));
		return err;
	}
	while (err == 0 && (entry = readdir(directory)))
		if (is_drop_in(entry->d_name) && !has_drop_in(files, first, entry->d_name))
			err = add(files, "%s/%s", folder, entry->d_name);
	closedir(directory);
	return err;
}

/*
 * Adds the first file that exists. Also adds a file whose check fails with another error than
 * ENOENT: reading the file then reports the error.
 */
static int add_main(struct config_files *files, const char *root)
{
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		int err = add(files, "%s%s/" NAME, root, folders[i]);

		if (err < 0 || access(files->paths[files->nr - 1], F_OK) == 0 || errno != ENOENT)
			return err;
		free(files->paths[--files->nr]);
	}
	return 0;
}

/* Sorts the drop-ins, which begin at `first`, and removes masked files. */
static void arrange(struct config_files *files, size_t first)
{
	size_t nr = 0;

	if (files->nr > first)
		qsort(files->paths + first, files->nr - first, sizeof(*files->paths),
		      compare_names);
	for (size_t i = 0; i < files->nr; i++) {
		if (is_masked(files->paths[i]))
			free(files->paths[i]);
		else
			files->paths[nr++] = files->paths[i];
	}
	files->nr = nr;
}

int config_files_find(const char *root, struct config_files *ret, struct config_problem *problem)
{
	CLEANUP(config_files_done) struct config_files files = {};
	int err = add_main(&files, root);
	size_t first = files.nr;

	for (size_t i = 0; i < ARRAY_SIZE(folders) && err == 0; i++) {
		char folder[PATH_MAX];

		snprintf(folder, sizeof(folder), "%s%s/" NAME ".d", root, folders[i]);
		err = add_folder(&files, first, folder, problem);
	}
	if (err < 0)
		return err;
	arrange(&files, first);
	*ret = files;
	files = (struct config_files){};
	return 0;
}

int config_files_beside(const char *file, struct config_files *ret, struct config_problem *problem)
{
	CLEANUP(config_files_done) struct config_files files = {};
	int err = add(&files, "%s", file);
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s.d", file);
	if (err < 0)
		return err;
	err = add_folder(&files, 1, folder, problem);
	if (err < 0)
		return err;
	arrange(&files, 1);
	*ret = files;
	files = (struct config_files){};
	return 0;
}
