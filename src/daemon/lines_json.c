/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/lines_json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "core/python.h"
#include "core/snapshot.h"
#include "ipc/json.h"

/*
 * Frames that a reply describes. A process decides how many it has and how long their tables are,
 * and the loop of zerneld waits for the reply. Further frames are not known.
 */
#define FRAMES_MAX   2048
#define FRAMES_SLOTS (2 * FRAMES_MAX)

/* A frame that is in the list already. */
struct listed {
	struct python_frame frame;
	u32 tgid;
	u32 index; /* plus 1; 0: free */
};

struct writer {
	struct kernel *kernel;
	yyjson_mut_doc *doc;
	yyjson_mut_val *frames;
	yyjson_mut_val *stacks;
	struct listed *listed; /* FRAMES_SLOTS, by hash */
	u32 nr_frames;
	u32 left_out; /* index of the frame that stands for all further ones, plus 1; 0: none */
};

/* Lines behind a part that was not copied are not known. */
static u32 line_of(struct kernel *kernel, u32 tgid, const struct python_frame *frame,
		   const struct python_code *first)
{
	CLEANUP_FREE struct python_code *part = malloc(sizeof(*part));
	CLEANUP_FREE u8 *table = malloc(PYTHON_PARTS_MAX * PYTHON_TABLE_BYTES);
	u32 size = first->table_bytes, read = 0;

	if (!part || !table)
		return 0;
	for (u32 i = 0; i < PYTHON_PARTS_MAX && read < size; i++) {
		u32 bytes;

		if (kernel_read_code(kernel, tgid, frame, i, part) < 0)
			break;
		/* The process may have changed its table between two parts. */
		bytes = part->part_bytes < PYTHON_TABLE_BYTES ? part->part_bytes
							      : PYTHON_TABLE_BYTES;
		memcpy(table + read, part->table, bytes);
		read += bytes;
		if (bytes < PYTHON_TABLE_BYTES)
			break;
	}
	return python_line(table, read, first->first_line, frame->instruction);
}

static bool put_frame(struct writer *w, const char *function, const char *file, u32 line,
		      const char *kind)
{
	yyjson_mut_val *row = yyjson_mut_arr_add_obj(w->doc, w->frames);

	return yyjson_mut_obj_add_strcpy(w->doc, row, "function", function) &&
	       yyjson_mut_obj_add_strcpy(w->doc, row, "file", file) &&
	       yyjson_mut_obj_add_uint(w->doc, row, "line", line) &&
	       yyjson_mut_obj_add_str(w->doc, row, "kind", kind);
}

/* A text of Latin letters needs twice its bytes in UTF-8, and a cut one begins with an ellipsis. */
static void text_of(const struct python_text *text, const u8 *bytes, u32 room, char *ret, u32 size)
{
	static const char ellipsis[] = "…";
	u32 used = text->is_cut ? sizeof(ellipsis) - 1 : 0;

	memcpy(ret, ellipsis, used);
	python_text_print(text, bytes, room, ret + used, size - used);
}

static bool describe(struct writer *w, u32 tgid, const struct python_frame *frame)
{
	CLEANUP_FREE struct python_code *code = malloc(sizeof(*code));
	char function[4 * PYTHON_NAME_BYTES], file[4 * PYTHON_FILE_BYTES];

	if (!code)
		return false;
	if (kernel_read_code(w->kernel, tgid, frame, 0, code) < 0)
		return put_frame(w, "?", "", 0, "unknown");
	text_of(&code->name, code->name_bytes, sizeof(code->name_bytes), function,
		sizeof(function));
	text_of(&code->file, code->file_bytes, sizeof(code->file_bytes), file, sizeof(file));
	return put_frame(w, function, file, line_of(w->kernel, tgid, frame, code), "python");
}

static u64 hash_of(u32 tgid, const struct python_frame *frame)
{
	u64 hash = (frame->code ^ (u64)frame->instruction << 40 ^ frame->lines) * 31 + tgid;

	return hash * 0x9e3779b97f4a7c15ULL >> 40;
}

static bool index_of_left_out(struct writer *w, u32 *ret)
{
	if (!w->left_out) {
		if (!put_frame(w, "?", "", 0, "unknown"))
			return false;
		w->left_out = w->nr_frames + 1;
	}
	*ret = w->left_out - 1;
	return true;
}

