/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names and the sentence. */
#include <string.h>
#include "answers/lines_internal.h"
#include "answers/sentence.h"
#include "answers/why.h"
#include "base/units.h"

/* The sentence names so many places, each with at least so many points. */
#define PLACES_NAMED 4
#define POINTS_MIN   0.5

const char *lines_kind_label(u32 kind)
{
	static const char *const labels[LINES_KIND_NR] = {
		[LINES_PYTHON] = "python",
		[LINES_NATIVE] = "native",
		[LINES_CALL] = "call",
		[LINES_UNKNOWN] = "unknown",
	};

	return labels[kind < LINES_KIND_NR ? kind : LINES_UNKNOWN];
}

/*
 * True for a character, of `text` and the bytes after it, that terminals obey or that XML does not
 * allow: C0 and C1 controls, overrides of the direction of text, U+FFFE and U+FFFF.
 */
static bool is_harmful(const unsigned char *text)
{
	static const struct {
		unsigned char bytes[2], first, last;
	} ranges[] = {
		{ { 0xe2, 0x80 }, 0x8e, 0x8f },
		{ { 0xe2, 0x80 }, 0xa8, 0xae },
		{ { 0xe2, 0x81 }, 0xa6, 0xa9 },
		{ { 0xef, 0xbf }, 0xbe, 0xbf },
	};

	if (text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0))
		return true;
	for (u32 i = 0; i < ARRAY_SIZE(ranges); i++)
		if (text[0] == ranges[i].bytes[0] && text[1] == ranges[i].bytes[1] &&
		    text[2] >= ranges[i].first && text[2] <= ranges[i].last)
			return true;
	return false;
}

void lines_clean(char *to, size_t size, const char *from)
{
	char *read = to, *write = to;

	snapshot_set_text(to, size, from, strlen(from));
	while (*read) {
		bool harmful = is_harmful((const unsigned char *)read);

		*write++ = harmful ? '?' : *read;
		read++;
		while ((*read & 0xc0) == 0x80) {
			if (!harmful)
				*write++ = *read;
			read++;
		}
	}
	*write = '\0';
}

void lines_frame_label(const struct lines_frame *frame, char ret[static LINES_LABEL_LEN])
{
	struct sentence label = { .text = ret, .size = LINES_LABEL_LEN };
	char function[LINES_LABEL_LEN / 2], file[LINES_LABEL_LEN / 3];
	const char *slash;

	ret[0] = '\0';
	if (frame == &lines_cut || !lines_is_known(frame)) {
		sentence_add(&label, "%s", frame == &lines_cut ? frame->function : "[unknown]");
		return;
	}
	lines_clean(function, sizeof(function), frame->function);
	if (frame->kind == LINES_CALL) {
		sentence_add(&label, "%s (library call)", function);
		return;
	}
	slash = strrchr(frame->file, '/');
	lines_clean(file, sizeof(file), slash ? slash + 1 : frame->file);
	/* Python names code that is not a function in angle brackets: <module>. */
	sentence_add(&label, "%s%s%s%s", function, *function == '<' ? "" : "()", *file ? " " : "",
		     file);
	if (frame->line)
		sentence_add(&label, ":%u", frame->line);
}

void lines_label(const struct lines_node *node, char ret[static LINES_LABEL_LEN])
{
	struct sentence label = { .text = ret, .size = LINES_LABEL_LEN };

	ret[0] = '\0';
	if (node->frame)
		lines_frame_label(node->frame, ret);
	else if (node->depth == 0)
		sentence_add(&label, "idle");
	else
		sentence_add(&label, "%s",
			     node->cause < IDLE_CAUSE_NR ? why_cause_title(node->cause)
							 : "unknown cause");
}

/* The watched time by which nanoseconds are divided, such that all stacks fit the idle time. */
static double divisor(const struct lines_tree *tree)
{
	double window = (double)tree->lines->window_ns, idle = (double)tree->lines->idle_ns;
	double sampled = (double)tree->nodes->ns;

	return sampled > idle && idle > 0 ? window * sampled / idle : window;
}

double lines_points(const struct lines_tree *tree, u64 ns)
{
	return tree->lines->window_ns && tree->lines->idle_ns ? 100.0 * (double)ns / divisor(tree)
							      : 0;
}

double lines_idle_points(const struct lines_tree *tree)
{
	const struct lines *lines = tree->lines;

	return lines->window_ns ? 100.0 * (double)lines->idle_ns / (double)lines->window_ns : 0;
}

double lines_open_points(const struct lines_tree *tree)
{
	const struct lines *lines = tree->lines;

	return lines->window_ns ? 100.0 * (double)lines->open_ns / (double)lines->window_ns : 0;
}

bool lines_is_range(const struct lines_tree *tree)
{
	return 10 * lines_open_points(tree) > WHY_RANGE_PERMILLE;
}

double lines_missed_points(const struct lines_tree *tree)
{
	double missed = lines_idle_points(tree) - lines_points(tree, tree->nodes->ns);

	return missed > 0 ? missed : 0;
}

void lines_sentence(const struct lines_tree *tree, char ret[static LINES_SENTENCE_LEN])
{
	struct sentence sentence = { .text = ret, .size = LINES_SENTENCE_LEN };
	double rest = lines_points(tree, tree->nodes->ns);
	char label[LINES_LABEL_LEN];
	bool is_range = lines_is_range(tree);
	u32 nr = 0;

	ret[0] = '\0';
	sentence_add(&sentence, "idle ");
	if (is_range)
		sentence_add(&sentence, "%.0f to ",
			     lines_idle_points(tree) - lines_open_points(tree));
	sentence_add(&sentence, "%.0f %%", lines_idle_points(tree));
	if (!tree->nr_places) {
		sentence_add(&sentence, ": no stack was sampled in %s.",
			     unit_ns(tree->lines->window_ns).text);
		return;
	}
	for (; nr < tree->nr_places && nr < PLACES_NAMED; nr++) {
		double points = lines_points(tree, tree->places[nr].ns);

		if (points < POINTS_MIN)
			break;
		lines_frame_label(tree->places[nr].frame, label);
		sentence_add(&sentence, "%s %s%.0f %sin %s", nr ? "," : ":",
			     is_range && !nr ? "at most " : "", points, nr ? "" : "points ", label);
		rest -= points;
	}
	if (nr && rest >= POINTS_MIN)
		sentence_add(&sentence, ", %.0f in %u other places", rest, tree->nr_places - nr);
	if (lines_missed_points(tree) >= POINTS_MIN)
		sentence_add(&sentence, "%s %.0f not sampled", nr ? "," : ":",
			     lines_missed_points(tree));
	sentence_add(&sentence, ".");
}
