/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ipc/snapshot_json.h"
#include <errno.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "ipc/json.h"
#include "ipc/snapshot_fields.h"

/* Elements of a long list that are written at once. */
#define PIECE_ELEMENTS 256

static bool put_counts(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct field *field,
		       const void *values)
{
	bool ok = object != NULL;

	for (u32 i = 0; ok && i < field->nr; i++) {
		u64 value = field->type == FIELD_COUNTS ? ((const u64 *)values)[i]
							: ((const u32 *)values)[i];

		ok = yyjson_mut_obj_add_uint(doc, object, field->label(i), value);
	}
	return ok;
}

static bool put_labels(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct field *field,
		       u32 set)
{
	bool ok = list != NULL;

	for (u32 i = 0; ok && i < field->nr; i++)
		if (set & (1U << i))
			ok = yyjson_mut_arr_add_str(doc, list, field->label(i));
	return ok;
}

_Static_assert(SNAPSHOT_GPU_UNKNOWN == SNAPSHOT_UID_UNKNOWN, "both are null in JSON");

static bool put_or_null(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, u32 number)
{
	return number == SNAPSHOT_GPU_UNKNOWN ? yyjson_mut_obj_add_null(doc, object, key)
					      : yyjson_mut_obj_add_uint(doc, object, key, number);
}

static bool put_field(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct field *field,
		      const void *base)
{
	const void *at = (const char *)base + field->offset;

	switch (field->type) {
	case FIELD_U32: return yyjson_mut_obj_add_uint(doc, object, field->key, *(const u32 *)at);
	case FIELD_GPU:
	case FIELD_UID: return put_or_null(doc, object, field->key, *(const u32 *)at);
	case FIELD_S32: return yyjson_mut_obj_add_int(doc, object, field->key, *(const s32 *)at);
	case FIELD_U64: return yyjson_mut_obj_add_uint(doc, object, field->key, *(const u64 *)at);
	case FIELD_BOOL: return yyjson_mut_obj_add_bool(doc, object, field->key, *(const u8 *)at);
	case FIELD_PERMILLE:
		return yyjson_mut_obj_add_real(doc, object, field->key, *(const u32 *)at / 1000.0);
	case FIELD_TEXT: return yyjson_mut_obj_add_str(doc, object, field->key, at);
	case FIELD_LABEL:
		return yyjson_mut_obj_add_str(doc, object, field->key,
					      field->label(*(const u32 *)at));
	case FIELD_LABELS:
		return put_labels(doc, yyjson_mut_obj_add_arr(doc, object, field->key), field,
				  *(const u32 *)at);
	case FIELD_COUNTS:
	case FIELD_COUNTS32:
		return put_counts(doc, yyjson_mut_obj_add_obj(doc, object, field->key), field, at);
	}
	return false;
}

static bool put_fields(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct field *field,
		       const void *base)
{
	bool ok = object != NULL;

	for (; ok && field->key; field++)
		ok = put_field(doc, object, field, base);
	return ok;
}

/* Writes non-empty buckets as pairs of index and count, and adds p50 and p99 for browsers. */
static bool put_hist(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct hist *hist)
{
	yyjson_mut_val *buckets;
	bool ok = put_fields(doc, object, hist_fields, hist) &&
		  yyjson_mut_obj_add_uint(doc, object, "p50", hist_quantile(hist, 500)) &&
		  yyjson_mut_obj_add_uint(doc, object, "p99", hist_quantile(hist, 990));

	buckets = ok ? yyjson_mut_obj_add_arr(doc, object, "buckets") : NULL;
	ok = buckets != NULL;
	for (u32 i = 0; ok && i < HIST_SLOTS; i++) {
		yyjson_mut_val *pair;

		if (!hist->buckets[i])
			continue;
		pair = yyjson_mut_arr_add_arr(doc, buckets);
		ok = pair && yyjson_mut_arr_add_uint(doc, pair, i) &&
		     yyjson_mut_arr_add_uint(doc, pair, hist->buckets[i]);
	}
	return ok;
}