/* The index of a frame in the list, which is extended for a new one. */
static bool index_of(struct writer *w, u32 tgid, const struct python_frame *frame, u32 *ret)
{
	for (u64 at = hash_of(tgid, frame);; at++) {
		struct listed *slot = &w->listed[at % FRAMES_SLOTS];

		if (slot->index &&
		    (slot->tgid != tgid || memcmp(&slot->frame, frame, sizeof(*frame)) != 0))
			continue;
		if (!slot->index) {
			/* Half of the slots stay free, so every search ends. */
			if (w->nr_frames == FRAMES_MAX)
				return index_of_left_out(w, ret);
			if (!describe(w, tgid, frame))
				return false;
			*slot = (struct listed){ *frame, tgid, ++w->nr_frames };
		}
		*ret = slot->index - 1;
		return true;
	}
}

/* Outermost first. A stack that could not be read has one frame, which is not known. */
static bool put_stack_frames(struct writer *w, const struct lines_stack_key *key,
			     yyjson_mut_val *list, bool *ret_cut)
{
	CLEANUP_FREE struct python_stack *stack = calloc(1, sizeof(*stack));
	u32 index;

	if (!stack)
		return false;
	if (!key->hash || kernel_read_stack(w->kernel, key, stack) < 0) {
		stack->nr = 1;
		stack->frames[0] = (struct python_frame){};
	}
	*ret_cut = stack->is_cut;
	for (u32 i = stack->nr < PYTHON_FRAMES_MAX ? stack->nr : PYTHON_FRAMES_MAX; i-- > 0;)
		if (!index_of(w, key->tgid, &stack->frames[i], &index) ||
		    !yyjson_mut_arr_add_uint(w->doc, list, index))
			return false;
	return true;
}

static int put_stack(void *ctx, const struct lines_sum_key *key, const struct lines_sum *sum)
{
	struct writer *w = ctx;
	yyjson_mut_val *row = yyjson_mut_arr_add_obj(w->doc, w->stacks);
	yyjson_mut_val *list = yyjson_mut_arr(w->doc);
	bool is_cut = false;

	if (!row || !list || !put_stack_frames(w, &key->stack, list, &is_cut))
		return -ENOMEM;
	return yyjson_mut_obj_add_str(w->doc, row, "cause", idle_cause_label(key->cause)) &&
			       yyjson_mut_obj_add_uint(w->doc, row, "tid", key->tid) &&
			       yyjson_mut_obj_add_str(w->doc, row, "role", role_label(key->role)) &&
			       yyjson_mut_obj_add_uint(w->doc, row, "ns", sum->done_ns) &&
			       yyjson_mut_obj_add_uint(w->doc, row, "open_ns", sum->open_ns) &&
			       yyjson_mut_obj_add_uint(w->doc, row, "samples", sum->nr_samples) &&
			       yyjson_mut_obj_add_bool(w->doc, row, "cut", is_cut) &&
			       yyjson_mut_obj_add_val(w->doc, row, "frames", list)
		       ? 0
		       : -ENOMEM;
}

static bool put_head(struct writer *w, yyjson_mut_val *lines, const struct lines_head *head)
{
	const struct {
		const char *name;
		u64 value;
	} numbers[] = {
		{ "pid", head->pid },
		{ "start_ns", head->start_ns },
		{ "window_ns", head->window_ns },
		{ "idle_ns", head->idle_ns },
		{ "open_ns", head->open_ns },
		{ "samples", head->counts.nr_samples },
		{ "dropped", head->counts.nr_dropped },
		{ "unreadable", head->counts.nr_unreadable },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!yyjson_mut_obj_add_uint(w->doc, lines, numbers[i].name, numbers[i].value))
			return false;
	return true;
}

struct message *lines_to_json(struct kernel *kernel, const struct lines_head *head)
{
	CLEANUP(yyjson_mut_doc_free_cleanup) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	CLEANUP_FREE struct listed *listed = calloc(FRAMES_SLOTS, sizeof(*listed));
	struct writer w = { .kernel = kernel, .doc = doc, .listed = listed };
	yyjson_mut_val *root = yyjson_mut_obj(doc), *lines;
	size_t length = 0;
	char *text = NULL;

	if (!doc || !root || !listed)
		return NULL;
	yyjson_mut_doc_set_root(doc, root);
	lines = yyjson_mut_obj_add_obj(doc, root, "lines");
	if (!put_head(&w, lines, head))
		return NULL;
	w.frames = yyjson_mut_obj_add_arr(doc, lines, "frames");
	w.stacks = yyjson_mut_obj_add_arr(doc, lines, "stacks");
	if (kernel_read_lines(kernel, head->pid, put_stack, &w) == 0)
		text = yyjson_mut_write(doc, 0, &length);
	return message_new(text, length);
}
