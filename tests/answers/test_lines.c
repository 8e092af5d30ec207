/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the answer of zernel why --lines for stacks whose times are known. */
#include <errno.h>

#include "answers/capture.h"
#include "answers/lines.h"
#include "base/cleanup.h"
#include "cli/why/lines_print.h"
#include "core/process.h"
#include "core/snapshot.h"
#include "ipc/json.h"

#define MS NSEC_PER_MSEC

#define PYTHON(name, path, number)                                                                 \
	{ .function = (name), .file = (path), .line = (number), .kind = LINES_PYTHON }
#define NATIVE(name, path) { .function = (name), .file = (path), .kind = LINES_NATIVE }
#define CALL(name)	   { .function = (name), .file = "", .kind = LINES_CALL }
#define UNKNOWN(name)	   { .function = (name), .file = "guess.c", .line = 9, .kind = LINES_UNKNOWN }

#define STACK(why, time_ns, ...)                                                                   \
	{                                                                                          \
		.cause = (why),                                                                    \
		.tid = 4711,                                                                       \
		.role = ROLE_LAUNCHER,                                                             \
		.ns = (time_ns),                                                                   \
		.nr_samples = (time_ns) / (10 * MS),                                               \
		.nr_frames = ARRAY_SIZE(((struct lines_frame[]){ __VA_ARGS__ })),                  \
		.frames = (const struct lines_frame[]){ __VA_ARGS__ },                             \
	}

#define MAIN  PYTHON("<module>", "/home/u/train.py", 200)
#define TRAIN PYTHON("train", "/home/u/train.py", 180)
#define NEXT  PYTHON("DataLoader.__next__", "/lib/torch/dataloader.py", 701)

static const char script[] = "<script>alert('x')</script> & \"q\"; \033[31m\n\xff\xe2\x80\xae end";
static char long_name[4097];

/* One second, idle 310 ms: 220 in collate(), 60 in __next__(), 20 in an unknown frame. */
static const struct lines_stack stacks[] = {
	STACK(IDLE_CPU, 150 * MS, MAIN, TRAIN, PYTHON("collate", "/home/u/train.py", 142)),
	STACK(IDLE_CPU, 70 * MS, MAIN, TRAIN, PYTHON("collate", "/home/u/train.py", 142),
	      NATIVE("memcpy", "libc.so.6")),
	STACK(IDLE_LOADER_OTHER, 60 * MS, MAIN, TRAIN, NEXT),
	STACK(IDLE_CPU, 10 * MS, UNKNOWN("wrong_name")),
	STACK(IDLE_CPU, 10 * MS, UNKNOWN("another_wrong_name")),
};

static struct lines make(void)
{
	return (struct lines){ .pid = 4711,
			       .window_ns = 1000 * MS,
			       .idle_ns = 310 * MS,
			       .nr_samples = 30,
			       .stacks = stacks,
			       .nr_stacks = ARRAY_SIZE(stacks) };
}

static char *print(const struct lines *lines, enum lines_format format)
{
	struct capture capture = capture_begin();
	struct term term = { .out = capture.out };

	assert_int_equal(lines_print(lines, format, &term), 0);
	return capture_end(&capture);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in:\n%s", part, text);
}

static void sentence_names_lines_by_time(void **state)
{
	struct lines lines = make();
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;
	char text[LINES_SENTENCE_LEN];

	assert_int_equal(lines_tree_new(&lines, &tree), 0);
	lines_sentence(tree, text);
	assert_string_equal(
		text, "idle 31 %: 22 points in collate() train.py:142, 6 in "
		      "DataLoader.__next__() dataloader.py:701, 2 in [unknown], 1 not sampled.");
}