static bool put_hists(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
		      const struct snapshot *s, const struct snapshot_hists *hists)
{
	yyjson_mut_val *all = yyjson_mut_obj_add_obj(doc, object, key);
	bool ok = all != NULL;

	for (u32 kind = 0; ok && kind < HIST_KIND_NR; kind++) {
		const struct hist *hist = snapshot_hist(s, hists, kind);

		if (hist)
			ok = put_hist(doc,
				      yyjson_mut_obj_add_obj(doc, all, snapshot_hist_label(kind)),
				      hist);
	}
	return ok;
}

/* The fractions are for people; programs can compute them from the times. */
static bool put_task(yyjson_mut_doc *doc, yyjson_mut_val *task,
		     const struct snapshot_process *process)
{
	yyjson_mut_val *fractions;
	bool ok = put_fields(doc, task, task_fields, process);

	fractions = ok ? yyjson_mut_obj_add_obj(doc, task, "phase_fraction") : NULL;
	ok = fractions != NULL;
	for (u32 i = 0; ok && i < PHASE_NR; i++)
		ok = yyjson_mut_obj_add_real(doc, fractions, phase_name(i),
					     phase_fraction(process->phase_ns, i));
	return ok;
}

static bool put_oom(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct snapshot_oom *oom)
{
	yyjson_mut_val *value = yyjson_mut_obj_add_obj(doc, object, "oom");
	bool ok = put_fields(doc, value, oom_fields, oom);
	yyjson_mut_val *others = yyjson_mut_obj_add_arr(doc, value, "others");

	for (u32 i = 0; ok && i < oom->nr_others; i++)
		ok = put_fields(doc, yyjson_mut_arr_add_obj(doc, others), oom_other_fields,
				&oom->others[i]);
	return ok;
}

static bool put_process(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct snapshot *s,
			u32 i)
{
	const struct snapshot_process *process = &s->processes[i];
	bool ok = put_fields(doc, object, process_fields, process);
	yyjson_mut_val *memory = yyjson_mut_obj_add_arr(doc, object, "memory");
	yyjson_mut_val *culprits = yyjson_mut_obj_add_arr(doc, object, "culprits");

	ok = ok && memory && culprits &&
	     put_fields(doc, yyjson_mut_obj_add_obj(doc, object, "counted"), account_fields,
			&process->counted);
	if (ok && process->task.known)
		ok = put_task(doc, yyjson_mut_obj_add_obj(doc, object, "task"), process);
	for (u32 m = 0; ok && m < process->nr_memory; m++)
		ok = put_fields(doc, yyjson_mut_arr_add_obj(doc, memory), memory_fields,
				&process->memory[m]);
	for (u32 c = 0; ok && c < process->nr_culprits; c++)
		ok = put_fields(doc, yyjson_mut_arr_add_obj(doc, culprits), culprit_fields,
				&process->culprits[c]);
	if (ok && process->oom.nr)
		ok = put_oom(doc, object, &process->oom);
	return ok && put_hists(doc, object, "hists", s, &process->hists);
}

static bool put_thread(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct snapshot *s, u32 i)
{
	return put_fields(doc, object, thread_fields, &s->threads[i]);
}

static bool put_comm(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct snapshot *s, u32 i)
{
	const struct snapshot_comm *comm = &s->comms[i];
	bool ok = put_fields(doc, object, comm_fields, comm);
	yyjson_mut_val *calls = ok ? yyjson_mut_obj_add_arr(doc, object, "calls") : NULL;

	ok = calls != NULL;
	for (u32 c = 0; ok && c < comm->nr_calls; c++)
		ok = put_fields(doc, yyjson_mut_arr_add_obj(doc, calls), call_fields,
				&comm->calls[c]);
	return ok;
}

