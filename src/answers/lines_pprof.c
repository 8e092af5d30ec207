/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The profile format of pprof. A message that is written in parts is the same as one that is
 * written at once, so each part goes to the file when it is made. Readers accept files that are
 * not compressed.
 */
#include <errno.h>
#include <pb_encode.h>
#include <stdlib.h>
#include <string.h>
#include "answers/lines_internal.h"
#include "answers/pprof.pb.h"
#include "base/cleanup.h"
#include "core/process.h"
#include "core/snapshot.h"

#define TEXT_LEN 4096

/*
 * The first strings of the table. Two strings for each location follow, function and file, and the
 * labels of all kernels.
 */
enum text {
	TEXT_EMPTY,
	TEXT_SAMPLES,
	TEXT_COUNT,
	TEXT_IDLE,
	TEXT_NANOSECONDS,
	TEXT_CAUSE,
	TEXT_ROLE,
	TEXT_THREAD,
	TEXT_AFTER,
	TEXT_BEFORE,
	TEXT_FIRST_CAUSE,
	TEXT_FIRST_ROLE = TEXT_FIRST_CAUSE + IDLE_CAUSE_NR + 1,
	TEXT_NR = TEXT_FIRST_ROLE + ROLE_NR + 1,
};

struct profile {
	pb_ostream_t out;
	const struct lines_frame **frames; /* a location for each one, sorted */
	u32 nr_frames;
	const struct lines *lines;
};

static bool put_bytes(pb_ostream_t *stream, const pb_byte_t *bytes, size_t nr)
{
	return fwrite(bytes, 1, nr, stream->state) == nr;
}

/* Only the stream can fail, and ferror() reports it later. */
static void put(struct profile *profile, u32 tag, const pb_msgdesc_t *fields, const void *message)
{
	if (pb_encode_tag(&profile->out, PB_WT_STRING, tag))
		pb_encode_submessage(&profile->out, fields, message);
}

static void put_text(struct profile *profile, const char *text)
{
	char clean[TEXT_LEN];

	lines_clean(clean, sizeof(clean), text);
	if (pb_encode_tag(&profile->out, PB_WT_STRING, Profile_string_table_tag))
		pb_encode_string(&profile->out, (const pb_byte_t *)clean, strlen(clean));
}

static int compare_frames(const void *a, const void *b)
{
	return lines_frame_compare(*(const struct lines_frame *const *)a,
				   *(const struct lines_frame *const *)b);
}

static int find_frames(struct profile *profile, const struct lines_tree *tree)
{
	u32 nr = 0;

	profile->frames = calloc(tree->nr_nodes, sizeof(*profile->frames));
	if (!profile->frames)
		return -ENOMEM;
	for (u32 i = 0; i < tree->nr_nodes; i++)
		if (tree->nodes[i].frame)
			profile->frames[nr++] = tree->nodes[i].frame;
	qsort(profile->frames, nr, sizeof(*profile->frames), compare_frames);
	for (u32 i = 0; i < nr; i++)
		if (!profile->nr_frames ||
		    compare_frames(&profile->frames[profile->nr_frames - 1], &profile->frames[i]))
			profile->frames[profile->nr_frames++] = profile->frames[i];
	return 0;
}

static u64 location_of(const struct profile *profile, const struct lines_frame *frame)
{
	const struct lines_frame **found = bsearch(&frame, profile->frames, profile->nr_frames,
						   sizeof(*profile->frames), compare_frames);

	return (u64)(found - profile->frames) + 1;
}

/* Adds the label of a kernel that is known. */
static void add_kernel(const struct profile *profile, Sample *sample, s64 key,
		       const struct lines_kernel *kernel)
{
	if (kernel)
		sample->label[sample->label_count++] =
			(Label){ .key = key,
				 .has_str = true,
				 .str = TEXT_NR + 2 * (s64)profile->nr_frames +
					(kernel - profile->lines->kernels) };
}

