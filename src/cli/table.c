/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "cli/term_internal.h"

struct cell {
	char *text;
	enum style style;
};

struct table {
	const struct column *columns;
	size_t nr_columns;
	struct cell *cells; /* the titles are the first row */
	size_t nr_cells;
	size_t room;
	bool incomplete;
};

#define GAP 2

struct table *table_free(struct table *table)
{
	if (!table)
		return NULL;
	for (size_t i = 0; i < table->nr_cells; i++)
		free(table->cells[i].text);
	free(table->cells);
	free(table);
	return NULL;
}

/* Takes ownership of the text. */
static int add_cell(struct table *table, enum style style, char *text)
{
	if (table->nr_cells == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		struct cell *larger = reallocarray(table->cells, room, sizeof(*larger));

		if (!larger) {
			free(text);
			return -ENOMEM;
		}
		table->cells = larger;
		table->room = room;
	}
	term_make_harmless(text);
	table->cells[table->nr_cells++] = (struct cell){ text, style };
	return 0;
}

void table_cell(struct table *table, enum style style, const char *format, ...)
{
	va_list arguments;
	char *text;
	int n;

	if (!table || table->incomplete)
		return;
	va_start(arguments, format);
	n = vasprintf(&text, format, arguments);
	va_end(arguments);
	table->incomplete = n < 0 || add_cell(table, style, text) < 0;
}

struct table *table_new(const struct column *columns)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->columns = columns;
	while (columns[table->nr_columns].title)
		table_cell(table, STYLE_DIM, "%s", columns[table->nr_columns++].title);
	return table;
}

static u32 column_width(const struct table *table, size_t column)
{
	u32 widest = 0;

	for (size_t i = column; i < table->nr_cells; i += table->nr_columns) {
		u32 width = term_columns(table->cells[i].text);

		widest = width > widest ? width : widest;
	}
	return widest;
}

/* The bytes of the text that fit into `columns`. */
static size_t cut(const char *text, u32 columns)
{
	size_t length = 0;

	while (text[length] && (columns > 0 || (text[length] & 0xc0) == 0x80))
		columns -= (text[length++] & 0xc0) != 0x80;
	return length;
}

static void pad(FILE *out, u32 columns)
{
	fprintf(out, "%*s", (int)columns, "");
}

static void print_row(const struct table *table, const struct term *term, size_t first,
		      const u32 *widths)
{
	u32 left = term->width ? term->width : ~0U;

	for (size_t i = 0; i < table->nr_columns && first + i < table->nr_cells; i++) {
		const struct cell *cell = &table->cells[first + i];
		bool last = i + 1 == table->nr_columns;
		u32 width = widths[i] < left ? widths[i] : left;
		size_t length = cut(cell->text, width);
		u32 used = term_columns(cell->text);
		u32 rest = used < width ? width - used : 0;

		if (table->columns[i].right)
			pad(term->out, rest);
		term_write(term, cell->style, cell->text, length);
		left -= width;
		if (last || left <= GAP)
			break;
		pad(term->out, (table->columns[i].right ? 0 : rest) + GAP);
		left -= GAP;
	}
	fputc('\n', term->out);
}

int table_print(const struct table *table, const struct term *term)
{
	CLEANUP_FREE u32 *widths = NULL;

	if (!table || table->incomplete)
		return -ENOMEM;
	widths = calloc(table->nr_columns, sizeof(*widths));
	if (!widths)
		return -ENOMEM;
	for (size_t i = 0; i < table->nr_columns; i++)
		widths[i] = column_width(table, i);
	for (size_t first = 0; first < table->nr_cells; first += table->nr_columns)
		print_row(table, term, first, widths);
	return 0;
}
