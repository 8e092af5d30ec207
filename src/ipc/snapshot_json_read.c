/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses a snapshot from an untrusted source. A single value of the wrong type or out of
 * its range makes the whole snapshot invalid (-EBADMSG).
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include "base/cleanup.h"
#include "ipc/json_parts.h"
#include "ipc/snapshot_fields.h"
#include "ipc/snapshot_json.h"

static int get_u64(yyjson_val *value, u64 max, u64 *ret)
{
	if (!yyjson_is_uint(value) || yyjson_get_uint(value) > max)
		return -EBADMSG;
	*ret = yyjson_get_uint(value);
	return 0;
}

static int get_u32(yyjson_val *value, u32 *ret)
{
	u64 number;
	int err = get_u64(value, UINT_MAX, &number);

	if (err < 0)
		return err;
	*ret = (u32)number;
	return 0;
}

static int get_or_null(yyjson_val *value, u32 *ret)
{
	u64 number = SNAPSHOT_GPU_UNKNOWN;

	if (!yyjson_is_null(value) && get_u64(value, SNAPSHOT_GPU_UNKNOWN - 1, &number) < 0)
		return -EBADMSG;
	*ret = (u32)number;
	return 0;
}

static int get_s32(yyjson_val *value, s32 *ret)
{
	s64 number = yyjson_get_sint(value);

	if (!yyjson_is_int(value) || (yyjson_is_uint(value) && yyjson_get_uint(value) > INT_MAX) ||
	    number < INT_MIN)
		return -EBADMSG;
	*ret = (s32)number;
	return 0;
}

static int get_bool(yyjson_val *value, u8 *ret)
{
	if (!yyjson_is_bool(value))
		return -EBADMSG;
	*ret = yyjson_get_bool(value);
	return 0;
}

static int get_permille(yyjson_val *value, u32 *ret)
{
	double fraction = yyjson_get_num(value);

	if (!yyjson_is_num(value) || !(fraction >= 0 && fraction <= 1))
		return -EBADMSG;
	*ret = (u32)(fraction * 1000 + 0.5);
	return 0;
}

static int get_text(yyjson_val *value, char *ret, size_t size)
{
	size_t length = yyjson_get_len(value);

	if (!yyjson_is_str(value) || length >= size || strlen(yyjson_get_str(value)) != length)
		return -EBADMSG;
	memcpy(ret, yyjson_get_str(value), length + 1);
	return 0;
}

static int get_label(yyjson_val *value, const struct field *field, u32 *ret)
{
	for (u32 i = 0; i < field->nr; i++) {
		if (yyjson_equals_str(value, field->label(i))) {
			*ret = i;
			return 0;
		}
	}
	return -EBADMSG;
}

static int get_labels(yyjson_val *list, const struct field *field, u32 *ret)
{
	int err = yyjson_is_arr(list) ? 0 : -EBADMSG;
	size_t i, nr;
	yyjson_val *value;
	u32 set = 0, label;

	yyjson_arr_foreach(list, i, nr, value) {
		if (err == 0)
			err = get_label(value, field, &label);
		if (err == 0)
			set |= 1U << label;
	}
	if (err == 0)
		*ret = set;
	return err;
}

static int get_counts(yyjson_val *object, const struct field *field, void *ret)
{
	int err = yyjson_is_obj(object) ? 0 : -EBADMSG;

	for (u32 i = 0; err == 0 && i < field->nr; i++) {
		yyjson_val *value = yyjson_obj_get(object, field->label(i));

		if (!value)
			continue;
		err = field->type == FIELD_COUNTS ? get_u64(value, ULLONG_MAX, (u64 *)ret + i)
						  : get_u32(value, (u32 *)ret + i);
	}
	return err;
}

static int get_field(yyjson_val *value, const struct field *field, void *base)
{
	void *at = (char *)base + field->offset;

	switch (field->type) {
	case FIELD_U32: return get_u32(value, at);
	case FIELD_GPU:
	case FIELD_UID: return get_or_null(value, at);
	case FIELD_S32: return get_s32(value, at);
	case FIELD_U64: return get_u64(value, ULLONG_MAX, at);
	case FIELD_BOOL: return get_bool(value, at);
	case FIELD_PERMILLE: return get_permille(value, at);
	case FIELD_TEXT: return get_text(value, at, field->nr);
	case FIELD_LABEL: return get_label(value, field, at);
	case FIELD_LABELS: return get_labels(value, field, at);
	case FIELD_COUNTS:
	case FIELD_COUNTS32: return get_counts(value, field, at);
	}
	return -EBADMSG;
}

