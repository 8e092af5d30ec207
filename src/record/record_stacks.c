/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_stacks.h"
#include <errno.h>
#include <stdlib.h>
#include "answers/lines.h"
#include "base/cleanup.h"
#include "ipc/json.h"

_Static_assert(LINES_PATH_MAX <= PERFETTO_FRAMES_MAX, "every stack fits");

/* The names of the frames of one stack. */
struct names {
	char function[LINES_PATH_MAX][LINES_LABEL_LEN];
	char file[LINES_PATH_MAX][LINES_LABEL_LEN];
};

static struct perfetto_frame name_frame(const struct lines_node *node, char *function, char *file)
{
	const struct lines_frame *frame = node->frame;
	struct perfetto_frame named = { .function = function };

	if (!frame || !lines_is_known(frame) || frame->kind == LINES_CALL) {
		lines_label(node, function);
		return named;
	}
	lines_clean(function, LINES_LABEL_LEN, frame->function);
	lines_clean(file, LINES_LABEL_LEN, frame->file);
	named.file = *file ? file : NULL;
	named.line = frame->line;
	return named;
}

static void put_stack(struct perfetto *perfetto, u64 time_ns, const struct lines_tree *tree, u32 at,
		      struct names *names)
{
	u32 path[LINES_PATH_MAX], nr = lines_tree_path(tree, at, path);
	struct perfetto_frame frames[LINES_PATH_MAX];

	for (u32 i = 0; i < nr; i++)
		frames[i] = name_frame(&tree->nodes[path[nr - 1 - i]], names->function[i],
				       names->file[i]);
	perfetto_stack(perfetto, time_ns, tree->lines->pid, frames, nr, tree->nodes[at].self_ns);
}

static int put_lines(struct perfetto *perfetto, u64 time_ns, const struct lines *lines)
{
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;
	CLEANUP_FREE struct names *names = malloc(sizeof(*names));
	int err = lines_tree_new(lines, &tree);

	if (err < 0 || !names)
		return -ENOMEM;
	for (u32 at = lines_tree_next(tree, 0); at; at = lines_tree_next(tree, at))
		if (tree->nodes[at].self_ns)
			put_stack(perfetto, time_ns, tree, at, names);
	return 0;
}

int record_put_stacks(struct perfetto *perfetto, const struct record_frame *frame)
{
	CLEANUP(yyjson_doc_free_cleanup)
	yyjson_doc *doc = yyjson_read(frame->text, frame->length, 0);
	CLEANUP(lines_free_cleanup) struct lines *lines = NULL;
	int err = lines_read(yyjson_obj_get(yyjson_doc_get_root(doc), "lines"), &lines);

	if (err < 0)
		return err == -ENOMEM ? err : -EBADMSG;
	return put_lines(perfetto, frame->time_ns, lines);
}