static void open_time_makes_upper_bounds(void **state)
{
	struct lines lines = make();
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;
	CLEANUP_FREE char *shown = NULL;
	char text[LINES_SENTENCE_LEN];

	lines.open_ns = 250 * MS;
	assert_int_equal(lines_tree_new(&lines, &tree), 0);
	lines_sentence(tree, text);
	assert_has(text, "idle 6 to 31 %: at most 22 points in collate() train.py:142, 6 in ");
	shown = print(&lines, LINES_TEXT);
	assert_has(shown, "The GPU may have worked for 25.0 points of this time");
	lines.open_ns = 30 * MS; /* known exactly enough */
	lines_sentence(tree, text);
	assert_has(text, "idle 31 %: 22 points in ");
}

static void tree_adds_up(void **state)
{
	struct lines lines = make();
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;
	u64 self_ns = 0;
	u32 nr = 0;

	assert_int_equal(lines_tree_new(&lines, &tree), 0);
	assert_int_equal(tree->nodes->ns, 300 * MS);
	for (u32 at = 0, first = 1; at || first; at = lines_tree_next(tree, at), first = 0) {
		u64 below_ns = tree->nodes[at].self_ns;

		for (u32 i = tree->nodes[at].child; i; i = tree->nodes[i].next) {
			below_ns += tree->nodes[i].ns;
			assert_int_equal(tree->nodes[i].parent, at);
			if (tree->nodes[i].next)
				assert_true(tree->nodes[i].ns >=
					    tree->nodes[tree->nodes[i].next].ns);
		}
		assert_int_equal(below_ns, tree->nodes[at].ns);
		self_ns += tree->nodes[at].self_ns;
		nr++;
	}
	assert_int_equal(self_ns, 300 * MS);
	assert_int_equal(nr, tree->nr_nodes);
	/* All, two causes, two main and train, collate, memcpy, __next__, unknown. */
	assert_int_equal(nr, 11);
	assert_int_equal(tree->nr_places, 3);
}

static void text_is_a_tree(void **state)
{
	struct lines lines = make();
	CLEANUP_FREE char *text = print(&lines, LINES_TEXT);

	assert_has(text, "process 4711: idle 31 %: 22 points in collate()");
	assert_has(text, "  24.0     -       24  launcher computed\n"
			 "  22.0     -       22    <module> train.py:200\n"
			 "  22.0     -       22    train() train.py:180\n"
			 "  22.0  15.0       22    collate() train.py:142\n"
			 "   7.0   7.0        7      memcpy() libc.so.6\n"
			 "   2.0   2.0        2    [unknown]\n");
	assert_lacks(text, "wrong_name");
	assert_lacks(text, "\033");
	assert_lacks(text, "cut");
}

/* A call of a library is below the line that called it, and no native function. */
static void library_calls_are_marked(void **state)
{
	const struct lines_stack calls[] = {
		STACK(IDLE_CPU, 100 * MS, MAIN, CALL("cudaMallocHost")),
		STACK(IDLE_CPU, 100 * MS, UNKNOWN("wrong_name"), CALL("cudaMallocHost")),
	};
	struct lines lines = make();
	CLEANUP_FREE char *text = NULL, *json = NULL;

	lines.stacks = calls;
	lines.nr_stacks = ARRAY_SIZE(calls);
	text = print(&lines, LINES_TEXT);
	assert_has(text, "10 points in <module> train.py:200, 10 in cudaMallocHost (library call)");
	assert_has(text, "cudaMallocHost (library call)\n");
	json = print(&lines, LINES_JSON);
	assert_has(json, "\"kind\":\"call\",\"function\":\"cudaMallocHost\"");
}

static const struct lines_kernel kernels[] = {
	{ .name = "gemm" },
	{ .name = "softmax\033[31m", .is_cut = true },
	{ .name = "", .is_graph = true },
	{ .name = "gemm" }, /* the same kernel by another handle */
};

/* One second: 220 ms between gemm and softmax, in two lines and by two handles. */
static struct lines make_between(struct lines_stack around[static 5])
{
	struct lines lines = make();

	memcpy(around, stacks, 5 * sizeof(*around));
	around[0].after = &kernels[0];
	around[0].before = around[1].before = &kernels[1];
	around[1].after = &kernels[3];
	around[2].after = &kernels[2];
	around[3].after = around[3].before = &kernels[0];
	lines.stacks = around;
	lines.kernels = kernels;
	lines.nr_kernels = ARRAY_SIZE(kernels);
	return lines;
}