/* Reads the fields of an object; the object may be missing. */
static int get_fields(yyjson_val *object, const struct field *field, void *base)
{
	int err = !object || yyjson_is_obj(object) ? 0 : -EBADMSG;

	for (; err == 0 && field->key; field++) {
		yyjson_val *value = yyjson_obj_get(object, field->key);

		if (value)
			err = get_field(value, field, base);
	}
	return err;
}

static int get_hist(yyjson_val *object, struct hist *ret)
{
	yyjson_val *buckets = yyjson_obj_get(object, "buckets"), *pair;
	int err = get_fields(object, hist_fields, ret);
	size_t i, nr;

	if (buckets && !yyjson_is_arr(buckets))
		return -EBADMSG;
	yyjson_arr_foreach(buckets, i, nr, pair) {
		u64 slot = 0;

		if (err == 0)
			err = get_u64(yyjson_arr_get(pair, 0), HIST_SLOTS - 1, &slot);
		if (err == 0)
			err = get_u64(yyjson_arr_get(pair, 1), ULLONG_MAX, &ret->buckets[slot]);
	}
	return err;
}

static int get_hists(yyjson_val *object, struct snapshot *s, struct snapshot_hists *ret)
{
	int err = !object || yyjson_is_obj(object) ? 0 : -EBADMSG;

	for (u32 kind = 0; err == 0 && kind < HIST_KIND_NR; kind++) {
		yyjson_val *value = yyjson_obj_get(object, snapshot_hist_label(kind));
		struct hist *hist = value ? snapshot_add_hist(s, ret, kind) : NULL;

		if (value)
			err = hist && yyjson_is_obj(value) ? get_hist(value, hist) : -EBADMSG;
	}
	return err;
}

/* Reads a list inside an item into an array of at most `max` elements. */
static int get_inner(yyjson_val *list, const struct field *fields, void *array, size_t size,
		     u32 max, u32 *ret_nr)
{
	yyjson_val *one;
	size_t i, nr;
	int err = 0;

	if ((list && !yyjson_is_arr(list)) || yyjson_arr_size(list) > max)
		return -EBADMSG;
	*ret_nr = (u32)yyjson_arr_size(list);
	yyjson_arr_foreach(list, i, nr, one) {
		if (err == 0)
			err = get_fields(one, fields, (char *)array + i * size);
	}
	return err;
}

static int get_ranks(yyjson_val *object, struct snapshot_ranks *ret)
{
	yyjson_val *list = yyjson_obj_get(object, "gone_ranks"), *one;
	int err = get_inner(list, rank_fields, ret->ranks, sizeof(ret->ranks[0]),
			    ARRAY_SIZE(ret->ranks), &ret->nr);
	size_t i, nr;

	yyjson_arr_foreach(list, i, nr, one) {
		if (err == 0)
			err = get_fields(one, account_fields, &ret->ranks[i].account);
	}
	return err;
}

static int get_job(yyjson_val *object, struct snapshot *s, u32 i)
{
	int err;

	s->jobs[i].uid = SNAPSHOT_UID_UNKNOWN;
	err = get_fields(object, job_fields, &s->jobs[i]);
	if (err == 0)
		err = get_ranks(object, &s->jobs[i].gone_ranks);
	return err < 0 ? err : get_hists(yyjson_obj_get(object, "gone"), s, &s->jobs[i].gone);
}

/*
 * Some members of `task` repeat members of the process under other names. An older zerneld
 * does not send `task`.
 */
static int get_task(yyjson_val *object, struct snapshot_process *process)
{
	if (!object)
		return 0;
	process->task = (struct snapshot_task){ .known = 1,
						.gpu = SNAPSHOT_GPU_UNKNOWN,
						.gpu_instance = SNAPSHOT_GPU_UNKNOWN,
						.compute_instance = SNAPSHOT_GPU_UNKNOWN };
	return get_fields(object, task_fields, process);
}

