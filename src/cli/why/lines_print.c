/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/why/lines_print.h"
#include <errno.h>
#include "base/cleanup.h"

/* Smaller parts of the tree are not shown. */
#define POINTS_MIN	   0.1
#define INDENT_MAX	   40
/* The pairs of kernels that are shown. */
#define BETWEEN_MAX	   8
#define BETWEEN_POINTS_MIN 0.5

static bool is_shown(const struct lines_tree *tree, u32 at)
{
	return at && lines_points(tree, tree->nodes[at].ns) >= POINTS_MIN;
}

/* A call is indented below its caller only if the caller has other calls too. */
static u32 indent_of(const struct lines_tree *tree, const u32 *indents, u32 at)
{
	const struct lines_node *node = &tree->nodes[at], *parent = &tree->nodes[node->parent];
	bool is_alone = parent->frame && !is_shown(tree, tree->nodes[parent->child].next) &&
			lines_points(tree, parent->self_ns) < POINTS_MIN;
	u32 indent = indents[node->parent] + !is_alone;

	return indent < INDENT_MAX ? indent : INDENT_MAX;
}

static void add_row(struct table *table, const struct lines_tree *tree,
		    const struct lines_node *node, u32 indent)
{
	char label[LINES_LABEL_LEN];
	enum style style = STYLE_PLAIN;

	lines_label(node, label);
	if (!node->frame)
		style = STYLE_TITLE;
	else if (!lines_is_known(node->frame))
		style = STYLE_DIM;
	table_cell(table, STYLE_PLAIN, "%.1f", lines_points(tree, node->ns));
	if (node->self_ns)
		table_cell(table, STYLE_PLAIN, "%.1f", lines_points(tree, node->self_ns));
	else
		table_cell(table, STYLE_DIM, "-");
	table_cell(table, STYLE_PLAIN, "%llu", node->nr_samples);
	table_cell(table, style, "%*s%s", (int)(2 * indent), "", label);
}

static int print_tree(const struct lines_tree *tree, const struct term *term)
{
	static const struct column columns[] = {
		{ "POINTS", true }, { "SELF", true }, { "SAMPLES", true }, { "WHERE" }, {},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);
	CLEANUP_FREE u32 *indents = calloc(tree->nr_nodes, sizeof(*indents));
	u32 nr_hidden = 0, at = lines_tree_next(tree, 0);
	int err;

	if (!indents)
		return -ENOMEM;
	while (at) {
		if (is_shown(tree, at)) {
			indents[at] = tree->nodes[at].parent ? indent_of(tree, indents, at) : 0;
			add_row(table, tree, &tree->nodes[at], indents[at]);
			at = lines_tree_next(tree, at);
		} else {
			nr_hidden++;
			at = lines_tree_skip(tree, at);
		}
	}
	err = table_print(table, term);
	if (nr_hidden)
		term_print(term, STYLE_DIM, "%u calls with less than %.1f points are not shown\n",
			   nr_hidden, POINTS_MIN);
	return err;
}

/* Nothing, if no kernel is known. */
static void print_between(const struct lines_tree *tree, const struct term *term)
{
	char after[LINES_LABEL_LEN], before[LINES_LABEL_LEN], place[LINES_LABEL_LEN];
	u32 nr = 0;

	for (u32 i = 0; tree->lines->nr_kernels && i < tree->nr_between && nr < BETWEEN_MAX; i++) {
		const struct lines_between *between = &tree->between[i];
		double points = lines_between_points(tree, between);

		if (points < BETWEEN_POINTS_MIN || (!between->after && !between->before))
			continue;
		if (nr++ == 0)
			term_print(term, STYLE_TITLE, "\nIdle time between kernels\n");
		lines_kernel_label(between->after, after);
		lines_kernel_label(between->before, before);
		lines_frame_label(between->most.frame, place);
		term_print(term, STYLE_PLAIN, "%8.1f  after %s, before %s: most in %s\n", points,
			   after, before, place);
	}
}

static void print_notes(const struct lines_tree *tree, const struct term *term)
{
	const struct lines *lines = tree->lines;
	u64 nr_cut = 0;

	for (u32 i = 0; i < lines->nr_stacks; i++)
		nr_cut += lines->stacks[i].is_cut ? lines->stacks[i].nr_samples : 0;
	if (lines_is_range(tree))
		term_print(term, STYLE_DIM,
			   "The GPU may have worked for %.1f points of this time: all points are "
			   "upper "
			   "bounds.\n",
			   lines_open_points(tree));
	if (nr_cut)
		term_print(term, STYLE_WARNING,
			   "stacks too deep, their outermost calls are cut: %llu samples\n",
			   nr_cut);
	if (lines->nr_unreadable)
		term_print(term, STYLE_WARNING, "stacks that cannot be read: %llu samples\n",
			   lines->nr_unreadable);
	if (lines->nr_dropped)
		term_print(term, STYLE_WARNING,
			   "dropped, because there were too many stacks: %llu samples\n",
			   lines->nr_dropped);
}

static int print_text(const struct lines_tree *tree, const struct term *term)
{
	char sentence[LINES_SENTENCE_LEN];
	int err = 0;

	lines_sentence(tree, sentence);
	term_print(term, STYLE_TITLE, "process %u: %s\n", tree->lines->pid, sentence);
	if (tree->lines->nr_stacks) {
		term_print(term, STYLE_PLAIN, "\n");
		err = print_tree(tree, term);
		print_between(tree, term);
	}
	print_notes(tree, term);
	return err;
}

int lines_print(const struct lines *lines, enum lines_format format, const struct term *term)
{
	static int (*const writers[LINES_FORMAT_NR])(const struct lines_tree *tree, FILE *out) = {
		[LINES_JSON] = lines_write_json,
		[LINES_FOLDED] = lines_write_folded,
		[LINES_SVG] = lines_write_svg,
		[LINES_PPROF] = lines_write_pprof,
	};
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;
	int err = lines_tree_new(lines, &tree);

	if (err < 0)
		return err;
	return format == LINES_TEXT ? print_text(tree, term) : writers[format](tree, term->out);
}
