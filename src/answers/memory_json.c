/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include "answers/memory.h"
#include "ipc/json.h"

static void add_gpu_number(yyjson_mut_doc *doc, yyjson_mut_val *object, u32 gpu)
{
	if (gpu == SNAPSHOT_GPU_UNKNOWN)
		yyjson_mut_obj_add_null(doc, object, "gpu");
	else
		yyjson_mut_obj_add_uint(doc, object, "gpu", gpu);
}

static void add_name(yyjson_mut_doc *doc, yyjson_mut_val *object, u32 pid, const char *comm)
{
	yyjson_mut_obj_add_uint(doc, object, "pid", pid);
	yyjson_mut_obj_add_str(doc, object, "comm", comm);
}

void memory_oom_to_json(const struct snapshot_process *process, yyjson_mut_doc *doc,
			yyjson_mut_val *object)
{
	const struct snapshot_oom *oom = &process->oom;
	yyjson_mut_val *value = yyjson_mut_obj_add_obj(doc, object, "oom"), *others;
	char sentence[MEMORY_SENTENCE_LEN];

	memory_oom_sentence(process, sentence);
	yyjson_mut_obj_add_strcpy(doc, value, "answer", sentence);
	yyjson_mut_obj_add_uint(doc, value, "errors", oom->nr);
	yyjson_mut_obj_add_uint(doc, value, "time_ms", oom->time_ms);
	yyjson_mut_obj_add_uint(doc, value, "tid", oom->tid);
	add_gpu_number(doc, value, oom->gpu);
	yyjson_mut_obj_add_uint(doc, value, "asked_bytes", oom->asked_bytes);
	yyjson_mut_obj_add_uint(doc, value, "allocated_bytes", oom->allocated_bytes);
	yyjson_mut_obj_add_uint(doc, value, "reserved_bytes", oom->reserved_bytes);
	yyjson_mut_obj_add_uint(doc, value, "unused_bytes", memory_unused(oom));
	if (!oom->others_ns)
		return;
	yyjson_mut_obj_add_uint(doc, value, "nr_others", oom->nr_holders);
	yyjson_mut_obj_add_uint(doc, value, "others_bytes", oom->others_bytes);
	others = yyjson_mut_obj_add_arr(doc, value, "others");
	for (u32 i = 0; i < oom->nr_others; i++) {
		yyjson_mut_val *other = yyjson_mut_arr_add_obj(doc, others);

		if (oom->others[i].pid)
			add_name(doc, other, oom->others[i].pid, oom->others[i].comm);
		yyjson_mut_obj_add_uint(doc, other, "bytes", oom->others[i].bytes);
	}
}

static void add_gpus(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct snapshot *s)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "gpus");

	for (u32 i = 0; i < s->nr_gpus; i++) {
		const struct snapshot_gpu *gpu = &s->gpus[i];
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);

		yyjson_mut_obj_add_uint(doc, object, "gpu", gpu->gpu);
		if (gpu->valid & SNAPSHOT_GPU_MEMORY_USED)
			yyjson_mut_obj_add_uint(doc, object, "used_bytes", gpu->memory_used_bytes);
		if (gpu->valid & SNAPSHOT_GPU_MEMORY_TOTAL)
			yyjson_mut_obj_add_uint(doc, object, "total_bytes",
						gpu->memory_total_bytes);
	}
}

int memory_to_json(const struct memory_report *report, char **ret, size_t *ret_length)
{
	CLEANUP(yyjson_mut_doc_free_cleanup) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "time_ms", report->snapshot->time_ms);
	add_gpus(doc, root, report->snapshot);
	list = yyjson_mut_obj_add_arr(doc, root, "processes");
	for (u32 i = 0; i < report->nr_holders; i++) {
		const struct memory_holder *holder = &report->holders[i];
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);

		add_name(doc, object, holder->process->pid, holder->process->comm);
		add_gpu_number(doc, object, holder->memory->gpu);
		yyjson_mut_obj_add_uint(doc, object, "current_bytes",
					holder->memory->book.current_bytes);
		yyjson_mut_obj_add_uint(doc, object, "peak_bytes", holder->memory->book.peak_bytes);
		yyjson_mut_obj_add_uint(doc, object, "allocs", holder->memory->book.nr_allocs);
		yyjson_mut_obj_add_uint(doc, object, "frees", holder->memory->book.nr_frees);
	}
	list = yyjson_mut_obj_add_arr(doc, root, "out_of_memory");
	for (u32 i = 0; i < report->nr_ooms; i++) {
		const struct memory_oom *oom = &report->ooms[i];
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);

		add_name(doc, object, oom->process->pid, oom->process->comm);
		memory_oom_to_json(oom->process, doc, object);
		if (oom->stack)
			lines_add_stack(oom->stack, doc, yyjson_mut_obj_get(object, "oom"));
	}
	text = yyjson_mut_write(doc, 0, ret_length);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}
