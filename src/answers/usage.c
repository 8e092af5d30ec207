/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/usage.h"
#include <errno.h>
#include <stdlib.h>
#include "answers/numbers.h"
#include "answers/sentence.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "core/snapshot.h"
#include "ipc/json.h"

#define WINDOW_NS_MAX (1ULL << 48)

/* Less unused memory than this share of the reserved memory is no reason for advice. */
#define UNUSED_PERCENT 20

static int read_part(yyjson_val *value, struct usage_gpu *gpu)
{
	struct usage_part *part = &gpu->parts[gpu->nr_parts];
	const struct number numbers[] = {
		{ "reports", WINDOW_NS_MAX, &part->nr },
		{ "allocated_bytes", USAGE_BYTES_MAX, &part->allocated_bytes },
		{ "reserved_bytes", USAGE_BYTES_MAX, &part->reserved_bytes },
		{ "allocated_most_bytes", USAGE_BYTES_MAX, &part->allocated_most },
		{ "reserved_then_bytes", USAGE_BYTES_MAX, &part->reserved_then },
		{},
	};

	if (gpu->nr_parts == USAGE_PARTS ||
	    (!yyjson_is_null(value) && numbers_read(value, numbers) < 0))
		return -EPROTO;
	gpu->nr_reports += part->nr;
	gpu->is_known[gpu->nr_parts++] = !yyjson_is_null(value);
	return 0;
}

static int read_gpu(yyjson_val *value, struct usage_gpu *gpu)
{
	yyjson_val *number = yyjson_obj_get(value, "gpu"), *part;
	u64 gpu_number = SNAPSHOT_GPU_UNKNOWN;
	yyjson_arr_iter parts;

	if (!yyjson_is_null(number) &&
	    numbers_read(value, (struct number[]){ { "gpu", UINT16_MAX, &gpu_number }, {} }) < 0)
		return -EPROTO;
	gpu->gpu = (u32)gpu_number;
	if (!yyjson_is_arr(yyjson_obj_get(value, "parts")))
		return -EPROTO;
	yyjson_arr_iter_init(yyjson_obj_get(value, "parts"), &parts);
	while ((part = yyjson_arr_iter_next(&parts)))
		if (read_part(part, gpu) < 0)
			return -EPROTO;
	return 0;
}

int usage_read(yyjson_val *value, struct usage_report **ret)
{
	CLEANUP(usage_free_cleanup) struct usage_report *report = calloc(1, sizeof(*report));
	yyjson_val *gpus = yyjson_obj_get(value, "gpus"), *gpu;
	yyjson_arr_iter iter;
	u64 pid;

	if (!report)
		return -ENOMEM;
	if (numbers_read(value,
			 (struct number[]){ { "pid", INT32_MAX, &pid },
					    { "window_ns", WINDOW_NS_MAX, &report->window_ns },
					    { "part_ns", WINDOW_NS_MAX, &report->part_ns },
					    {} }) < 0 ||
	    !yyjson_is_arr(gpus))
		return -EPROTO;
	report->pid = (u32)pid;
	yyjson_arr_iter_init(gpus, &iter);
	while ((gpu = yyjson_arr_iter_next(&iter)))
		if (report->nr_gpus == GPU_MAX ||
		    read_gpu(gpu, &report->gpus[report->nr_gpus++]) < 0)
			return -EPROTO;
	*ret = TAKE_PTR(report);
	return 0;
}

struct usage_report *usage_free(struct usage_report *report)
{
	free(report);
	return NULL;
}

u64 usage_unused(const struct usage_part *part)
{
	return part->reserved_then > part->allocated_most
		       ? part->reserved_then - part->allocated_most
		       : 0;
}

double usage_unused_percent(const struct usage_part *part)
{
	return part->reserved_then
		       ? 100.0 * (double)usage_unused(part) / (double)part->reserved_then
		       : 0;
}

