/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/progress.h"
#include <stdarg.h>
#include <unistd.h>

#define BAR_WIDTH 30
/* A narrower terminal shows only the text. */
#define BAR_TERM  60

static bool is_seen(const struct term *term)
{
	return term->width > 0 && isatty(fileno(term->out));
}

void progress_show(const struct term *term, u64 done, u64 whole, const char *format, ...)
{
	u32 filled = whole ? (u32)((done < whole ? done : whole) * BAR_WIDTH / whole) : 0;
	char text[128], bar[BAR_WIDTH + 1];
	va_list arguments;

	if (!is_seen(term))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (u32 i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < filled ? '#' : '.';
	bar[BAR_WIDTH] = '\0';
	/* Never print a second line: \r could not remove it. */
	if (term->width < BAR_TERM)
		fprintf(term->out, "\r%.*s\033[K", (int)term->width - 1, text);
	else
		fprintf(term->out, "\r[%s] %.*s\033[K", bar, (int)term->width - BAR_WIDTH - 4,
			text);
	fflush(term->out);
}

void progress_end(const struct term *term)
{
	if (is_seen(term)) {
		fputs("\r\033[K", term->out);
		fflush(term->out);
	}
}