/* Only a process that had an error has this member. */
static int get_oom(yyjson_val *object, struct snapshot_oom *ret)
{
	yyjson_val *others = yyjson_obj_get(object, "others");
	int err;

	if (!object)
		return 0;
	ret->gpu = SNAPSHOT_GPU_UNKNOWN;
	for (u32 i = 0; i < OOM_OTHERS_MAX && i < yyjson_arr_size(others); i++)
		ret->others[i].uid = SNAPSHOT_UID_UNKNOWN;
	err = get_fields(object, oom_fields, ret);
	return err < 0 ? err
		       : get_inner(others, oom_other_fields, ret->others, sizeof(ret->others[0]),
				   OOM_OTHERS_MAX, &ret->nr_others);
}

static int get_process(yyjson_val *object, struct snapshot *s, u32 i)
{
	struct snapshot_process *process = &s->processes[i];
	int err;

	process->uid = SNAPSHOT_UID_UNKNOWN;
	err = get_fields(object, process_fields, process);
	if (err < 0)
		return err;
	if (process->job > s->nr_jobs)
		return -EBADMSG;
	err = get_fields(yyjson_obj_get(object, "counted"), account_fields, &process->counted);
	if (err < 0)
		return err;
	err = get_task(yyjson_obj_get(object, "task"), process);
	if (err < 0)
		return err;
	err = get_inner(yyjson_obj_get(object, "memory"), memory_fields, process->memory,
			sizeof(process->memory[0]), GPU_MAX, &process->nr_memory);
	if (err < 0)
		return err;
	err = get_inner(yyjson_obj_get(object, "culprits"), culprit_fields, process->culprits,
			sizeof(process->culprits[0]), CULPRITS_MAX, &process->nr_culprits);
	if (err == 0)
		err = get_oom(yyjson_obj_get(object, "oom"), &process->oom);
	return err < 0 ? err : get_hists(yyjson_obj_get(object, "hists"), s, &process->hists);
}

static int get_thread(yyjson_val *object, struct snapshot *s, u32 i)
{
	return get_fields(object, thread_fields, &s->threads[i]);
}

static int get_comm(yyjson_val *object, struct snapshot *s, u32 i)
{
	struct snapshot_comm *comm = &s->comms[i];
	int err = get_fields(object, comm_fields, comm);

	return err < 0 ? err
		       : get_inner(yyjson_obj_get(object, "calls"), call_fields, comm->calls,
				   sizeof(comm->calls[0]), SEQUENCE_KEPT, &comm->nr_calls);
}

static int get_gpu(yyjson_val *object, struct snapshot *s, u32 i)
{
	struct snapshot_gpu *gpu = &s->gpus[i];
	int err = get_fields(object, gpu_fields, gpu);

	for (u32 k = 0; err == 0 && k < GPU_OPTIONAL_NR; k++) {
		const struct field *field = &gpu_optional_fields[k].field;
		yyjson_val *value = yyjson_obj_get(object, field->key);

		if (!value)
			continue;
		err = get_field(value, field, gpu);
		gpu->valid |= gpu_optional_fields[k].bit;
	}
	return err;
}

static int get_sched(yyjson_val *object, struct snapshot_sched *ret)
{
	yyjson_val *classes = yyjson_obj_get(object, "classes");
	int err = get_fields(object, sched_fields, ret);

	/* An older zerneld acts only with the scheduler. */
	if (err == 0 && !yyjson_obj_get(object, "actuator") && ret->state == SCHED_ATTACHED)
		ret->actuator = ACTUATOR_SCHED_EXT;
	for (u32 i = 0; err == 0 && i < CLASS_NR; i++) {
		yyjson_val *one = yyjson_obj_get(classes, sched_class_label(i));
		yyjson_val *wait = yyjson_obj_get(one, "runqueue_wait");

		err = get_fields(one, class_fields, &ret->classes[i]);
		if (err == 0 && wait)
			err = get_hist(wait, &ret->classes[i].runqueue_wait);
	}
	return err;
}

