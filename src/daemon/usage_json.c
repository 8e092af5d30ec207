/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/usage_json.h"
#include "base/cleanup.h"
#include "core/usage.h"
#include "ipc/json.h"

static bool put_part(yyjson_mut_doc *doc, yyjson_mut_val *parts, const struct usage *usage, u32 i)
{
	struct usage_part part;
	yyjson_mut_val *row;

	if (!usage_of_part(usage, i, &part))
		return yyjson_mut_arr_add_null(doc, parts);
	row = yyjson_mut_arr_add_obj(doc, parts);
	return row && yyjson_mut_obj_add_uint(doc, row, "reports", part.nr) &&
	       yyjson_mut_obj_add_uint(doc, row, "allocated_bytes", part.allocated_bytes) &&
	       yyjson_mut_obj_add_uint(doc, row, "reserved_bytes", part.reserved_bytes) &&
	       yyjson_mut_obj_add_uint(doc, row, "allocated_most_bytes", part.allocated_most) &&
	       yyjson_mut_obj_add_uint(doc, row, "reserved_then_bytes", part.reserved_then);
}

static bool put_gpu(yyjson_mut_doc *doc, yyjson_mut_val *gpus, u32 gpu, const struct usage *usage,
		    u32 nr_parts)
{
	yyjson_mut_val *row = yyjson_mut_arr_add_obj(doc, gpus), *parts;
	bool is_put = row && (gpu ? yyjson_mut_obj_add_uint(doc, row, "gpu", gpu - 1)
				  : yyjson_mut_obj_add_null(doc, row, "gpu"));

	parts = is_put ? yyjson_mut_obj_add_arr(doc, row, "parts") : NULL;
	is_put = parts;
	for (u32 i = 0; is_put && i < nr_parts; i++)
		is_put = put_part(doc, parts, usage, i);
	return is_put;
}

/* Parts that had not begun when the watch ended are left out. */
static u32 nr_begun(const struct usage_head *head, const struct usage *usage)
{
	u64 nr = head->window_ns / head->part_ns + (head->window_ns % head->part_ns > 0);
	u32 nr_reported = usage_nr_parts(usage);

	if (nr < nr_reported)
		return nr_reported;
	return nr < USAGE_PARTS ? (u32)nr : USAGE_PARTS;
}

static bool put_gpus(yyjson_mut_doc *doc, yyjson_mut_val *gpus, const struct kernel *kernel,
		     const struct usage_head *head)
{
	struct usage_key key = { .tgid = head->process->task.pid };
	struct gpu_numbers numbers = {};
	bool is_put = true;

	(void)kernel_gpu_numbers(kernel, head->process, &numbers);
	for (; is_put && key.device < GPU_MAX; key.device++) {
		struct usage usage;

		if (kernel_read_usage(kernel, &key, &usage) == 0)
			is_put = put_gpu(doc, gpus, numbers.of[key.device], &usage,
					 nr_begun(head, &usage));
	}
	return is_put;
}

struct message *usage_to_json(const struct kernel *kernel, const struct usage_head *head)
{
	CLEANUP(yyjson_mut_doc_free_cleanup) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *usage, *gpus;
	size_t length = 0;
	char *text = NULL;

	if (!root)
		return NULL;
	yyjson_mut_doc_set_root(doc, root);
	usage = yyjson_mut_obj_add_obj(doc, root, "usage");
	if (!usage || !yyjson_mut_obj_add_uint(doc, usage, "pid", head->process->task.pid) ||
	    !yyjson_mut_obj_add_uint(doc, usage, "start_ns", head->process->start_ns) ||
	    !yyjson_mut_obj_add_uint(doc, usage, "window_ns", head->window_ns) ||
	    !yyjson_mut_obj_add_uint(doc, usage, "part_ns", head->part_ns))
		return NULL;
	gpus = yyjson_mut_obj_add_arr(doc, usage, "gpus");
	if (gpus && put_gpus(doc, gpus, kernel, head))
		text = yyjson_mut_write(doc, 0, &length);
	return message_new(text, length);
}
