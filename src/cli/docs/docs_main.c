/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the manual pages and the completion files below one directory, and pages of the
 * reference into another one: `packaging` and `docs/reference` in the repository.
 */
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

struct page {
	const char *name;
	void (*print)(FILE *out, const struct command *root);
};

static const struct page completions[] = {
	{ "completion/zernel.bash", docs_print_bash },
	{ "completion/_zernel", docs_print_zsh },
	{ "completion/zernel.fish", docs_print_fish },
	{},
};
static const struct page references[] = {
	{ "cli.md", docs_print_cli },
	{ "config.md", docs_print_config },
	{ "runtimes.md", docs_print_runtimes },
	{},
};

static int write_pages(const char *directory, const struct page *page)
{
	int err = 0;

	for (; err == 0 && page->name; page++)
		err = write_file(directory, page->name, &command_zernel, page->print);
	return err;
}

int main(int argc, char **argv)
{
	int err;

	if (argc != 3) {
		fputs("Usage: zernel-docs PACKAGING REFERENCE\n", stderr);
		return EXIT_USAGE;
	}
	err = make_directory(argv[1], "man");
	if (err == 0)
		err = make_directory(argv[1], "completion");
	if (err == 0)
		err = write_manuals(argv[1]);
	if (err == 0)
		err = write_pages(argv[1], completions);
	if (err == 0)
		err = write_pages(argv[2], references);
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
