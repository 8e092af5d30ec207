/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/term.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "cli/term_internal.h"

static const char *const style_codes[STYLE_NR] = {
	[STYLE_PLAIN] = "",	   [STYLE_TITLE] = "\033[1m",	 [STYLE_DIM] = "\033[2m",
	[STYLE_GOOD] = "\033[32m", [STYLE_WARNING] = "\033[33m", [STYLE_BAD] = "\033[31m",
};

int term_parse_colour(const char *text, enum colour *ret)
{
	static const char *const names[COLOUR_NR] = {
		[COLOUR_AUTO] = "auto",
		[COLOUR_ALWAYS] = "always",
		[COLOUR_NEVER] = "never",
	};

	for (u32 i = 0; i < COLOUR_NR; i++) {
		if (strcmp(names[i], text) != 0)
			continue;
		*ret = (enum colour)i;
		return 0;
	}
	return -EINVAL;
}

struct term term_open(FILE *out, enum colour colour)
{
	struct term term = { .out = out, .colour = colour == COLOUR_ALWAYS };
	const char *type = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	struct winsize size = {};

	if (!isatty(fileno(out)))
		return term;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0) {
		term.width = size.ws_col;
		term.height = size.ws_row;
	}
	if (colour == COLOUR_AUTO)
		term.colour = type && strcmp(type, "dumb") != 0 && !(no_colour && *no_colour);
	return term;
}

/* Counts the characters of UTF-8 text: all bytes but continuation bytes. */
u32 term_columns(const char *text)
{
	u32 nr = 0;

	for (; *text; text++)
		nr += (*text & 0xc0) != 0x80;
	return nr;
}

/* Programs choose their names, which can contain control sequences. C1 controls are two bytes. */
void term_make_harmless(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
		if ((unsigned char)text[0] == 0xc2 && (unsigned char)text[1] >= 0x80 &&
		    (unsigned char)text[1] < 0xa0) {
			text[0] = '?';
			text[1] = '?';
		}
	}
}

void term_write(const struct term *term, enum style style, const char *text, size_t length)
{
	bool coloured = term->colour && style != STYLE_PLAIN && length > 0;

	if (coloured)
		fputs(style_codes[style], term->out);
	fwrite(text, 1, length, term->out);
	if (coloured)
		fputs("\033[0m", term->out);
}

void term_print(const struct term *term, enum style style, const char *format, ...)
{
	CLEANUP_FREE char *text = NULL;
	va_list arguments;
	size_t length;
	int n;

	va_start(arguments, format);
	n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n < 0) {
		text = NULL;
		return;
	}
	length = (size_t)n;
	/* Only the final newline is kept. */
	if (length > 0 && text[length - 1] == '\n')
		text[--length] = '\0';
	term_make_harmless(text);
	term_write(term, style, text, length);
	if (length < (size_t)n)
		fputc('\n', term->out);
}