static void kernels_around_idle_time_are_named(void **state)
{
	struct lines_stack around[5];
	struct lines lines = make_between(around);
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;
	CLEANUP_FREE char *text = print(&lines, LINES_TEXT), *json = print(&lines, LINES_JSON);
	CLEANUP_FREE char *without = NULL;

	assert_int_equal(lines_tree_new(&lines, &tree), 0);
	assert_int_equal(tree->nr_between, 4);
	assert_int_equal(tree->between_ns, 300 * MS);
	assert_has(text, "Idle time between kernels\n"
			 "    22.0  after gemm, before softmax?[31m\u2026: most in collate() "
			 "train.py:142\n"
			 "     6.0  after a CUDA or HIP graph, before an unknown kernel: most in "
			 "DataLoader.__next__() dataloader.py:701\n"
			 "     1.0  after gemm, before gemm: most in [unknown]\n");
	assert_lacks(text, "after an unknown kernel, before an unknown kernel");
	assert_has(json, "\"between\":[{\"after\":{\"kind\":\"kernel\",\"name\":\"gemm\",\"cut\":"
			 "false},\"before\":{\"kind\":\"kernel\",\"name\":\"softmax?[31m\",\"cut\":"
			 "true},\"points\":22.0,\"ns\":220000000,");
	assert_has(json, "\"after\":{\"kind\":\"graph\"},\"before\":{\"kind\":\"unknown\"}");
	lines = make();
	without = print(&lines, LINES_TEXT);
	assert_lacks(without, "between kernels");
}

/* The time of a loader is a part of the time of its launcher. */
static void loaders_are_not_between_kernels(void **state)
{
	struct lines_stack around[5];
	struct lines lines = make_between(around);
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;

	around[1].role = ROLE_LOADER;
	assert_int_equal(lines_tree_new(&lines, &tree), 0);
	assert_int_equal(tree->between_ns, 230 * MS);
	assert_int_equal(tree->between[0].ns, 150 * MS);
	assert_int_equal(tree->between[0].most.ns, 150 * MS);
}

static void text_has_colours_on_a_terminal(void **state)
{
	struct capture capture = capture_begin();
	struct term term = { .out = capture.out, .colour = true };
	struct lines lines = make();
	CLEANUP_FREE char *text = NULL;

	assert_int_equal(lines_print(&lines, LINES_TEXT, &term), 0);
	text = capture_end(&capture);
	assert_has(text, "\033[1mlauncher computed");
	assert_has(text, "\033[2m  [unknown]");
}

static void folded_has_every_path(void **state)
{
	struct lines lines = make();
	CLEANUP_FREE char *text = print(&lines, LINES_FOLDED);

	assert_string_equal(
		text, "launcher computed;<module> train.py:200;train() train.py:180;"
		      "collate() train.py:142 150000000\n"
		      "launcher computed;<module> train.py:200;train() train.py:180;"
		      "collate() train.py:142;memcpy() libc.so.6 70000000\n"
		      "launcher computed;[unknown] 20000000\n"
		      "loaders waited, other reason;<module> train.py:200;"
		      "train() train.py:180;DataLoader.__next__() dataloader.py:701 60000000\n");
}

static void every_cause_has_a_title(void **state)
{
	struct lines_stack all[IDLE_CAUSE_NR + 1];
	struct lines lines = make();
	CLEANUP_FREE char *text = NULL;

	for (u32 i = 0; i <= IDLE_CAUSE_NR; i++) {
		all[i] = stacks[0];
		all[i].cause = i;
		all[i].ns = 20 * MS;
	}
	lines.stacks = all;
	lines.nr_stacks = IDLE_CAUSE_NR + 1;
	text = print(&lines, LINES_FOLDED);
	for (u32 i = 0; i <= IDLE_CAUSE_NR; i++) {
		CLEANUP_FREE char *line = strndup(text, strcspn(text, "\n"));

		assert_has(line, ";collate() train.py:142 20000000");
		assert_true(*line != ';');
		assert_true((strstr(line, "unknown cause;") != NULL) == (i == IDLE_CAUSE_NR));
		memmove(text, text + strlen(line) + 1, strlen(text + strlen(line)));
	}
	assert_string_equal(text, "");
}

