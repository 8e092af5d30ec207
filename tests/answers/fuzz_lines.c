/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Feeds random bytes to the reader of stacks. Whatever it accepts must add up in the tree, and
 * every file that is written from it must have its form, whatever the names are.
 */
#include <string.h>

#include "answers/lines.h"
#include "fuzz/fuzz.h"

typedef int (*writer)(const struct lines_tree *tree, FILE *out);

static char *write_text(const struct lines_tree *tree, writer write, size_t *ret_length)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_length);

	REQUIRE(out && write(tree, out) == 0);
	REQUIRE(fclose(out) == 0);
	return text;
}

/* No name can end a text, begin an element or contain a control character. */
static void check_svg(const struct lines_tree *tree)
{
	size_t length;
	char *text = write_text(tree, lines_write_svg, &length);

	for (size_t i = 0; i < length; i++)
		REQUIRE((unsigned char)text[i] >= 0x20 || text[i] == '\n');
	REQUIRE(!strstr(text, "<script") && strcmp(text + length - 7, "</svg>\n") == 0);
	free(text);
}

/* Each line ends with its time. All times add up. */
static void check_folded(const struct lines_tree *tree)
{
	size_t length;
	char *text = write_text(tree, lines_write_folded, &length), *line = text, *end;
	u64 sum = 0;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		REQUIRE(strrchr(line, ' '));
		sum += strtoull(strrchr(line, ' ') + 1, NULL, 10);
	}
	REQUIRE(sum == tree->nodes->ns);
	free(text);
}

static void check_json(const struct lines_tree *tree)
{
	size_t length;
	char *text = write_text(tree, lines_write_json, &length);
	yyjson_doc *doc = yyjson_read(text, length, 0);

	REQUIRE(yyjson_is_obj(yyjson_doc_get_root(doc)));
	yyjson_doc_free(doc);
	free(text);
}

static void check_tree(const struct lines *lines)
{
	struct lines_tree *tree = NULL;
	u64 stacks_ns = 0, places_ns = 0, between_ns = 0;
	size_t length;

	REQUIRE(lines_tree_new(lines, &tree) == 0);
	for (u32 i = 0; i < lines->nr_stacks; i++)
		stacks_ns += lines->stacks[i].ns;
	for (u32 i = 0; i < tree->nr_places; i++)
		places_ns += tree->places[i].ns;
	for (u32 i = 0; i < tree->nr_between; i++)
		between_ns += tree->between[i].ns;
	REQUIRE(tree->nodes->ns == stacks_ns && places_ns == stacks_ns);
	REQUIRE(tree->between_ns == between_ns && between_ns <= stacks_ns);
	check_svg(tree);
	check_folded(tree);
	check_json(tree);
	free(write_text(tree, lines_write_pprof, &length));
	lines_tree_free(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	yyjson_doc *doc = yyjson_read((const char *)data, size, 0);
	struct lines *lines = NULL;

	if (lines_read(yyjson_doc_get_root(doc), &lines) == 0) {
		check_tree(lines);
		lines_free(lines);
	}
	yyjson_doc_free(doc);
	return 0;
}
