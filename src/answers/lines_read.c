/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the reply of zerneld. Every index and number is checked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "answers/lines.h"
#include "answers/numbers.h"
#include "base/cleanup.h"
#include "core/process.h"
#include "core/snapshot.h"

/* Adds a number that an older zerneld does not send. */
static int add_optional(yyjson_val *object, const char *key, u64 *sum, u64 *ret)
{
	if (!yyjson_obj_get(object, key))
		return 0;
	if (numbers_read(object, (struct number[]){ { key, LINES_NS_MAX, ret }, {} }) < 0)
		return -EPROTO;
	*sum += *ret;
	return 0;
}

/* Returns the index of the label that equals the text, or `nr`. */
static u32 find_label(yyjson_val *text, const char *(*label)(u32), u32 nr)
{
	u32 i = 0;

	while (i < nr && !yyjson_equals_str(text, label(i)))
		i++;
	return i;
}

static int read_frame(yyjson_val *value, struct lines_frame *ret)
{
	u64 line = 0;
	int err = numbers_read(value, (struct number[]){ { "line", UINT32_MAX, &line }, {} });

	*ret = (struct lines_frame){
		.function = yyjson_get_str(yyjson_obj_get(value, "function")),
		.file = yyjson_get_str(yyjson_obj_get(value, "file")),
		.line = (u32)line,
		.kind = find_label(yyjson_obj_get(value, "kind"), lines_kind_label, LINES_UNKNOWN),
	};
	return err == 0 && ret->function && ret->file ? 0 : -EPROTO;
}

/* An item of an array is found by going through all before it, so the table is read first. */
static int read_table(yyjson_val *table, struct lines_frame **ret)
{
	CLEANUP_FREE struct lines_frame *frames =
		calloc(yyjson_arr_size(table) + 1, sizeof(*frames));
	yyjson_val *each;
	size_t i, nr;

	if (!frames)
		return -ENOMEM;
	yyjson_arr_foreach(table, i, nr, each) {
		int err = read_frame(each, &frames[i]);

		if (err < 0)
			return err;
	}
	*ret = TAKE_PTR(frames);
	return 0;
}

static int read_kernels(yyjson_val *values, struct lines_kernel *ret)
{
	yyjson_val *each;
	size_t i, nr;

	yyjson_arr_foreach(values, i, nr, each) {
		ret[i].name = yyjson_get_str(yyjson_obj_get(each, "name"));
		ret[i].is_cut = yyjson_get_bool(yyjson_obj_get(each, "cut"));
		ret[i].is_graph = yyjson_equals_str(yyjson_obj_get(each, "kind"), "graph");
		if (!ret[i].name)
			return -EPROTO;
	}
	return 0;
}

/* An older zerneld sends none. */
static int find_kernel(yyjson_val *stack, const char *key, const struct lines *lines,
		       const struct lines_kernel **ret)
{
	yyjson_val *value = yyjson_obj_get(stack, key);

	if (!value)
		return 0;
	if (!yyjson_is_uint(value) || yyjson_get_uint(value) >= lines->nr_kernels)
		return -EPROTO;
	*ret = &lines->kernels[yyjson_get_uint(value)];
	return 0;
}

static int read_stack(yyjson_val *value, const struct lines *lines, struct lines_stack *ret)
{
	yyjson_val *cut = yyjson_obj_get(value, "cut");
	u64 tid = 0, open_ns = 0;
	int err = numbers_read(value,
			       (struct number[]){ { "ns", LINES_NS_MAX, &ret->ns },
						  { "samples", LINES_NS_MAX, &ret->nr_samples },
						  { "tid", UINT32_MAX, &tid },
						  {} });

	if (err == 0)
		err = add_optional(value, "open_ns", &ret->ns, &open_ns);
	if (err == 0)
		err = find_kernel(value, "after", lines, &ret->after);
	if (err == 0)
		err = find_kernel(value, "before", lines, &ret->before);
	if (err < 0 || !yyjson_is_bool(cut))
		return -EPROTO;
	ret->tid = (u32)tid;
	ret->is_cut = yyjson_get_bool(cut);
	ret->cause = find_label(yyjson_obj_get(value, "cause"), idle_cause_label, IDLE_CAUSE_NR);
	ret->role = find_label(yyjson_obj_get(value, "role"), role_label, ROLE_NR);
	return 0;
}

