/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/log.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/macros.h"
#if HAVE_SYSTEMD
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#endif

static const struct {
	enum log_level level;
	const char *name;
} levels[] = {
	{ LOG_LEVEL_ERROR, "error" },
	{ LOG_LEVEL_WARNING, "warning" },
	{ LOG_LEVEL_INFO, "info" },
	{ LOG_LEVEL_DEBUG, "debug" },
};

/* Global, because standard error is global too. Set once, before the first thread starts. */
static struct {
	enum log_level least;
	bool is_service;
} setup = { .least = LOG_LEVEL_INFO };

int log_level_parse(const char *text, enum log_level *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		if (strcmp(levels[i].name, text) != 0)
			continue;
		*ret = levels[i].level;
		return 0;
	}
	return -EINVAL;
}

void log_start_service(enum log_level least)
{
	setup.least = least;
	setup.is_service = true;
}

static const char *level_name(enum log_level level)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(levels) - 1 && levels[i].level != level)
		i++;
	return levels[i].name;
}

/*
 * True if standard error is the socket of the journal, which the service manager names in
 * JOURNAL_STREAM. Standard error can have been redirected since.
 */
static bool journal_listens(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

#if HAVE_SYSTEMD
static bool tell_journal(const struct log_place *place, enum log_level level, const char *event,
			 const char *text)
{
	return sd_journal_send("MESSAGE=%s", text, "PRIORITY=%d", (int)level, "CODE_FILE=%s",
			       place->file, "CODE_LINE=%d", place->line, "CODE_FUNC=%s",
			       place->function, event ? "ZERNEL_EVENT=%s" : NULL, event, NULL) >= 0;
}
#else
static bool tell_journal(const struct log_place *place, enum log_level level, const char *event,
			 const char *text)
{
	return false;
}
#endif

/* Prints each line with one call, so that lines of several threads do not mix. */
static void print_plain(enum log_level level, const char *text)
{
	time_t now = time(NULL);
	char at[32] = "";
	struct tm utc;

	if (!setup.is_service) {
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
		return;
	}
	if (gmtime_r(&now, &utc))
		strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &utc);
	fprintf(stderr, "%s %s %s: %s\n", at, program_invocation_short_name, level_name(level),
		text);
}

static void print(const struct log_place *place, enum log_level level, const char *event,
		  const char *text)
{
	if (!journal_listens())
		print_plain(level, text);
	else if (!tell_journal(place, level, event, text))
		fprintf(stderr, "<%d>%s\n", level, text);
}

void log_line(const struct log_place *place, enum log_level level, const char *event,
	      const char *format, ...)
{
	CLEANUP_FREE char *text = NULL;
	va_list args;
	int length;

	if (level > setup.least)
		return;
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		text = NULL;
	print(place, level, event, text ? text : format);
}

void log_text(enum log_level level, const char *text)
{
	if (level > setup.least)
		return;
	if (!journal_listens() || !tell_journal(LOG_PLACE, level, NULL, text))
		fputs(text, stderr);
}
