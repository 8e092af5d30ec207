/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include "answers/lines.h"

/* A semicolon separates names. */
static void put_name(const struct lines_node *node, FILE *out)
{
	char label[LINES_LABEL_LEN];

	lines_label(node, label);
	for (char *at = label; (at = strchr(at, ';'));)
		*at = ':';
	fputs(label, out);
}

/* From the cause to this node. */
static void put_path(const struct lines_tree *tree, u32 at, FILE *out)
{
	u32 path[LINES_PATH_MAX], nr = lines_tree_path(tree, at, path);

	while (nr-- > 0) {
		put_name(&tree->nodes[path[nr]], out);
		fputc(nr ? ';' : ' ', out);
	}
}

int lines_write_folded(const struct lines_tree *tree, FILE *out)
{
	for (u32 at = lines_tree_next(tree, 0); at; at = lines_tree_next(tree, at)) {
		if (!tree->nodes[at].self_ns)
			continue;
		put_path(tree, at, out);
		fprintf(out, "%llu\n", tree->nodes[at].self_ns);
	}
	return ferror(out) ? -EIO : 0;
}
