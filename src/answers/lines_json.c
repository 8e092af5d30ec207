/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include "answers/lines_internal.h"
#include "base/cleanup.h"
#include "core/snapshot.h"
#include "ipc/json.h"

#define NAME_LEN       1024
#define FILE_LEN       4096
/* What a page shows: smaller parts of the tree, and further places, are left out. */
#define SUMMARY_POINTS 0.5
#define SUMMARY_PLACES 20

/* The parts of a tree that are written. */
struct part {
	double points_min;
	u32 places_max;
};

static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text,
		     size_t size)
{
	char clean[FILE_LEN];

	lines_clean(clean, size, text);
	yyjson_mut_obj_add_strcpy(doc, object, key, clean);
}

static void add_frame(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct lines_frame *frame)
{
	bool is_known = lines_is_known(frame) && frame != &lines_cut;

	yyjson_mut_obj_add_str(doc, object, "kind",
			       frame == &lines_cut
				       ? "cut"
				       : lines_kind_label(is_known ? frame->kind : LINES_UNKNOWN));
	if (!is_known)
		return;
	add_text(doc, object, "function", frame->function, NAME_LEN);
	add_text(doc, object, "file", frame->file, FILE_LEN);
	if (frame->line)
		yyjson_mut_obj_add_uint(doc, object, "line", frame->line);
}

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct lines_tree *tree,
		     u64 ns, u64 nr_samples)
{
	yyjson_mut_obj_add_real(doc, object, "points", lines_points(tree, ns));
	yyjson_mut_obj_add_uint(doc, object, "ns", ns);
	yyjson_mut_obj_add_uint(doc, object, "samples", nr_samples);
}

static void add_places(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct lines_tree *tree,
		       u32 max)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "places");

	for (u32 i = 0; i < tree->nr_places && i < max; i++) {
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);

		add_frame(doc, object, tree->places[i].frame);
		add_time(doc, object, tree, tree->places[i].ns, tree->places[i].nr_samples);
	}
}

static void add_kernel(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
		       const struct lines_kernel *kernel)
{
	yyjson_mut_val *value = yyjson_mut_obj_add_obj(doc, object, key);

	yyjson_mut_obj_add_str(doc, value, "kind",
			       !kernel		  ? "unknown"
			       : kernel->is_graph ? "graph"
						  : "kernel");
	if (!kernel || kernel->is_graph)
		return;
	add_text(doc, value, "name", kernel->name, NAME_LEN);
	yyjson_mut_obj_add_bool(doc, value, "cut", kernel->is_cut);
}

/* Launches around idle time, with the line that has most of this time. */
static void add_between(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct lines_tree *tree,
			u32 max)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "between");

	for (u32 i = 0; i < tree->nr_between && i < max; i++) {
		const struct lines_between *between = &tree->between[i];
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list), *most;

		add_kernel(doc, object, "after", between->after);
		add_kernel(doc, object, "before", between->before);
		yyjson_mut_obj_add_real(doc, object, "points", lines_between_points(tree, between));
		yyjson_mut_obj_add_uint(doc, object, "ns", between->ns);
		yyjson_mut_obj_add_uint(doc, object, "samples", between->nr_samples);
		most = yyjson_mut_obj_add_obj(doc, object, "most_in");
		add_frame(doc, most, between->most.frame);
		yyjson_mut_obj_add_uint(doc, most, "ns", between->most.ns);
	}
}

/* `lists` has a member for each node: the array of its children. */
static void add_nodes(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct lines_tree *tree,
		      double points_min, yyjson_mut_val **lists)
{
	u32 at = lines_tree_next(tree, 0);

	lists[0] = yyjson_mut_obj_add_arr(doc, root, "tree");
	while (at) {
		const struct lines_node *node = &tree->nodes[at];
		yyjson_mut_val *object;

		if (lines_points(tree, node->ns) < points_min) {
			at = lines_tree_skip(tree, at);
			continue;
		}
		object = yyjson_mut_arr_add_obj(doc, lists[node->parent]);
		if (node->frame)
			add_frame(doc, object, node->frame);
		else
			yyjson_mut_obj_add_str(doc, object, "cause", idle_cause_label(node->cause));
		add_time(doc, object, tree, node->ns, node->nr_samples);
		lists[at] = yyjson_mut_obj_add_arr(doc, object, "children");
		at = lines_tree_next(tree, at);
	}
}

static int write_part(const struct lines_tree *tree, const struct part *part, FILE *out)
{
	CLEANUP_FREE yyjson_mut_val **lists = calloc(tree->nr_nodes, sizeof(*lists));
	CLEANUP(yyjson_mut_doc_free_cleanup) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	const struct lines *lines = tree->lines;
	char sentence[LINES_SENTENCE_LEN];
	CLEANUP_FREE char *text = NULL;

	if (!lists || !root)
		return -ENOMEM;
	lines_sentence(tree, sentence);
	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "pid", lines->pid);
	yyjson_mut_obj_add_strcpy(doc, root, "answer", sentence);
	yyjson_mut_obj_add_uint(doc, root, "window_ns", lines->window_ns);
	yyjson_mut_obj_add_uint(doc, root, "idle_ns", lines->idle_ns);
	yyjson_mut_obj_add_uint(doc, root, "open_ns", lines->open_ns);
	yyjson_mut_obj_add_real(doc, root, "idle_points", lines_idle_points(tree));
	yyjson_mut_obj_add_real(doc, root, "open_points", lines_open_points(tree));
	yyjson_mut_obj_add_real(doc, root, "missed_points", lines_missed_points(tree));
	yyjson_mut_obj_add_uint(doc, root, "samples", lines->nr_samples);
	yyjson_mut_obj_add_uint(doc, root, "dropped", lines->nr_dropped);
	yyjson_mut_obj_add_uint(doc, root, "unreadable", lines->nr_unreadable);
	add_places(doc, root, tree, part->places_max);
	add_between(doc, root, tree, part->places_max);
	add_nodes(doc, root, tree, part->points_min, lists);
	text = yyjson_mut_write(doc, 0, NULL);
	if (!text)
		return -ENOMEM;
	return fprintf(out, "%s\n", text) > 0 ? 0 : -EIO;
}

int lines_write_json(const struct lines_tree *tree, FILE *out)
{
	return write_part(tree, &(struct part){ 0, UINT32_MAX }, out);
}

int lines_write_summary(const struct lines_tree *tree, FILE *out)
{
	return write_part(tree, &(struct part){ SUMMARY_POINTS, SUMMARY_PLACES }, out);
}

void lines_add_stack(const struct lines_stack *stack, yyjson_mut_doc *doc, yyjson_mut_val *object)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, "stack");

	for (u32 i = 0; i < stack->nr_frames; i++) {
		const struct lines_frame *frame = &stack->frames[i];
		yyjson_mut_val *row = yyjson_mut_arr_add_obj(doc, list);

		yyjson_mut_obj_add_str(doc, row, "function", frame->function);
		yyjson_mut_obj_add_str(doc, row, "file", frame->file);
		yyjson_mut_obj_add_uint(doc, row, "line", frame->line);
		yyjson_mut_obj_add_str(doc, row, "kind", lines_kind_label(frame->kind));
	}
	yyjson_mut_obj_add_bool(doc, object, "stack_is_cut", stack->is_cut);
}