typedef bool (*put_element_fn)(yyjson_mut_doc *doc, yyjson_mut_val *object,
			       const struct snapshot *s, u32 i);

/* Adds elements of a list, without the brackets. */
static int add_piece(struct text *text, const struct snapshot *s, u32 first, u32 end,
		     put_element_fn put)
{
	CLEANUP(yyjson_mut_doc_free_cleanup) yyjson_mut_doc *piece = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *elements = piece ? yyjson_mut_arr(piece) : NULL;
	CLEANUP_FREE char *written = NULL;
	bool ok = elements != NULL;
	size_t length;

	for (u32 i = first; ok && i < end; i++)
		ok = put(piece, yyjson_mut_arr_add_obj(piece, elements), s, i);
	if (!ok)
		return -ENOMEM;
	yyjson_mut_doc_set_root(piece, elements);
	written = yyjson_mut_write(piece, 0, &length);
	if (!written)
		return -ENOMEM;
	if (first)
		text_add_string(text, ",");
	text_add(text, written + 1, length - 2);
	return 0;
}

/* A value needs several times the memory of its text, so long lists are written in pieces. */
static int add_long_list(struct text *text, const char *key, const struct snapshot *s, u32 nr,
			 put_element_fn put)
{
	int err = 0;

	text_add_string(text, ",\"");
	text_add_string(text, key);
	text_add_string(text, "\":[");
	for (u32 i = 0; err == 0 && i < nr; i += PIECE_ELEMENTS)
		err = add_piece(text, s, i, i + PIECE_ELEMENTS < nr ? i + PIECE_ELEMENTS : nr, put);
	text_add_string(text, "]");
	return err;
}

static bool put_gpu(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct snapshot_gpu *gpu)
{
	bool ok = put_fields(doc, object, gpu_fields, gpu);

	for (u32 i = 0; ok && i < GPU_OPTIONAL_NR; i++)
		if (gpu->valid & gpu_optional_fields[i].bit)
			ok = put_field(doc, object, &gpu_optional_fields[i].field, gpu);
	return ok;
}

static bool put_sched(yyjson_mut_doc *doc, yyjson_mut_val *object,
		      const struct snapshot_sched *sched)
{
	bool ok = put_fields(doc, object, sched_fields, sched);
	yyjson_mut_val *classes = ok ? yyjson_mut_obj_add_obj(doc, object, "classes") : NULL;

	ok = classes != NULL;
	for (u32 i = 0; ok && i < CLASS_NR; i++) {
		yyjson_mut_val *one = yyjson_mut_obj_add_obj(doc, classes, sched_class_label(i));

		ok = put_fields(doc, one, class_fields, &sched->classes[i]) &&
		     put_hist(doc, yyjson_mut_obj_add_obj(doc, one, "runqueue_wait"),
			      &sched->classes[i].runqueue_wait);
	}
	return ok;
}

static bool put_ranks(yyjson_mut_doc *doc, yyjson_mut_val *object,
		      const struct snapshot_ranks *ranks)
{
	yyjson_mut_val *all = yyjson_mut_obj_add_arr(doc, object, "gone_ranks");
	bool ok = all != NULL;

	for (u32 i = 0; ok && i < ranks->nr; i++) {
		yyjson_mut_val *rank = yyjson_mut_arr_add_obj(doc, all);

		ok = put_fields(doc, rank, rank_fields, &ranks->ranks[i]) &&
		     put_fields(doc, rank, account_fields, &ranks->ranks[i].account);
	}
	return ok;
}

static bool put_jobs(yyjson_mut_doc *doc, yyjson_mut_val *jobs, const struct snapshot *s)
{
	bool ok = jobs != NULL;

	for (u32 i = 0; ok && i < s->nr_jobs; i++) {
		yyjson_mut_val *job = yyjson_mut_arr_add_obj(doc, jobs);

		ok = put_fields(doc, job, job_fields, &s->jobs[i]) &&
		     put_ranks(doc, job, &s->jobs[i].gone_ranks) &&
		     put_hists(doc, job, "gone", s, &s->jobs[i].gone);
	}
	return ok;
}