static void stacks_that_overlap_are_scaled(void **state)
{
	struct lines lines = make();
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;

	/* Two threads were sampled at the same time. */
	lines.idle_ns = 150 * MS;
	assert_int_equal(lines_tree_new(&lines, &tree), 0);
	assert_float_equal(lines_points(tree, tree->nodes->ns), 15, 1e-9);
	assert_float_equal(lines_points(tree, 220 * MS), 11, 1e-9);
	assert_float_equal(lines_missed_points(tree), 0, 1e-9);
}

static void cut_and_empty_stacks(void **state)
{
	struct lines_stack odd[] = { stacks[0], stacks[0] };
	struct lines lines = make();
	CLEANUP_FREE char *text = NULL, *folded = NULL;

	odd[0].is_cut = true;
	odd[1].nr_frames = 0;
	lines.stacks = odd;
	lines.nr_stacks = 2;
	lines.nr_dropped = 5;
	lines.nr_unreadable = 6;
	text = print(&lines, LINES_TEXT);
	assert_has(text, "[cut]\n");
	assert_has(text, "stacks too deep, their outermost calls are cut: 15 samples");
	assert_has(text, "stacks that cannot be read: 6 samples");
	assert_has(text, "dropped, because there were too many stacks: 5 samples");
	folded = print(&lines, LINES_FOLDED);
	assert_has(folded, "launcher computed;[cut];<module> train.py:200;");
	assert_has(folded, "launcher computed;[unknown] 150000000\n");
}

static void no_samples(void **state)
{
	struct lines lines = { .pid = 1, .window_ns = 5 * NSEC_PER_SEC };

	for (u32 format = 0; format < LINES_FORMAT_NR; format++) {
		CLEANUP_FREE char *text = print(&lines, format);

		if (format == LINES_TEXT)
			assert_string_equal(
				text, "process 1: idle 0 %: no stack was sampled in 5.0 s.\n");
	}
}

static void names_are_cleaned(void **state)
{
	const struct lines_stack hostile[] = {
		STACK(IDLE_CPU, 100 * MS, PYTHON(script, script, 1)),
		STACK(IDLE_CPU, 100 * MS, PYTHON(long_name, long_name, 2)),
		STACK(IDLE_CPU, 100 * MS, NATIVE("", "lib.so")),
	};
	struct lines lines = make();

	memset(long_name, 'x', sizeof(long_name) - 1);
	lines.stacks = hostile;
	lines.nr_stacks = ARRAY_SIZE(hostile);
	for (u32 format = 0; format < LINES_PPROF; format++) {
		CLEANUP_FREE char *text = print(&lines, format);

		assert_lacks(text, "\033");
		assert_lacks(text, "\xe2\x80\xae");
		assert_has(text, "?[31m?\xef\xbf\xbd? end");
		assert_has(text, "xxxxxxxxxxxxxxxx");
		if (format == LINES_SVG) {
			assert_lacks(text, "<script");
			assert_has(text, "&lt;script&gt;alert(&#39;x&#39;)");
			assert_has(text, "&amp; &quot;q&quot;");
		}
		if (format == LINES_FOLDED)
			assert_has(text, "launcher computed;[unknown] 100000000\n");
	}
}

