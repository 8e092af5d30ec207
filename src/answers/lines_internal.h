/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The frames of a stack as the outputs show them: a stack that is cut begins with [cut], and a
 * stack without frames has one that is unknown.
 */
#include "answers/lines.h"

extern const struct lines_frame lines_cut;

u32 lines_stack_depth(const struct lines_stack *stack);
const struct lines_frame *lines_stack_frame(const struct lines_stack *stack, u32 i);
/* The innermost line of Python; in code without Python, the innermost function that is known. */
const struct lines_frame *lines_place_of(const struct lines_stack *stack);
/* Fills in the members of the tree about time between launches. */
int lines_find_between(struct lines_tree *tree);
/* As strcmp(). Frames that are not known are equal. */
int lines_frame_compare(const struct lines_frame *a, const struct lines_frame *b);
