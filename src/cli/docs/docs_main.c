/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the manual pages and the completion files below a directory: packaging, mostly. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/docs/docs.h"

static int write_file(const char *directory, const char *name, const struct command *command,
		      void (*print)(FILE *out, const struct command *command))
{
	CLEANUP_FREE char *path = NULL;
	FILE *file;
	int err = 0;

	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	file = fopen(path, "we");
	if (file)
		print(file, command);
	if (!file || fclose(file) != 0) {
		err = -errno;
		log_error("cannot write %s: %s", path, strerror(errno));
	}
	return err;
}

static int make_directory(const char *directory, const char *name)
{
	CLEANUP_FREE char *path = NULL;

	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int write_manuals(const char *directory)
{
	int err = write_file(directory, "man/zernel.1", &command_zernel, docs_print_manual);

	for (const struct command *const *each = command_zernel.commands; err == 0 && *each;
	     each++) {
		char name[64];

		snprintf(name, sizeof(name), "man/zernel-%s.1", (*each)->name);
		err = write_file(directory, name, *each, docs_print_manual);
	}
	return err;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(FILE *out, const struct command *root);
	} completions[] = {
		{ "completion/zernel.bash", docs_print_bash },
		{ "completion/_zernel", docs_print_zsh },
		{ "completion/zernel.fish", docs_print_fish },
	};
	int err;

	if (argc != 2) {
		fputs("Usage: zernel-docs DIRECTORY\n", stderr);
		return EXIT_USAGE;
	}
	err = make_directory(argv[1], "man");
	if (err == 0)
		err = make_directory(argv[1], "completion");
	if (err == 0)
		err = write_manuals(argv[1]);
	for (size_t i = 0; err == 0 && i < ARRAY_SIZE(completions); i++)
		err = write_file(argv[1], completions[i].name, &command_zernel,
				 completions[i].print);
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
