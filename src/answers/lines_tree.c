/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Merges stacks into a tree. The stacks are sorted first: then each one shares its outermost frames
 * with the one before it, and no search is needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "answers/lines_internal.h"
#include "base/cleanup.h"

const struct lines_frame lines_cut = { .function = "[cut]", .file = "", .kind = LINES_NATIVE };
static const struct lines_frame unknown = { .function = "", .file = "", .kind = LINES_UNKNOWN };

bool lines_has_frames(const struct lines_stack *stack)
{
	return stack->nr_frames && (stack->nr_frames > 1 || lines_is_known(stack->frames));
}

bool lines_is_known(const struct lines_frame *frame)
{
	return frame->kind < LINES_UNKNOWN && *frame->function;
}

int lines_frame_compare(const struct lines_frame *a, const struct lines_frame *b)
{
	bool is_known = lines_is_known(a);
	int order;

	if (a == b || is_known != lines_is_known(b))
		return a == b ? 0 : is_known - lines_is_known(b);
	if (!is_known)
		return 0;
	/* Most frames come from the same entry of a table, and then have the same pointers. */
	order = a->function == b->function ? 0 : strcmp(a->function, b->function);
	if (order == 0 && a->file != b->file)
		order = strcmp(a->file, b->file);
	if (order == 0)
		order = (a->line > b->line) - (a->line < b->line);
	return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

u32 lines_stack_depth(const struct lines_stack *stack)
{
	return stack->is_cut + (stack->nr_frames ? stack->nr_frames : 1);
}

const struct lines_frame *lines_stack_frame(const struct lines_stack *stack, u32 i)
{
	if (stack->is_cut && i == 0)
		return &lines_cut;
	return stack->nr_frames ? &stack->frames[i - stack->is_cut] : &unknown;
}

/* The number of frames that two stacks of one cause share, from the outermost one on. */
static u32 common_depth(const struct lines_stack *a, const struct lines_stack *b)
{
	u32 depth = lines_stack_depth(a), least = lines_stack_depth(b), i = 0;

	if (a->cause != b->cause)
		return 0;
	if (depth < least)
		least = depth;
	while (i < least &&
	       lines_frame_compare(lines_stack_frame(a, i), lines_stack_frame(b, i)) == 0)
		i++;
	return i;
}

static int compare_stacks(const void *a, const void *b)
{
	const struct lines_stack *x = *(const struct lines_stack *const *)a;
	const struct lines_stack *y = *(const struct lines_stack *const *)b;
	u32 common, depth_x = lines_stack_depth(x), depth_y = lines_stack_depth(y);

	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	common = common_depth(x, y);
	if (common < depth_x && common < depth_y)
		return lines_frame_compare(lines_stack_frame(x, common),
					   lines_stack_frame(y, common));
	return (depth_x > depth_y) - (depth_x < depth_y);
}

/* Adds a stack below the path of the one before it. `path` has the node of each depth. */
static void add_stack(struct lines_tree *tree, const struct lines_stack *stack,
		      const struct lines_stack *before, u32 *path)
{
	u32 depth = lines_stack_depth(stack), first;

	/* Depth 0 is all time, depth 1 the cause. */
	first = before && before->cause == stack->cause ? common_depth(before, stack) + 2 : 1;
	for (u32 i = first; i < depth + 2; i++) {
		path[i] = tree->nr_nodes++;
		tree->nodes[path[i]] = (struct lines_node){
			.frame = i == 1 ? NULL : lines_stack_frame(stack, i - 2),
			.cause = stack->cause,
			.depth = i,
			.parent = path[i - 1],
		};
	}
	for (u32 i = 0; i < depth + 2; i++) {
		tree->nodes[path[i]].ns += stack->ns;
		tree->nodes[path[i]].nr_samples += stack->nr_samples;
	}
	tree->nodes[path[depth + 1]].self_ns += stack->ns;
}

/* Children follow each other by time. Those with equal time keep their order, which is by name. */
static int compare_nodes(const void *a, const void *b, void *nodes)
{
	u32 i = *(const u32 *)a, k = *(const u32 *)b;
	const struct lines_node *x = &((struct lines_node *)nodes)[i];
	const struct lines_node *y = &((struct lines_node *)nodes)[k];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (i > k) - (i < k);
}

static int link_nodes(struct lines_tree *tree)
{
	CLEANUP_FREE u32 *order = calloc(tree->nr_nodes, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (u32 i = 0; i < tree->nr_nodes; i++)
		order[i] = i;
	/* Node 0 is its own parent and stays in front. */
	qsort_r(order + 1, tree->nr_nodes - 1, sizeof(*order), compare_nodes, tree->nodes);
	for (u32 i = tree->nr_nodes - 1; i > 0; i--) {
		struct lines_node *node = &tree->nodes[order[i]];
		struct lines_node *parent = &tree->nodes[node->parent];

		node->next = parent->child;
		parent->child = order[i];
	}
	return 0;
}

const struct lines_frame *lines_place_of(const struct lines_stack *stack)
{
	const struct lines_frame *native = &unknown;

	for (u32 i = stack->nr_frames; i-- > 0;) {
		const struct lines_frame *frame = &stack->frames[i];

		if (!lines_is_known(frame))
			continue;
		if (frame->kind == LINES_PYTHON)
			return frame;
		if (native == &unknown)
			native = frame;
	}
	return native;
}

static int compare_place_names(const void *a, const void *b)
{
	const struct lines_place *x = a, *y = b;

	return lines_frame_compare(x->frame, y->frame);
}

static int compare_place_times(const void *a, const void *b)
{
	const struct lines_place *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return lines_frame_compare(x->frame, y->frame);
}

static void find_places(struct lines_tree *tree)
{
	const struct lines *lines = tree->lines;
	struct lines_place *places = tree->places;
	u32 nr = 0;

	for (u32 i = 0; i < lines->nr_stacks; i++)
		places[i] =
			(struct lines_place){ lines_place_of(&lines->stacks[i]),
					      lines->stacks[i].ns, lines->stacks[i].nr_samples };
	qsort(places, lines->nr_stacks, sizeof(*places), compare_place_names);
	for (u32 i = 0; i < lines->nr_stacks; i++) {
		if (nr && compare_place_names(&places[nr - 1], &places[i]) == 0) {
			places[nr - 1].ns += places[i].ns;
			places[nr - 1].nr_samples += places[i].nr_samples;
		} else {
			places[nr++] = places[i];
		}
	}
	qsort(places, nr, sizeof(*places), compare_place_times);
	tree->nr_places = nr;
}

struct lines_tree *lines_tree_free(struct lines_tree *tree)
{
	if (tree) {
		free(tree->nodes);
		free(tree->places);
		free(tree->between);
	}
	free(tree);
	return NULL;
}

static u32 deepest(const struct lines *lines, size_t *ret_nr_nodes)
{
	u32 depth = 0;

	*ret_nr_nodes = 1;
	for (u32 i = 0; i < lines->nr_stacks; i++) {
		u32 its = lines_stack_depth(&lines->stacks[i]);

		*ret_nr_nodes += 1 + its;
		depth = its > depth ? its : depth;
	}
	return depth;
}

int lines_tree_new(const struct lines *lines, struct lines_tree **ret)
{
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = calloc(1, sizeof(*tree));
	CLEANUP_FREE const struct lines_stack **sorted =
		calloc(lines->nr_stacks + 1, sizeof(*sorted));
	size_t nr_nodes;
	CLEANUP_FREE u32 *path = calloc(deepest(lines, &nr_nodes) + 2, sizeof(*path));
	int err;

	if (!tree || !sorted || !path)
		return -ENOMEM;
	tree->lines = lines;
	tree->nodes = calloc(nr_nodes, sizeof(*tree->nodes));
	tree->places = calloc(lines->nr_stacks + 1, sizeof(*tree->places));
	if (!tree->nodes || !tree->places)
		return -ENOMEM;
	tree->nr_nodes = 1;
	for (u32 i = 0; i < lines->nr_stacks; i++)
		sorted[i] = &lines->stacks[i];
	qsort(sorted, lines->nr_stacks, sizeof(*sorted), compare_stacks);
	for (u32 i = 0; i < lines->nr_stacks; i++)
		add_stack(tree, sorted[i], i ? sorted[i - 1] : NULL, path);
	err = link_nodes(tree);
	if (err < 0)
		return err;
	find_places(tree);
	err = lines_find_between(tree);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(tree);
	return 0;
}

u32 lines_tree_skip(const struct lines_tree *tree, u32 at)
{
	while (at && !tree->nodes[at].next)
		at = tree->nodes[at].parent;
	return tree->nodes[at].next;
}

u32 lines_tree_path(const struct lines_tree *tree, u32 at, u32 ret[static LINES_PATH_MAX])
{
	u32 nr = 0;

	for (; at && nr < LINES_PATH_MAX; at = tree->nodes[at].parent)
		ret[nr++] = at;
	return nr;
}

u32 lines_tree_next(const struct lines_tree *tree, u32 at)
{
	return tree->nodes[at].child ? tree->nodes[at].child : lines_tree_skip(tree, at);
}
