/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel export: converts recordings for other programs. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/macros.h"
#include "cli/command.h"
#include "cli/export_html.h"
#include "cli/recording.h"
#include "cli/result.h"
#include "record/record_export.h"

static const struct format {
	int key;
	const char *name;
	int (*write)(struct record_reader *reader, FILE *out);
} formats[] = {
	{ 'p', "perfetto", record_to_perfetto },
	{ 'c', "csv", record_to_csv },
	{ 'w', "html", export_html },
};
#define NR_FORMATS ARRAY_SIZE(formats)

static int write_to(const struct recording *recording, const struct format *format,
		    const char *path)
{
	FILE *out = fopen(path, "we");
	int err;

	if (!out) {
		err = -errno;
		log_error("cannot create %s: %s", path, strerror(-err));
		return err;
	}
	err = format->write(recording->reader, out);
	if (fclose(out) != 0 && err == 0)
		err = -errno;
	if (err == -EBADMSG)
		log_error("%s: frame %llu is invalid", recording->path,
			  record_reader_nr_frames(recording->reader));
	else if (err == -ENOTSUP)
		log_error("this zernel was built without the dashboard");
	else if (err == -EPROTONOSUPPORT)
		recording_tell_version(recording);
	else if (err < 0)
		log_error("cannot export to %s: %s", path, strerror(-err));
	else
		recording_tell_ending(recording);
	return err;
}

static int print_result(const struct recording *recording, const struct format *format,
			const char *path)
{
	const struct result_field fields[] = {
		{ "file", path },
		{ "format", format->name },
		{ "frames", .number = record_reader_nr_frames(recording->reader) },
		{},
	};

	return result_print(fields);
}

static int run(struct command_call *call)
{
	const struct format *format = NULL;
	struct recording recording;
	const char *path = NULL;
	int option, err;

	while ((option = command_next(call)) != -1) {
		if (option == '?')
			return COMMAND_MISUSED;
		if (format) {
			command_misuse(call, "--%s and --%s cannot be used together", format->name,
				       call->option->name);
			return COMMAND_MISUSED;
		}
		for (size_t i = 0; i < NR_FORMATS; i++)
			if (formats[i].key == option)
				format = &formats[i];
		path = optarg;
	}
	if (command_operands(call, 1, 1) < 0)
		return COMMAND_MISUSED;
	if (!format) {
		command_misuse(call, "'%s' needs --perfetto, --csv or --html", call->name);
		return COMMAND_MISUSED;
	}
	if (recording_open(call->argv[optind], &recording) < 0)
		return EXIT_FAILURE;
	err = write_to(&recording, format, path);
	if (err == 0 && call->json)
		err = print_result(&recording, format, path);
	recording_close(&recording);
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = {
	{ "perfetto", 'p', "OUT", "write a trace for ui.perfetto.dev to this file", COMPLETE_FILE },
	{ "csv", 'c', "OUT", "write one CSV row per process and snapshot to this file",
	  COMPLETE_FILE },
	{ "html", 'w', "OUT",
	  "write the dashboard with the data of the recording to this file; it needs no network",
	  COMPLETE_FILE },
	{},
};

const struct command command_export = {
	.name = "export",
	.operands = "FILE",
	.completion = COMPLETE_FILE,
	.help = "convert a recording to a Perfetto trace, to CSV or to a page",
	.description =
		"Requires --perfetto, --csv or --html. An existing output file is overwritten.",
	.options = command_options,
	.run = run,
};