/* Version 1 has two members with other names and smaller units. */
static int get_sched_v1(yyjson_val *object, struct snapshot_sched *ret)
{
	yyjson_val *reserved = yyjson_obj_get(object, "others_permille");
	yyjson_val *max_wait = yyjson_obj_get(object, "patience_ns");
	u32 permille = 0;
	u64 ns = 0;
	int err = reserved ? get_u32(reserved, &permille) : 0;

	if (err < 0)
		return err;
	if (max_wait)
		err = get_u64(max_wait, ULLONG_MAX, &ns);
	if (err < 0)
		return err;
	ret->reserved_percent = permille / 10;
	ret->max_wait_ms = ns / NSEC_PER_MSEC;
	return 0;
}

/* Reads each item of a list into an element of the snapshot, from `first` on. It may be missing. */
static int get_list(yyjson_val *list, struct snapshot *s, u32 first,
		    int (*get)(yyjson_val *item, struct snapshot *s, u32 i))
{
	yyjson_val *item;
	size_t i, nr;
	int err = 0;

	yyjson_arr_foreach(list, i, nr, item) {
		if (err == 0)
			err = yyjson_is_obj(item) ? get(item, s, first + (u32)i) : -EBADMSG;
	}
	return err;
}

/* The number of histograms that the items of a list have under a key. */
static size_t count_hists(yyjson_val *list, const char *key)
{
	yyjson_val *item;
	size_t i, nr, sum = 0;

	yyjson_arr_foreach(list, i, nr, item)
		sum += yyjson_obj_size(yyjson_obj_get(item, key));
	return sum;
}

static int add_room_for_hists(struct snapshot *s, size_t nr)
{
	const struct snapshot_limits max = SNAPSHOT_LIMITS_MAX;
	struct hist *hists;

	if (!nr)
		return 0;
	if (nr > max.nr_hists - s->limits.nr_hists)
		return -E2BIG;
	hists = reallocarray(s->hists, s->limits.nr_hists + nr, sizeof(*hists));
	if (!hists)
		return -ENOMEM;
	s->hists = hists;
	s->limits.nr_hists += (u32)nr;
	return 0;
}

/* A list of the parts, or NULL: then the root has it. */
static struct json_list *part_of(struct json_parts *parts, const char *key)
{
	return parts ? json_parts_list(parts, key) : NULL;
}

static size_t long_list_size(yyjson_val *root, struct json_parts *parts, const char *key)
{
	const struct json_list *list = part_of(parts, key);

	return list ? list->nr : yyjson_arr_size(yyjson_obj_get(root, key));
}

static int get_long_list(yyjson_val *root, struct json_parts *parts, const char *key,
			 struct snapshot *s,
			 int (*get)(yyjson_val *item, struct snapshot *s, u32 i))
{
	struct json_list *list = part_of(parts, key);
	yyjson_doc *piece;
	u32 nr = 0;
	int err;

	if (!list)
		return get_list(yyjson_obj_get(root, key), s, 0, get);
	while ((err = json_list_next(list, &piece)) == 1) {
		yyjson_val *items = yyjson_doc_get_root(piece);
		u32 first = nr;

		nr += (u32)yyjson_arr_size(items);
		err = nr > list->nr ? -EBADMSG : add_room_for_hists(s, count_hists(items, "hists"));
		if (err == 0)
			err = get_list(items, s, first, get);
		yyjson_doc_free(piece);
		if (err < 0)
			return err;
	}
	return err < 0 ? err : nr == list->nr ? 0 : -EBADMSG;
}

static int limit(size_t nr, u32 max, u32 *ret)
{
	*ret = (u32)nr;
	return nr > max ? -E2BIG : 0;
}