/* The members before the long lists. */
static bool put_begin(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct snapshot *s)
{
	return root && yyjson_mut_obj_add_uint(doc, root, "version", SNAPSHOT_VERSION) &&
	       put_fields(doc, root, snapshot_fields, s) &&
	       put_jobs(doc, yyjson_mut_obj_add_arr(doc, root, "jobs"), s);
}

static bool put_short_lists(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct snapshot *s)
{
	yyjson_mut_val *gpus = yyjson_mut_obj_add_arr(doc, root, "gpus");
	yyjson_mut_val *quotas = yyjson_mut_obj_add_arr(doc, root, "over_quota");
	bool ok = gpus && quotas;

	for (u32 i = 0; ok && i < s->nr_gpus; i++)
		ok = put_gpu(doc, yyjson_mut_arr_add_obj(doc, gpus), &s->gpus[i]);
	for (u32 i = 0; ok && i < s->nr_over_quota; i++)
		ok = put_fields(doc, yyjson_mut_arr_add_obj(doc, quotas), quota_fields,
				&s->over_quota[i]);
	return ok;
}

/* The members after the long lists. */
static bool put_end(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct snapshot *s)
{
	return root && put_short_lists(doc, root, s) && put_ranks(doc, root, &s->gone_ranks) &&
	       put_hists(doc, root, "gone", s, &s->gone) &&
	       put_fields(doc, yyjson_mut_obj_add_obj(doc, root, "phase_detection"),
			  phase_detection_fields, &s->phase_detection) &&
	       put_sched(doc, yyjson_mut_obj_add_obj(doc, root, "scheduler"), &s->sched) &&
	       put_fields(doc, yyjson_mut_obj_add_obj(doc, root, "learning"), learning_fields,
			  &s->learning) &&
	       put_fields(doc, yyjson_mut_obj_add_obj(doc, root, "probes"), probes_fields,
			  &s->probes) &&
	       put_fields(doc, yyjson_mut_obj_add_obj(doc, root, "cost"), cost_fields, &s->cost);
}

int snapshot_write(snapshot_put_fn put, const struct snapshot *snapshot, char **ret_text,
		   size_t *ret_len)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = doc ? yyjson_mut_obj(doc) : NULL;
	char *text = NULL;

	if (put(doc, root, snapshot)) {
		yyjson_mut_doc_set_root(doc, root);
		text = yyjson_mut_write(doc, 0, ret_len);
	}
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	return 0;
}

/* Adds the members of an object, without the braces. */
static int add_members(struct text *text, const struct snapshot *s, snapshot_put_fn put)
{
	CLEANUP_FREE char *object = NULL;
	size_t length;
	int err = snapshot_write(put, s, &object, &length);

	if (err == 0)
		text_add(text, object + 1, length - 2);
	return err;
}

int snapshot_add_json(const struct snapshot *s, struct text *text)
{
	int err;

	text_add_string(text, "{");
	if ((err = add_members(text, s, put_begin)) < 0 ||
	    (err = add_long_list(text, "processes", s, s->nr_processes, put_process)) < 0 ||
	    (err = add_long_list(text, "threads", s, s->nr_threads, put_thread)) < 0 ||
	    (err = add_long_list(text, "communicators", s, s->nr_comms, put_comm)) < 0)
		return err;
	text_add_string(text, ",");
	err = add_members(text, s, put_end);
	text_add_string(text, "}");
	return err;
}

int snapshot_to_json(const struct snapshot *snapshot, char **ret_text, size_t *ret_len)
{
	CLEANUP_TEXT struct text text = {};
	int err = snapshot_add_json(snapshot, &text);

	if (err == 0)
		err = text_end(&text);
	if (err < 0)
		return err;
	*ret_len = text.length;
	*ret_text = TAKE_PTR(text.data);
	return 0;
}
