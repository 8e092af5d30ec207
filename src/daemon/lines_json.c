/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/lines_json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/cleanup.h"
#include "core/python.h"
#include "core/snapshot.h"
#include "daemon/lines_hash.h"
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
	u32 tgid;  /* of the process whose memory was read */
	u32 index; /* plus 1; 0: free */
};

/*
 * Handles of GPU kernels that a reply can have. A sum has two, and a slot of three stays free, so
 * every search ends.
 */
#define KERNELS_SLOTS (3 * (LINES_SUMS + LINES_WAITING))

struct listed_kernel {
	u64 handle; /* 0: free */
	u32 index;  /* plus 1; 0: its name is not known */
};

struct writer {
	struct kernel *kernel;
	struct lines_hash hash;
	yyjson_mut_val *kernels;
	struct listed_kernel *listed_kernels; /* KERNELS_SLOTS, by handle */
	yyjson_mut_doc *doc;
	yyjson_mut_val *frames;
	yyjson_mut_val *stacks;
	struct listed *listed; /* FRAMES_SLOTS, by hash */
	u32 nr_listed;
	u32 left_out; /* index of the frame that stands for all further ones, plus 1; 0: none */
	u32 calls[CALL_NR]; /* index of the frame of each runtime call, plus 1; 0: none */
};

