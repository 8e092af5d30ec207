/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A flame graph: all time at the top, each call below its caller, as wide as its time. Positions
 * are percentages, so the picture fits every window. Each box is an inner <svg>, which cuts its
 * text off at its border.
 */
#include <errno.h>
#include <stdlib.h>
#include "answers/lines_internal.h"
#include "base/cleanup.h"
#include "base/units.h"

#define ROW_HEIGHT 18
#define TOP_HEIGHT 48
/* Percent of the width. Narrower boxes are left out, and those without room have no text. */
#define BOX_MIN	   0.02
#define TEXT_MIN   1.5

static const char style[] =
	":root{color-scheme:light dark}svg{font:12px "
	"monospace}text{fill:#111}.page{fill:#fff}rect{stroke:#fff;stroke-width:.5}"
	".python{fill:#f3b562}.native,.call{fill:#8fb8de}.unknown{fill:#c9c9c9}"
	".cause{fill:#b5d99c}svg:hover>.python,svg:hover>.native,svg:hover>.call,"
	"svg:hover>.unknown,svg:hover>.cause{opacity:.75}"
	"@media(prefers-color-scheme:dark){.page{fill:#16181c}text.head{fill:#e8e8e8}"
	"rect{stroke:#16181c}.python{fill:#d9953b}.native,.call{fill:#6a9bc7}.unknown{fill:#9a9a9a}"
	".cause{fill:#86b56b}}";

static void put_escaped(const char *text, FILE *out)
{
	for (; *text; text++) {
		switch (*text) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		case '\'': fputs("&#39;", out); break;
		default: fputc(*text, out); break;
		}
	}
}

static const char *class_of(const struct lines_node *node)
{
	if (!node->frame)
		return "cause";
	if (node->frame == &lines_cut || !lines_is_known(node->frame))
		return "unknown";
	return lines_kind_label(node->frame->kind);
}

static void put_box(const struct lines_tree *tree, const struct lines_node *node, double x,
		    double width, FILE *out)
{
	char label[LINES_LABEL_LEN];

	lines_label(node, label);
	fprintf(out, "<svg x=\"%.3f%%\" y=\"%u\" width=\"%.3f%%\" height=\"%u\"><title>", x,
		TOP_HEIGHT + node->depth * ROW_HEIGHT, width, ROW_HEIGHT - 1);
	put_escaped(label, out);
	fprintf(out,
		": %.1f points, %s, %llu samples</title><rect class=\"%s\" width=\"100%%\" "
		"height=\"100%%\"/>",
		lines_points(tree, node->ns), unit_ns(node->ns).text, node->nr_samples,
		class_of(node));
	if (width >= TEXT_MIN) {
		fputs("<text x=\"3\" y=\"13\">", out);
		put_escaped(label, out);
		fputs("</text>", out);
	}
	fputs("</svg>\n", out);
}

/* `left` has the position of the next child of each node. Returns how many boxes were left out. */
static u32 put_boxes(const struct lines_tree *tree, double *left, FILE *out)
{
	u32 nr_left_out = 0, at = 0;

	if (!tree->nodes->ns)
		return 0;
	do {
		const struct lines_node *node = &tree->nodes[at];
		double width = 100.0 * (double)node->ns / (double)tree->nodes->ns;
		double x = at ? left[node->parent] : 0;

		left[node->parent] = x + width;
		left[at] = x;
		if (width >= BOX_MIN) {
			put_box(tree, node, x, width, out);
			at = lines_tree_next(tree, at);
		} else {
			nr_left_out++;
			at = lines_tree_skip(tree, at);
		}
	} while (at);
	return nr_left_out;
}

static u32 height(const struct lines_tree *tree)
{
	u32 depth = 0;

	for (u32 i = 0; i < tree->nr_nodes; i++)
		depth = tree->nodes[i].depth > depth ? tree->nodes[i].depth : depth;
	return TOP_HEIGHT + (depth + 1) * ROW_HEIGHT + 4;
}

int lines_write_svg(const struct lines_tree *tree, FILE *out)
{
	CLEANUP_FREE double *left = calloc(tree->nr_nodes, sizeof(*left));
	char sentence[LINES_SENTENCE_LEN];
	u32 nr_left_out;

	if (!left)
		return -ENOMEM;
	lines_sentence(tree, sentence);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" height=\"%u\" "
		"role=\"img\"><title>Idle time of process %u by line</title><style>%s</style>"
		"<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n"
		"<text class=\"head\" x=\"3\" y=\"16\">",
		height(tree), tree->lines->pid, style);
	put_escaped(sentence, out);
	fprintf(out,
		"</text>\n<text class=\"head\" x=\"3\" y=\"36\">process %u, %s, %llu samples, %llu "
		"dropped, %llu unreadable</text>\n",
		tree->lines->pid, unit_ns(tree->lines->window_ns).text, tree->lines->nr_samples,
		tree->lines->nr_dropped, tree->lines->nr_unreadable);
	nr_left_out = put_boxes(tree, left, out);
	if (nr_left_out)
		fprintf(out, "<desc>%u boxes are too narrow to be drawn.</desc>\n", nr_left_out);
	fputs("</svg>\n", out);
	return ferror(out) ? -EIO : 0;
}
