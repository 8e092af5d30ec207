/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Idle time by the kernels that were launched before and after it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "answers/lines_internal.h"
#include "answers/sentence.h"
#include "base/cleanup.h"
#include "core/process.h"

/* A stack of a launcher, and the line that it is in. */
struct part {
	const struct lines_stack *stack;
	const struct lines_frame *place;
};

/* A kernel can have several handles. What is not known comes first. */
static int compare_kernel(const struct lines_kernel *x, const struct lines_kernel *y)
{
	int order;

	if (x == y || !x || !y)
		return (x != NULL) - (y != NULL);
	order = x->is_graph - y->is_graph;
	if (order == 0)
		order = x->is_cut - y->is_cut;
	return order ? order : strcmp(x->name, y->name);
}

static int compare_kernels(const struct lines_stack *x, const struct lines_stack *y)
{
	int order = compare_kernel(x->after, y->after);

	return order ? order : compare_kernel(x->before, y->before);
}

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	int order = compare_kernels(x->stack, y->stack);

	return order ? order : lines_frame_compare(x->place, y->place);
}

static int compare_times(const void *a, const void *b)
{
	const struct lines_between *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return lines_frame_compare(x->most.frame, y->most.frame);
}

/* Adds the parts of one line between the same launches. */
static void add_place(struct lines_between *between, const struct lines_place *place)
{
	between->ns += place->ns;
	between->nr_samples += place->nr_samples;
	if (!between->most.frame || place->ns > between->most.ns)
		between->most = *place;
}

static void add_parts(struct lines_tree *tree, const struct part *parts, u32 nr)
{
	struct lines_place place = {};

	for (u32 i = 0; i < nr; i++) {
		const struct lines_stack *stack = parts[i].stack;

		if (!i || compare_kernels(parts[i - 1].stack, stack) != 0)
			tree->between[tree->nr_between++] =
				(struct lines_between){ stack->after, stack->before };
		place.frame = parts[i].place;
		place.ns += stack->ns;
		place.nr_samples += stack->nr_samples;
		tree->between_ns += stack->ns;
		if (i + 1 < nr && compare_parts(&parts[i], &parts[i + 1]) == 0)
			continue;
		add_place(&tree->between[tree->nr_between - 1], &place);
		place = (struct lines_place){};
	}
}

int lines_find_between(struct lines_tree *tree)
{
	const struct lines *lines = tree->lines;
	CLEANUP_FREE struct part *parts = calloc(lines->nr_stacks + 1, sizeof(*parts));
	u32 nr = 0;

	tree->between = calloc(lines->nr_stacks + 1, sizeof(*tree->between));
	if (!parts || !tree->between)
		return -ENOMEM;
	for (u32 i = 0; i < lines->nr_stacks; i++)
		if (lines->stacks[i].role != ROLE_LOADER)
			parts[nr++] = (struct part){ &lines->stacks[i],
						     lines_place_of(&lines->stacks[i]) };
	qsort(parts, nr, sizeof(*parts), compare_parts);
	add_parts(tree, parts, nr);
	qsort(tree->between, tree->nr_between, sizeof(*tree->between), compare_times);
	return 0;
}

double lines_between_points(const struct lines_tree *tree, const struct lines_between *between)
{
	double window = (double)tree->lines->window_ns, idle = (double)tree->lines->idle_ns;
	double all = (double)tree->between_ns;

	if (!tree->lines->window_ns || !tree->lines->idle_ns)
		return 0;
	return 100.0 * (double)between->ns / (all > idle ? window * all / idle : window);
}

void lines_kernel_label(const struct lines_kernel *kernel, char ret[static LINES_LABEL_LEN])
{
	struct sentence label = { .text = ret, .size = LINES_LABEL_LEN };
	char name[LINES_LABEL_LEN - 8];

	ret[0] = '\0';
	if (!kernel || kernel->is_graph) {
		sentence_add(&label, "%s", kernel ? "a CUDA or HIP graph" : "an unknown kernel");
		return;
	}
	lines_clean(name, sizeof(name), kernel->name);
	sentence_add(&label, "%s%s", name, kernel->is_cut ? "…" : "");
}
