/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/top/top_canvas.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "cli/term_internal.h"

int canvas_resize(struct canvas *canvas, u32 width, u32 height)
{
	struct canvas_cell *cells = calloc((size_t)width * height + 1, sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)width * height; i++)
		cells[i].character = L' ';
	free(canvas->cells);
	canvas->cells = cells;
	canvas->width = width;
	canvas->height = height;
	return 0;
}

void canvas_done(struct canvas *canvas)
{
	free(canvas->cells);
	*canvas = (struct canvas){ .colour = canvas->colour };
}

/* Decodes the next UTF-8 character and returns its number of bytes. */
static wchar_t decode(const char *text, u32 *ret_bytes)
{
	unsigned char first = (unsigned char)*text;
	u32 nr = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	u32 value = nr == 1 ? first : first & (0xffU >> (nr + 1));

	for (u32 i = 1; i < nr; i++) {
		if ((text[i] & 0xc0) != 0x80) {
			nr = i;
			value = L'?';
			break;
		}
		value = value << 6 | (text[i] & 0x3f);
	}
	*ret_bytes = nr;
	return (wchar_t)value;
}

static u32 put_text(struct canvas *canvas, u32 y, u32 x, u32 width, enum canvas_style style,
		    const char *text)
{
	struct canvas_cell *line = &canvas->cells[(size_t)y * canvas->width];
	u32 end = width < canvas->width - x ? x + width : canvas->width, at = x, bytes;

	/* Replace a wide character of which only one half remains. */
	if (!line[x].character)
		line[x - 1].character = L' ';
	for (; *text; text += bytes) {
		wchar_t character = decode(text, &bytes);
		int columns = wcwidth(character);

		/* The locale cannot print this character. */
		if (columns < 0) {
			character = L'?';
			columns = 1;
		}
		if (columns == 0)
			continue;
		if (at + (u32)columns > end)
			break;
		for (int i = 0; i < columns; i++)
			line[at++] =
				(struct canvas_cell){ i == 0 ? character : 0, (u8)style, false };
	}
	if (at < canvas->width && !line[at].character)
		line[at].character = L' ';
	return at - x;
}

u32 canvas_print(struct canvas *canvas, u32 y, u32 x, u32 width, enum canvas_style style,
		 const char *format, ...)
{
	CLEANUP_FREE char *text = NULL;
	va_list arguments;
	int n;

	if (y >= canvas->height || x >= canvas->width)
		return 0;
	va_start(arguments, format);
	n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n < 0) {
		text = NULL;
		return 0;
	}
	term_make_harmless(text);
	return put_text(canvas, y, x, width, style, text);
}

void canvas_fill(struct canvas *canvas, u32 y, enum canvas_style style)
{
	for (u32 x = 0; y < canvas->height && x < canvas->width; x++) {
		struct canvas_cell *cell = &canvas->cells[(size_t)y * canvas->width + x];

		if (cell->style == CANVAS_PLAIN)
			cell->style = (u8)style;
	}
}

void canvas_select(struct canvas *canvas, u32 y, u32 width)
{
	for (u32 x = 0; y < canvas->height && x < width && x < canvas->width; x++)
		canvas->cells[(size_t)y * canvas->width + x].selected = true;
}