/* 10,000 stacks of 200 frames whose innermost functions differ. */
static void many_deep_stacks(void **state)
{
	const struct lines_frame outer = PYTHON("recurse", "deep.py", 3);
	CLEANUP_FREE struct lines_stack *many = calloc(10000, sizeof(*many));
	CLEANUP_FREE struct lines_frame *frames = calloc(10000 * 200, sizeof(*frames));
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;
	struct lines lines = make();

	assert_non_null(many);
	assert_non_null(frames);
	for (u32 i = 0; i < 10000; i++) {
		many[i] = (struct lines_stack){ .ns = 31000 + i % 7,
						.nr_samples = 1,
						.nr_frames = 200,
						.frames = &frames[i * 200],
						.is_cut = true };
		for (u32 k = 0; k < 200; k++)
			frames[i * 200 + k] = outer;
		/* Every number once, and not in their order. */
		frames[i * 200 + 199].line = 1000 + i * 7919 % 10000;
	}
	lines.stacks = many;
	lines.nr_stacks = 10000;
	assert_int_equal(lines_tree_new(&lines, &tree), 0);
	assert_int_equal(tree->nr_nodes, 1 + 1 + 1 + 199 + 10000);
	assert_int_equal(tree->nr_places, 10000);
	for (u32 i = 1; i < tree->nr_places; i++)
		assert_true(tree->places[i - 1].ns >= tree->places[i].ns);
	for (u32 format = 0; format < LINES_FORMAT_NR; format++)
		free(print(&lines, format));
}

static const char reply[] =
	"{\"pid\":4711,\"start_ns\":1,\"window_ns\":1000,\"idle_ns\":310,\"samples\":3,"
	"\"dropped\":1,\"unreadable\":2,\"frames\":["
	"{\"function\":\"main\",\"file\":\"train.py\",\"line\":1,\"kind\":\"python\"},"
	"{\"function\":\"f\",\"file\":\"lib.so\",\"line\":0,\"kind\":\"native\"},"
	"{\"function\":\"?\",\"file\":\"\",\"line\":0,\"kind\":\"unknown\"}],"
	"\"stacks\":[{\"cause\":\"cpu\",\"tid\":7,\"role\":\"launcher\",\"ns\":200,\"samples\":2,"
	"\"cut\":false,\"frames\":[0,1]},"
	"{\"cause\":\"novel\",\"tid\":8,\"role\":\"loader\",\"ns\":100,\"samples\":1,\"cut\":true,"
	"\"frames\":[2]}]}";

static int read_text(const char *text, yyjson_doc **ret_doc, struct lines **ret)
{
	*ret_doc = yyjson_read(text, strlen(text), 0);
	assert_non_null(*ret_doc);
	return lines_read(yyjson_doc_get_root(*ret_doc), ret);
}

static void reply_is_read(void **state)
{
	CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = NULL;
	CLEANUP(lines_free_cleanup) struct lines *lines = NULL;

	assert_int_equal(read_text(reply, &doc, &lines), 0);
	assert_int_equal(lines->pid, 4711);
	assert_int_equal(lines->idle_ns, 310);
	assert_int_equal(lines->nr_dropped, 1);
	assert_int_equal(lines->nr_unreadable, 2);
	assert_int_equal(lines->nr_stacks, 2);
	assert_int_equal(lines->stacks[0].cause, IDLE_CPU);
	assert_int_equal(lines->stacks[0].role, ROLE_LAUNCHER);
	assert_int_equal(lines->stacks[0].nr_frames, 2);
	assert_string_equal(lines->stacks[0].frames[1].function, "f");
	assert_int_equal(lines->stacks[0].frames[1].kind, LINES_NATIVE);
	assert_int_equal(lines->stacks[1].cause, IDLE_CAUSE_NR);
	assert_int_equal(lines->stacks[1].role, ROLE_LOADER);
	assert_true(lines->stacks[1].is_cut);
	assert_int_equal(lines->stacks[1].frames[0].kind, LINES_UNKNOWN);
}

/* Replaces a part of the reply. */
static char *damaged(const char *from, const char *to)
{
	const char *at = strstr(reply, from);
	char *text = NULL;

	assert_non_null(at);
	assert_true(asprintf(&text, "%.*s%s%s", (int)(at - reply), reply, to, at + strlen(from)) >
		    0);
	return text;
}

