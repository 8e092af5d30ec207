/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/jobs.h"
#include <errno.h>
#include <yyjson.h>
#include "answers/job_text.h"

struct snapshot_account jobs_account(const struct snapshot *s, u32 job)
{
	const struct snapshot_ranks *gone = &s->jobs[job].gone_ranks;
	bool has_ended = s->jobs[job].ended_ms;
	struct snapshot_account sum = {};

	for (u32 i = 0; i < gone->nr; i++)
		snapshot_account_add(&sum, &gone->ranks[i].account);
	/* The processes of an ended job are in its ranks already. */
	for (u32 i = 0; i < s->nr_processes && !has_ended; i++)
		if (s->processes[i].job == job + 1)
			snapshot_account_add(&sum, &s->processes[i].counted);
	return sum;
}

u32 jobs_largest_cause(const struct snapshot_account *account)
{
	u32 largest = IDLE_CAUSE_NR;

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		if (account->idle_ns[cause] &&
		    (largest == IDLE_CAUSE_NR ||
		     account->idle_ns[cause] > account->idle_ns[largest]))
			largest = cause;
	return largest;
}

static void add_job(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct snapshot *s, u32 i)
{
	const struct snapshot_job *job = &s->jobs[i];
	struct snapshot_account sum = jobs_account(s, i);
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list), *causes;

	yyjson_mut_obj_add_str(doc, object, "name", job->name);
	yyjson_mut_obj_add_str(doc, object, "cgroup", job->cgroup);
	yyjson_mut_obj_add_str(doc, object, "kind", job_kind_label(job->kind));
	yyjson_mut_obj_add_str(doc, object, "state", job->ended_ms ? "ended" : "running");
	job_names_to_json(job, doc, object);
	yyjson_mut_obj_add_uint(doc, object, "started_ms", job->started_ms);
	if (job->ended_ms)
		yyjson_mut_obj_add_uint(doc, object, "ended_ms", job->ended_ms);
	yyjson_mut_obj_add_uint(doc, object, "peak_bytes", job->peak_bytes);
	yyjson_mut_obj_add_uint(doc, object, "steps", sum.nr_steps);
	yyjson_mut_obj_add_uint(doc, object, "busy_ns", sum.busy_ns);
	yyjson_mut_obj_add_uint(doc, object, "open_ns", sum.open_ns);
	causes = yyjson_mut_obj_add_obj(doc, object, "idle_ns");
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		yyjson_mut_obj_add_uint(doc, causes, idle_cause_label(cause), sum.idle_ns[cause]);
}

int jobs_to_json(const struct snapshot *running, const struct snapshot *ended, char **ret,
		 size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "time_ms", running->time_ms);
	list = yyjson_mut_obj_add_arr(doc, root, "jobs");
	for (u32 i = 0; i < running->nr_jobs; i++)
		add_job(doc, list, running, i);
	for (u32 i = 0; i < ended->nr_jobs; i++)
		add_job(doc, list, ended, i);
	yyjson_mut_obj_add_uint(doc, root, "forgotten", ended->nr_dropped[DROP_SNAPSHOT_JOBS]);
	text = yyjson_mut_write(doc, 0, ret_length);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}