static u32 nr_frames(const struct writer *w)
{
	return (u32)yyjson_mut_arr_size(w->frames);
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

/* NULL, or without a name: it is not known. */
static bool put_place(struct writer *w, const struct python_place *place)
{
	if (!place || !place->function[0])
		return put_frame(w, "?", "", 0, "unknown");
	return put_frame(w, place->function, place->file, place->line, "python");
}

/* Where the parts of the code of a frame are. */
struct parts {
	struct kernel *kernel;
	const struct lines_stack_key *stack;
};

static int read_part(void *ctx, const struct python_frame *frame, u32 part, struct python_code *ret)
{
	const struct parts *parts = ctx;

	return kernel_read_code(parts->kernel, parts->stack, frame, part, ret);
}

static bool describe(struct writer *w, const struct lines_stack_key *stack,
		     const struct python_frame *frame)
{
	struct parts parts = { w->kernel, stack };
	struct python_place place;
	int err = python_place(read_part, &parts, frame, &place);

	return put_place(w, err < 0 ? NULL : &place);
}

static bool index_of_left_out(struct writer *w, u32 *ret)
{
	if (!w->left_out) {
		if (!put_frame(w, "?", "", 0, "unknown"))
			return false;
		w->left_out = nr_frames(w);
	}
	*ret = w->left_out - 1;
	return true;
}

/* The index of a frame in the list, which is extended for a new one. */
static bool index_of(struct writer *w, const struct lines_stack_key *stack,
		     const struct python_frame *frame, u32 *ret)
{
	u32 tgid = stack->tgid;

	for (u32 at = lines_hash_frame(&w->hash, tgid, frame);; at++) {
		struct listed *slot = &w->listed[at % FRAMES_SLOTS];

		if (slot->index &&
		    (slot->tgid != tgid || memcmp(&slot->frame, frame, sizeof(*frame)) != 0))
			continue;
		if (!slot->index) {
			/* Half of the slots stay free, so every search ends. */
			if (w->nr_listed == FRAMES_MAX)
				return index_of_left_out(w, ret);
			if (!describe(w, stack, frame))
				return false;
			w->nr_listed++;
			*slot = (struct listed){ *frame, tgid, nr_frames(w) };
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
		if (!index_of(w, key, &stack->frames[i], &index) ||
		    !yyjson_mut_arr_add_uint(w->doc, list, index))
			return false;
	return true;
}

/*
 * The call is below all lines of Python. What the library calls itself is not known, so it is no
 * native frame.
 */
static bool put_call(struct writer *w, u32 call, yyjson_mut_val *list)
{
	u32 *index = &w->calls[call];

	if (!*index) {
		if (!put_frame(w, call_symbol(call), "", 0, "call"))
			return false;
		*index = nr_frames(w);
	}
	return yyjson_mut_arr_add_uint(w->doc, list, *index - 1);
}

/* Returns the index of a new kernel in the list plus 1; 0: its name is not known. */
static u32 put_kernel(struct writer *w, const struct lines_sum_key *key, u64 handle)
{
	const struct gpu_kernel_key wanted = { .start_ns = key->start_ns,
					       .tgid = key->tgid,
					       .handle = handle };
	bool is_graph = handle == GAP_GRAPH;
	char name[3 * GPU_KERNEL_BYTES] = "";
	struct gpu_kernel found = {};
	yyjson_mut_val *row;

	if (!is_graph && kernel_read_gpu_kernel(w->kernel, &wanted, &found) < 0)
		return 0;
	snapshot_set_text(name, sizeof(name), found.name, strnlen(found.name, sizeof(found.name)));
	row = yyjson_mut_arr_add_obj(w->doc, w->kernels);
	yyjson_mut_obj_add_str(w->doc, row, "kind", is_graph ? "graph" : "kernel");
	yyjson_mut_obj_add_strcpy(w->doc, row, "name", name);
	yyjson_mut_obj_add_bool(w->doc, row, "cut", found.is_cut);
	return (u32)yyjson_mut_arr_size(w->kernels);
}

/* Adds an index in the list of kernels, unless the name of the kernel is not known. */
static bool put_around(struct writer *w, yyjson_mut_val *row, const char *name,
		       const struct lines_sum_key *key, u64 handle)
{
	u32 at = lines_hash_handle(&w->hash, handle);
	struct listed_kernel *slot;

	if (handle == GAP_UNKNOWN)
		return true;
	while (slot = &w->listed_kernels[at % KERNELS_SLOTS],
	       slot->handle && slot->handle != handle)
		at++;
	if (!slot->handle)
		*slot = (struct listed_kernel){ handle, put_kernel(w, key, handle) };
	return !slot->index || yyjson_mut_obj_add_uint(w->doc, row, name, slot->index - 1);
}

static bool put_row(struct writer *w, yyjson_mut_val *row, const struct lines_sum_key *key,
		    const struct lines_sum *sum, bool is_cut, yyjson_mut_val *list)
{
	return yyjson_mut_obj_add_uint(w->doc, row, "tid", key->tid) &&
	       yyjson_mut_obj_add_str(w->doc, row, "role", role_label(key->role)) &&
	       yyjson_mut_obj_add_uint(w->doc, row, "ns", sum->done_ns) &&
	       yyjson_mut_obj_add_uint(w->doc, row, "open_ns", sum->open_ns) &&
	       yyjson_mut_obj_add_uint(w->doc, row, "samples", sum->nr_samples) &&
	       yyjson_mut_obj_add_bool(w->doc, row, "cut", is_cut) &&
	       yyjson_mut_obj_add_val(w->doc, row, "frames", list);
}

static int put_stack(void *ctx, const struct lines_sum_key *key, const struct lines_sum *sum)
{
	struct writer *w = ctx;
	yyjson_mut_val *row = yyjson_mut_arr_add_obj(w->doc, w->stacks);
	yyjson_mut_val *list = yyjson_mut_arr(w->doc);
	bool is_cut = false;

	if (!row || !list || !put_stack_frames(w, &key->stack, list, &is_cut))
		return -ENOMEM;
	if (key->call && key->call <= CALL_NR && !put_call(w, key->call - 1, list))
		return -ENOMEM;
	return yyjson_mut_obj_add_str(w->doc, row, "cause", idle_cause_label(key->cause)) &&
			       put_row(w, row, key, sum, is_cut, list) &&
			       put_around(w, row, "after", key, key->after) &&
			       put_around(w, row, "before", key, key->before)
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

/* Begins a reply. */
static bool begin(struct writer *w, yyjson_mut_doc *doc, const struct lines_head *head)
{
	yyjson_mut_val *root = yyjson_mut_obj(doc), *lines;

	if (!doc || !root)
		return false;
	w->doc = doc;
	yyjson_mut_doc_set_root(doc, root);
	lines = yyjson_mut_obj_add_obj(doc, root, "lines");
	if (!put_head(w, lines, head))
		return false;
	w->frames = yyjson_mut_obj_add_arr(doc, lines, "frames");
	w->kernels = yyjson_mut_obj_add_arr(doc, lines, "kernels");
	w->stacks = yyjson_mut_obj_add_arr(doc, lines, "stacks");
	return w->frames && w->kernels && w->stacks;
}

struct message *lines_to_json(struct kernel *kernel, const struct lines_head *head)
{
	CLEANUP(yyjson_mut_doc_free_cleanup) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	CLEANUP_FREE struct listed *listed = calloc(FRAMES_SLOTS, sizeof(*listed));
	CLEANUP_FREE struct listed_kernel *kernels = calloc(KERNELS_SLOTS, sizeof(*kernels));
	struct writer w = { .kernel = kernel, .listed = listed, .listed_kernels = kernels };
	size_t length = 0;
	char *text = NULL;

	if (!listed || !kernels || !begin(&w, doc, head) ||
	    getrandom(&w.hash, sizeof(w.hash), 0) != sizeof(w.hash))
		return NULL;
	if (kernel_read_lines(kernel, head->pid, put_stack, &w) == 0)
		text = yyjson_mut_write(doc, 0, &length);
	return message_new(text, length);
}

struct message *lines_stack_to_json(const struct lines_head *head,
				    const struct lines_stack_now *now)
{
	static const struct lines_sum once = { .nr_samples = 1 };
	const struct lines_sum_key key = { .tid = now->tid, .role = now->role };
	CLEANUP(yyjson_mut_doc_free_cleanup) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	struct writer w = {};
	yyjson_mut_val *row, *list;
	char *text = NULL;
	size_t length = 0;
	bool is_put;

	if (!begin(&w, doc, head))
		return NULL;
	row = yyjson_mut_arr_add_obj(doc, w.stacks);
	list = yyjson_mut_arr(doc);
	is_put = row && list && put_row(&w, row, &key, &once, now->is_cut, list);
	/* Outermost first. A stack that could not be read has one frame, which is not known. */
	for (u32 i = 0; is_put && i < (now->nr ?: 1); i++)
		is_put = put_place(&w, now->nr ? &now->places[now->nr - 1 - i] : NULL) &&
			 yyjson_mut_arr_add_uint(doc, list, i);
	if (is_put)
		text = yyjson_mut_write(doc, 0, &length);
	return message_new(text, length);
}