static const struct usage_part *find_most(const struct usage_gpu *gpu)
{
	const struct usage_part *most = &gpu->parts[0];

	for (u32 i = 1; i < gpu->nr_parts; i++)
		if (gpu->parts[i].allocated_most > most->allocated_most)
			most = &gpu->parts[i];
	return most;
}

void usage_sentence(const struct usage_gpu *gpu, char ret[static USAGE_SENTENCE_LEN])
{
	struct sentence sentence = { .text = ret, .size = USAGE_SENTENCE_LEN };
	const struct usage_part *most = find_most(gpu);
	u64 unused = usage_unused(most);

	ret[0] = '\0';
	if (gpu->gpu == SNAPSHOT_GPU_UNKNOWN)
		sentence_add(&sentence, "An unknown GPU: ");
	else
		sentence_add(&sentence, "GPU %u: ", gpu->gpu);
	sentence_add(
		&sentence,
		"PyTorch allocated at most %s; of the %s that it had reserved then, %s (%.0f %%) "
		"was unused.",
		unit_bytes(most->allocated_most).text, unit_bytes(most->reserved_then).text,
		unit_bytes(unused).text, usage_unused_percent(most));
	if (unused * 100 > most->reserved_then * UNUSED_PERCENT)
		sentence_add(&sentence,
			     " It is in pieces that are too small (fragmentation), or left from an "
			     "earlier peak; other processes cannot use it.");
}

static void add_part(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct usage_gpu *gpu, u32 i)
{
	const struct usage_part *part = &gpu->parts[i];
	yyjson_mut_val *object;

	if (!gpu->is_known[i]) {
		yyjson_mut_arr_add_null(doc, list);
		return;
	}
	object = yyjson_mut_arr_add_obj(doc, list);
	yyjson_mut_obj_add_uint(doc, object, "reports", part->nr);
	yyjson_mut_obj_add_uint(doc, object, "allocated_bytes", part->allocated_bytes);
	yyjson_mut_obj_add_uint(doc, object, "reserved_bytes", part->reserved_bytes);
	yyjson_mut_obj_add_uint(doc, object, "allocated_most_bytes", part->allocated_most);
	yyjson_mut_obj_add_uint(doc, object, "reserved_then_bytes", part->reserved_then);
	yyjson_mut_obj_add_uint(doc, object, "unused_bytes", usage_unused(part));
}

static void add_gpu(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct usage_gpu *gpu)
{
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list), *parts;
	char sentence[USAGE_SENTENCE_LEN];

	usage_sentence(gpu, sentence);
	if (gpu->gpu == SNAPSHOT_GPU_UNKNOWN)
		yyjson_mut_obj_add_null(doc, object, "gpu");
	else
		yyjson_mut_obj_add_uint(doc, object, "gpu", gpu->gpu);
	yyjson_mut_obj_add_strcpy(doc, object, "answer", sentence);
	yyjson_mut_obj_add_uint(doc, object, "reports", gpu->nr_reports);
	parts = yyjson_mut_obj_add_arr(doc, object, "parts");
	for (u32 i = 0; i < gpu->nr_parts; i++)
		add_part(doc, parts, gpu, i);
}

int usage_to_json(const struct usage_report *report, char **ret, size_t *ret_length)
{
	CLEANUP(yyjson_mut_doc_free_cleanup) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *gpus;

	if (!root)
		return -ENOMEM;
	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "pid", report->pid);
	yyjson_mut_obj_add_uint(doc, root, "window_ns", report->window_ns);
	yyjson_mut_obj_add_uint(doc, root, "part_ns", report->part_ns);
	gpus = yyjson_mut_obj_add_arr(doc, root, "gpus");
	for (u32 i = 0; i < report->nr_gpus; i++)
		add_gpu(doc, gpus, &report->gpus[i]);
	*ret = yyjson_mut_write(doc, 0, ret_length);
	return *ret ? 0 : -ENOMEM;
}