static void open_time_is_read(void **state)
{
	CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = NULL;
	CLEANUP(lines_free_cleanup) struct lines *lines = NULL;
	CLEANUP_FREE char *text = damaged("\"pid\":4711,", "\"pid\":4711,\"open_ns\":50,");
	CLEANUP_FREE char *both = NULL;
	char *at = strstr(text, "\"tid\":7,");

	assert_true(asprintf(&both, "%.*s\"open_ns\":40,%s", (int)(at - text), text, at) > 0);
	assert_int_equal(read_text(both, &doc, &lines), 0);
	assert_int_equal(lines->open_ns, 50);
	assert_int_equal(lines->idle_ns, 360);
	assert_int_equal(lines->stacks[0].ns, 240);
	assert_int_equal(lines->stacks[1].ns, 100);
}

static void invalid_replies_are_refused(void **state)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{ "\"frames\":[0,1]", "\"frames\":[0,3]" },
		{ "\"frames\":[0,1]", "\"frames\":[0,-1]" },
		{ "\"frames\":[0,1]", "\"frames\":[0,\"1\"]" },
		{ "\"frames\":[0,1]", "\"frames\":0" },
		{ "\"ns\":200", "\"ns\":18446744073709551615" },
		{ "\"ns\":200", "\"ns\":-1" },
		{ "\"cut\":true", "\"cut\":1" },
		{ "\"window_ns\":1000", "\"window_ns\":1e300" },
		{ "\"line\":1", "\"line\":4294967296" },
		{ "\"function\":\"main\"", "\"function\":null" },
		{ "\"pid\":4711,", "" },
		{ "\"pid\":4711,", "\"pid\":4711,\"open_ns\":-1," },
		{ "\"tid\":7,", "\"tid\":7,\"open_ns\":\"1\"," },
	};
	struct lines *lines = (struct lines *)1;

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = NULL;
		CLEANUP_FREE char *text = damaged(rows[i].from, rows[i].to);

		assert_int_equal(read_text(text, &doc, &lines), -EPROTO);
		assert_ptr_equal(lines, (struct lines *)1);
	}
	assert_int_equal(lines_read(NULL, &lines), -EPROTO);
}

/* The indexes of a stack that is too deep, and of too many stacks. */
static void large_replies_are_refused(void **state)
{
	CLEANUP_FREE char *deep = calloc(1, 8 << 20);
	struct lines *lines;

	assert_non_null(deep);
	for (u32 nr_stacks = 0; nr_stacks < 2; nr_stacks++) {
		CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = NULL;
		CLEANUP_FREE char *text = NULL;
		char *end = deep + sprintf(deep, nr_stacks ? "\"stacks\":[" : "\"frames\":[0");

		for (u32 i = 0; i < (nr_stacks ? LINES_STACKS_MAX : LINES_DEPTH_MAX); i++)
			end += sprintf(end, nr_stacks ? "{\"frames\":[]}," : ",0");
		sprintf(end, nr_stacks ? "{" : "]");
		text = nr_stacks ? damaged("\"stacks\":[{", deep)
				 : damaged("\"frames\":[0,1]", deep);
		assert_int_equal(read_text(text, &doc, &lines), -E2BIG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentence_names_lines_by_time),
		cmocka_unit_test(open_time_makes_upper_bounds),
		cmocka_unit_test(tree_adds_up),
		cmocka_unit_test(text_is_a_tree),
		cmocka_unit_test(library_calls_are_marked),
		cmocka_unit_test(kernels_around_idle_time_are_named),
		cmocka_unit_test(loaders_are_not_between_kernels),
		cmocka_unit_test(text_has_colours_on_a_terminal),
		cmocka_unit_test(folded_has_every_path),
		cmocka_unit_test(every_cause_has_a_title),
		cmocka_unit_test(stacks_that_overlap_are_scaled),
		cmocka_unit_test(cut_and_empty_stacks),
		cmocka_unit_test(no_samples),
		cmocka_unit_test(names_are_cleaned),
		cmocka_unit_test(many_deep_stacks),
		cmocka_unit_test(reply_is_read),
		cmocka_unit_test(open_time_is_read),
		cmocka_unit_test(invalid_replies_are_refused),
		cmocka_unit_test(large_replies_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