/* Locations are innermost first. */
static void put_stack(struct profile *profile, const struct lines_stack *stack)
{
	uint64_t locations[LINES_DEPTH_MAX + 1];
	u32 depth = lines_stack_depth(stack), nr = 0;
	int64_t values[] = { (int64_t)stack->nr_samples, (int64_t)stack->ns };
	Label labels[5] = {
		{ .key = TEXT_CAUSE, .has_str = true, .str = TEXT_FIRST_CAUSE + stack->cause },
		{ .key = TEXT_ROLE, .has_str = true, .str = TEXT_FIRST_ROLE + stack->role },
		{ .key = TEXT_THREAD, .has_num = true, .num = stack->tid },
	};
	Sample sample = {
		.location_id = locations,
		.value = values,
		.value_count = ARRAY_SIZE(values),
		.label = labels,
		.label_count = 3,
	};

	add_kernel(profile, &sample, TEXT_AFTER, stack->after);
	add_kernel(profile, &sample, TEXT_BEFORE, stack->before);

	while (depth-- > 0 && nr < ARRAY_SIZE(locations))
		locations[nr++] = location_of(profile, lines_stack_frame(stack, depth));
	sample.location_id_count = (pb_size_t)nr;
	put(profile, Profile_sample_tag, Sample_fields, &sample);
}

/* Readers merge functions by their names, so each location may have its own. */
static void put_locations(struct profile *profile)
{
	for (u32 i = 0; i < profile->nr_frames; i++) {
		u32 number = profile->frames[i]->line;
		Line line = { .function_id = i + 1, .has_line = number, .line = number };
		Location location = { .id = i + 1, .line = &line, .line_count = 1 };
		Function function = { .id = i + 1,
				      .name = TEXT_NR + 2 * i,
				      .filename = TEXT_NR + 2 * i + 1 };

		if (!lines_is_known(profile->frames[i]))
			line.has_line = false;
		put(profile, Profile_location_tag, Location_fields, &location);
		put(profile, Profile_function_tag, Function_fields, &function);
	}
}

static void put_texts(struct profile *profile)
{
	static const char *const texts[TEXT_FIRST_CAUSE] = {
		[TEXT_EMPTY] = "",
		[TEXT_SAMPLES] = "samples",
		[TEXT_COUNT] = "count",
		[TEXT_IDLE] = "idle",
		[TEXT_NANOSECONDS] = "nanoseconds",
		[TEXT_CAUSE] = "cause",
		[TEXT_ROLE] = "role",
		[TEXT_THREAD] = "thread",
		[TEXT_AFTER] = "after_kernel",
		[TEXT_BEFORE] = "before_kernel",
	};
	char label[LINES_LABEL_LEN];

	for (u32 i = 0; i < TEXT_FIRST_CAUSE; i++)
		put_text(profile, texts[i]);
	for (u32 i = 0; i <= IDLE_CAUSE_NR; i++)
		put_text(profile, idle_cause_label(i));
	for (u32 i = 0; i <= ROLE_NR; i++)
		put_text(profile, i < ROLE_NR ? role_label(i) : "unknown");
	for (u32 i = 0; i < profile->nr_frames; i++) {
		bool is_known = lines_is_known(profile->frames[i]);

		put_text(profile, is_known ? profile->frames[i]->function : "[unknown]");
		put_text(profile, is_known ? profile->frames[i]->file : "");
	}
	for (u32 i = 0; i < profile->lines->nr_kernels; i++) {
		lines_kernel_label(&profile->lines->kernels[i], label);
		put_text(profile, label);
	}
}

int lines_write_pprof(const struct lines_tree *tree, FILE *out)
{
	ValueType types[] = { { TEXT_SAMPLES, TEXT_COUNT }, { TEXT_IDLE, TEXT_NANOSECONDS } };
	Profile head = {
		.sample_type = types,
		.sample_type_count = ARRAY_SIZE(types),
		.has_duration_nanos = true,
		.duration_nanos = (int64_t)tree->lines->window_ns,
		.has_default_sample_type = true,
		.default_sample_type = TEXT_IDLE,
	};
	struct profile profile = {
		.out = { .callback = put_bytes, .state = out, .max_size = SIZE_MAX },
		.lines = tree->lines,
	};
	int err = find_frames(&profile, tree);

	if (err < 0)
		return err;
	pb_encode(&profile.out, Profile_fields, &head);
	for (u32 i = 0; i < tree->lines->nr_stacks; i++)
		put_stack(&profile, &tree->lines->stacks[i]);
	put_locations(&profile);
	put_texts(&profile);
	free(profile.frames);
	return ferror(out) ? -EIO : 0;
}