/* The number of frames of all stacks. */
static int count_frames(yyjson_val *stacks, size_t *ret)
{
	yyjson_val *each;
	size_t i, nr;

	*ret = 0;
	yyjson_arr_foreach(stacks, i, nr, each) {
		yyjson_val *frames = yyjson_obj_get(each, "frames");

		if (!yyjson_is_arr(frames))
			return -EPROTO;
		*ret += yyjson_arr_size(frames);
		if (yyjson_arr_size(frames) > LINES_DEPTH_MAX || *ret > LINES_FRAMES_MAX)
			return -E2BIG;
	}
	return 0;
}

/* Copies the frames of a stack from the table. */
static int take_frames(yyjson_val *indexes, const struct lines_frame *table, size_t table_size,
		       struct lines_frame *frames)
{
	yyjson_val *each;
	size_t i, nr;

	yyjson_arr_foreach(indexes, i, nr, each) {
		if (!yyjson_is_uint(each) || yyjson_get_uint(each) >= table_size)
			return -EPROTO;
		frames[i] = table[yyjson_get_uint(each)];
	}
	return 0;
}

static int read_head(yyjson_val *value, struct lines *ret)
{
	u64 pid = 0;
	int err = numbers_read(value, (struct number[]){
					      { "pid", INT32_MAX, &pid },
					      { "start_ns", UINT64_MAX, &ret->start_ns },
					      { "window_ns", LINES_NS_MAX, &ret->window_ns },
					      { "idle_ns", LINES_NS_MAX, &ret->idle_ns },
					      { "samples", UINT64_MAX, &ret->nr_samples },
					      { "dropped", UINT64_MAX, &ret->nr_dropped },
					      { "unreadable", UINT64_MAX, &ret->nr_unreadable },
					      {},
				      });

	ret->pid = (u32)pid;
	return err < 0 ? err : add_optional(value, "open_ns", &ret->idle_ns, &ret->open_ns);
}

int lines_read(yyjson_val *value, struct lines **ret)
{
	yyjson_val *stacks = yyjson_obj_get(value, "stacks"), *each;
	yyjson_val *frames = yyjson_obj_get(value, "frames");
	yyjson_val *kernels = yyjson_obj_get(value, "kernels");
	CLEANUP_FREE struct lines_frame *table = NULL;
	CLEANUP(lines_free_cleanup) struct lines *lines = NULL;
	struct lines_stack *stack;
	struct lines_frame *next;
	size_t i, nr, nr_frames;
	int err;

	if (!yyjson_is_arr(stacks) || !yyjson_is_arr(frames))
		return -EPROTO;
	if (yyjson_arr_size(stacks) > LINES_STACKS_MAX ||
	    yyjson_arr_size(kernels) > LINES_KERNELS_MAX)
		return -E2BIG;
	err = count_frames(stacks, &nr_frames);
	if (err == 0)
		err = read_table(frames, &table);
	if (err < 0)
		return err;
	/* One piece of memory: the answer, its stacks, their frames, its kernels. */
	lines = calloc(1, sizeof(*lines) + yyjson_arr_size(stacks) * sizeof(*stack) +
				  nr_frames * sizeof(*next) +
				  yyjson_arr_size(kernels) * sizeof(*lines->kernels));
	if (!lines)
		return -ENOMEM;
	stack = (struct lines_stack *)(lines + 1);
	next = (struct lines_frame *)(stack + yyjson_arr_size(stacks));
	lines->stacks = stack;
	lines->kernels = (struct lines_kernel *)(next + nr_frames);
	lines->nr_kernels = (u32)yyjson_arr_size(kernels);
	err = read_head(value, lines);
	if (err == 0)
		err = read_kernels(kernels, (struct lines_kernel *)(next + nr_frames));
	yyjson_arr_foreach(stacks, i, nr, each) {
		yyjson_val *indexes = yyjson_obj_get(each, "frames");

		if (err == 0)
			err = read_stack(each, lines, stack);
		if (err == 0)
			err = take_frames(indexes, table, yyjson_arr_size(frames), next);
		if (err < 0)
			return err;
		stack->frames = next;
		stack->nr_frames = (u32)yyjson_arr_size(indexes);
		next += stack++->nr_frames;
	}
	lines->nr_stacks = (u32)yyjson_arr_size(stacks);
	if (err == 0)
		*ret = TAKE_PTR(lines);
	return err;
}

struct lines *lines_free(struct lines *lines)
{
	free(lines);
	return NULL;
}
