/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The answer to "in which code was the GPU idle": idle time of one process by stacks, which zerneld
 * sampled for some seconds. Processes choose the names of their functions and files, so every
 * output cleans them.
 *
 * While a job does not wait for its work, it is not known whether the GPU is idle. This open time
 * counts as idle, and then all times are upper bounds.
 *
 * Several threads can be sampled at the same time. If all stacks together have more time than the
 * GPU was idle, their times are scaled down, so that they add up to the idle time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <yyjson.h>
#include "abi/types.h"
#include "base/macros.h"

/* The largest answer that is read. */
#define LINES_STACKS_MAX  16384
#define LINES_DEPTH_MAX	  256
#define LINES_FRAMES_MAX  (1U << 21) /* of all stacks together */
#define LINES_NS_MAX	  (1ULL << 48)
#define LINES_KERNELS_MAX 8192

enum lines_kind {
	LINES_PYTHON,
	LINES_NATIVE,
	LINES_CALL,    /* a traced call of a library; what it calls is not known */
	LINES_UNKNOWN, /* its names are not used, because they could be wrong */
	LINES_KIND_NR,
};

struct lines_frame {
	const char *function;
	const char *file;
	u32 line; /* 0: not known */
	enum lines_kind kind;
};

/* A GPU kernel that the process launched, or a graph of kernels. */
struct lines_kernel {
	const char *name;
	bool is_cut; /* the end of the name is missing */
	bool is_graph;
};

struct lines_stack {
	const struct lines_kernel *after,
		*before; /* the launches around its time; NULL: not known */
	u32 cause;	 /* enum idle_cause; IDLE_CAUSE_NR: not known */
	u32 tid;
	u32 role;
	u64 ns;
	u64 nr_samples;
	bool is_cut; /* the outermost frames are missing */
	u32 nr_frames;
	const struct lines_frame *frames; /* outermost first */
};

struct lines {
	u32 pid;
	u64 start_ns;
	u64 window_ns;
	u64 idle_ns; /* at most: with the open time */
	u64 open_ns;
	u64 nr_samples;
	u64 nr_dropped;
	u64 nr_unreadable;
	u32 nr_stacks;
	const struct lines_stack *stacks;
	u32 nr_kernels;
	const struct lines_kernel *kernels;
};

/*
 * Reads the value of the member `lines` of a reply. The names stay in the document of `value`,
 * which must outlive the result. -EPROTO: it is invalid; -E2BIG: it is too large.
 */
int lines_read(yyjson_val *value, struct lines **ret);
struct lines *lines_free(struct lines *lines);
DEFINE_CLEANUP(struct lines, lines_free);

/* A call path below a cause. Node 0 is all sampled time, and its children are the causes. */
struct lines_node {
	const struct lines_frame *frame; /* NULL: all time, or a cause */
	u32 cause;
	u32 depth;
	u32 parent;
	u32 child; /* the one with most time; 0: none */
	u32 next;  /* the next one of the same parent, by time; 0: none */
	u64 ns;	   /* with all that it called */
	u64 self_ns;
	u64 nr_samples;
};

/* A line of code and the time in it, whichever way it was called. */
struct lines_place {
	const struct lines_frame *frame;
	u64 ns;
	u64 nr_samples;
};

/* Idle time between two launches, without that of loaders, which is a second view of it. */
struct lines_between {
	const struct lines_kernel *after, *before;
	u64 ns;
	u64 nr_samples;
	struct lines_place most; /* the line with most of this time */
};

struct lines_tree {
	const struct lines *lines;
	struct lines_node *nodes;
	struct lines_place *places;    /* by time */
	struct lines_between *between; /* the same */
	u64 between_ns;
	u32 nr_nodes;
	u32 nr_places;
	u32 nr_between;
};

/* `lines` must outlive the tree. */
int lines_tree_new(const struct lines *lines, struct lines_tree **ret);
struct lines_tree *lines_tree_free(struct lines_tree *tree);
DEFINE_CLEANUP(struct lines_tree, lines_tree_free);

/* The node after `at`, or after `at` and all below it, from the top down; 0: there is none. */
u32 lines_tree_next(const struct lines_tree *tree, u32 at);
u32 lines_tree_skip(const struct lines_tree *tree, u32 at);

/* The nodes from `at` up to its cause. Returns their number. */
#define LINES_PATH_MAX (LINES_DEPTH_MAX + 2) /* with the cause and [cut] */
u32 lines_tree_path(const struct lines_tree *tree, u32 at, u32 ret[static LINES_PATH_MAX]);

/* Percent of the watched time, scaled as described above. */
double lines_points(const struct lines_tree *tree, u64 ns);
double lines_idle_points(const struct lines_tree *tree);
/* Percent of the watched time in which the GPU may have worked. */
double lines_open_points(const struct lines_tree *tree);
/* Whether the open time is long enough that points are upper bounds. */
bool lines_is_range(const struct lines_tree *tree);
/* Idle time in which no stack was sampled, in percent of the watched time. */
double lines_missed_points(const struct lines_tree *tree);

#define LINES_LABEL_LEN	   256
#define LINES_SENTENCE_LEN 1280

/* Percent of the watched time, of all time between launches. */
double lines_between_points(const struct lines_tree *tree, const struct lines_between *between);
/* The name of a kernel without control characters, or a text for one that is not known. */
void lines_kernel_label(const struct lines_kernel *kernel, char ret[static LINES_LABEL_LEN]);

/* Whether the names of a frame are known. */
bool lines_is_known(const struct lines_frame *frame);
/* "collate() train.py:142", "[unknown]", or the title of a cause. It has no control characters. */
void lines_label(const struct lines_node *node, char ret[static LINES_LABEL_LEN]);
void lines_frame_label(const struct lines_frame *frame, char ret[static LINES_LABEL_LEN]);
/* Copies text; replaces what is not valid UTF-8, controls, and what XML does not allow. */
void lines_clean(char *to, size_t size, const char *from);
const char *lines_kind_label(u32 kind);
/* "idle 31 %: 22 points in collate() train.py:142, 6 in load() data.py:17." */
void lines_sentence(const struct lines_tree *tree, char ret[static LINES_SENTENCE_LEN]);

/* A stack that could not be read has one frame without a name. */
bool lines_has_frames(const struct lines_stack *stack);
/* Adds the members `stack`, the outermost frame first, and `stack_is_cut`. */
void lines_add_stack(const struct lines_stack *stack, yyjson_mut_doc *doc, yyjson_mut_val *object);

/* Each writes a whole file. Write errors are reported by ferror(out). */
int lines_write_json(const struct lines_tree *tree, FILE *out);
/* The same without the smallest parts, for a page. */
int lines_write_summary(const struct lines_tree *tree, FILE *out);
/* One line for each call path: names separated by semicolons, and its nanoseconds. */
int lines_write_folded(const struct lines_tree *tree, FILE *out);
/* A flame graph. It has no script and loads nothing. */
int lines_write_svg(const struct lines_tree *tree, FILE *out);
/* The format of pprof, not compressed. */
int lines_write_pprof(const struct lines_tree *tree, FILE *out);