/* Allocates a snapshot for exactly the items of the document, and sets their numbers. */
static int make_room(yyjson_val *root, struct json_parts *parts, struct snapshot **ret)
{
	const struct snapshot_limits max = SNAPSHOT_LIMITS_MAX;
	yyjson_val *jobs = yyjson_obj_get(root, "jobs");
	size_t nr_hists = count_hists(jobs, "gone") +
			  count_hists(yyjson_obj_get(root, "processes"), "hists") +
			  yyjson_obj_size(yyjson_obj_get(root, "gone"));
	struct snapshot_limits limits;

	if (limit(yyjson_arr_size(jobs), max.nr_jobs, &limits.nr_jobs) < 0 ||
	    limit(long_list_size(root, parts, "processes"), max.nr_processes,
		  &limits.nr_processes) < 0 ||
	    limit(long_list_size(root, parts, "threads"), max.nr_threads, &limits.nr_threads) < 0 ||
	    limit(yyjson_arr_size(yyjson_obj_get(root, "gpus")), max.nr_gpus, &limits.nr_gpus) <
		    0 ||
	    limit(long_list_size(root, parts, "communicators"), max.nr_comms, &limits.nr_comms) <
		    0 ||
	    limit(nr_hists, max.nr_hists, &limits.nr_hists) < 0)
		return -E2BIG;
	int err = snapshot_new(&limits, ret);

	if (err < 0)
		return err;
	(*ret)->nr_jobs = limits.nr_jobs;
	(*ret)->nr_processes = limits.nr_processes;
	(*ret)->nr_threads = limits.nr_threads;
	(*ret)->nr_gpus = limits.nr_gpus;
	(*ret)->nr_comms = limits.nr_comms;
	return 0;
}

const char *const snapshot_long_lists[] = { "processes", "threads", "communicators", NULL };

int snapshot_from_parts(yyjson_val *root, struct json_parts *parts, struct snapshot **ret)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
	yyjson_val *sched = yyjson_obj_get(root, "scheduler");
	u64 version = yyjson_get_uint(yyjson_obj_get(root, "version"));
	int err;

	if (!yyjson_is_obj(root))
		return -EBADMSG;
	if (version < SNAPSHOT_VERSION_OLDEST || version > SNAPSHOT_VERSION)
		return -EPROTONOSUPPORT;
	err = make_room(root, parts, &s);
	if (err < 0)
		return err;
	/* A zerneld that does not send this object always used the defaults. */
	s->phase_detection = (struct phase_config)PHASE_CONFIG_DEFAULT;
	if ((err = get_fields(root, snapshot_fields, s)) < 0 ||
	    (err = get_list(yyjson_obj_get(root, "jobs"), s, 0, get_job)) < 0 ||
	    (err = get_long_list(root, parts, "processes", s, get_process)) < 0 ||
	    (err = get_long_list(root, parts, "threads", s, get_thread)) < 0 ||
	    (err = get_long_list(root, parts, "communicators", s, get_comm)) < 0 ||
	    (err = get_list(yyjson_obj_get(root, "gpus"), s, 0, get_gpu)) < 0 ||
	    (err = get_inner(yyjson_obj_get(root, "over_quota"), quota_fields, s->over_quota,
			     sizeof(s->over_quota[0]), SNAPSHOT_QUOTAS_MAX, &s->nr_over_quota)) <
		    0 ||
	    (err = get_ranks(root, &s->gone_ranks)) < 0 ||
	    (err = get_hists(yyjson_obj_get(root, "gone"), s, &s->gone)) < 0 ||
	    (err = get_fields(yyjson_obj_get(root, "phase_detection"), phase_detection_fields,
			      &s->phase_detection)) < 0 ||
	    (err = get_sched(sched, &s->sched)) < 0 ||
	    (version == 1 && (err = get_sched_v1(sched, &s->sched)) < 0) ||
	    (err = get_fields(yyjson_obj_get(root, "learning"), learning_fields, &s->learning)) <
		    0 ||
	    (err = get_fields(yyjson_obj_get(root, "probes"), probes_fields, &s->probes)) < 0 ||
	    (err = get_fields(yyjson_obj_get(root, "cost"), cost_fields, &s->cost)) < 0)
		return err;
	*ret = TAKE_PTR(s);
	return 0;
}

int snapshot_from_value(yyjson_val *root, struct snapshot **ret)
{
	return snapshot_from_parts(root, NULL, ret);
}

int snapshot_from_json(const char *text, size_t len, struct snapshot **ret)
{
	CLEANUP(json_parts_clear) struct json_parts parts = {};
	CLEANUP_FREE char *copy = malloc(len + YYJSON_PADDING_SIZE);
	int err;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	err = json_parts_new(copy, len, snapshot_long_lists, 1, &parts);
	return err < 0 ? err : snapshot_from_parts(yyjson_doc_get_root(parts.doc), &parts, ret);
}
