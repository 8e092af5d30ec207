/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/log.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#if HAVE_SYSTEMD
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#endif

/* The service manager names the journal's socket; it may not be standard error any more. */
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

static void print(const struct log_place *place, enum log_level level, const char *event,
		  const char *text)
{
	if (!journal_listens())
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
	else if (!tell_journal(place, level, event, text))
		fprintf(stderr, "<%d>%s\n", level, text);
}

void log_line(const struct log_place *place, enum log_level level, const char *event,
	      const char *format, ...)
{
	CLEANUP_FREE char *text = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		text = NULL;
	print(place, level, event, text ? text : format);
}

void log_text(enum log_level level, const char *text)
{
	if (!journal_listens() || !tell_journal(LOG_PLACE, level, NULL, text))
		fputs(text, stderr);
}
