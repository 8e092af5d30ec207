/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <yyjson.h>
#include "answers/job_text.h"
#include "answers/memory.h"
#include "answers/why.h"

static void add_steps(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct blame *blame)
{
	yyjson_mut_val *steps = yyjson_mut_obj_add_obj(doc, object, "steps");

	yyjson_mut_obj_add_uint(doc, steps, "count", blame->nr_steps);
	if (blame->steps.count == 0)
		return;
	yyjson_mut_obj_add_uint(doc, steps, "mean_ns", hist_mean(&blame->steps));
	yyjson_mut_obj_add_uint(doc, steps, "p50_ns", hist_quantile(&blame->steps, 500));
	yyjson_mut_obj_add_uint(doc, steps, "p99_ns", hist_quantile(&blame->steps, 990));
}

/* How exactly the idle time is known, and its cause if it has one. */
static void add_idle(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct snapshot *after,
		     const struct blame *blame)
{
	u32 cause = why_cause(after, blame);

	yyjson_mut_obj_add_uint(doc, object, "idle_ns", blame->idle_ns);
	yyjson_mut_obj_add_uint(doc, object, "idle_min_ns", blame->idle_min_ns);
	yyjson_mut_obj_add_uint(doc, object, "idle_max_ns", blame->idle_max_ns);
	yyjson_mut_obj_add_str(doc, object, "basis", blame->is_measured ? "driver" : "syncs");
	yyjson_mut_obj_add_bool(doc, object, "disagrees", blame->disagrees);
	if (blame->disagrees)
		yyjson_mut_obj_add_uint(doc, object, "driver_idle_ns", blame->counter_idle_ns);
	if (cause != WHY_NO_CAUSE)
		yyjson_mut_obj_add_str(doc, object, "cause", why_cause_label(cause));
}

/* null: the GPU of the process is unknown. An older zerneld does not send it. */
static void add_gpu(yyjson_mut_doc *doc, yyjson_mut_val *object,
		    const struct snapshot_process *process)
{
	const struct snapshot_task *task = &process->task;

	if (!task->known)
		return;
	if (task->gpu == SNAPSHOT_GPU_UNKNOWN)
		yyjson_mut_obj_add_null(doc, object, "gpu");
	else
		yyjson_mut_obj_add_uint(doc, object, "gpu", task->gpu);
	yyjson_mut_obj_add_str(doc, object, "gpu_basis", gpu_basis_label(task->gpu_basis));
}

static void add_blame(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct snapshot *after,
		      const struct blame *blame)
{
	const struct snapshot_process *process = blame->process;
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list), *values;

	yyjson_mut_obj_add_uint(doc, object, "pid", process->pid);
	yyjson_mut_obj_add_str(doc, object, "comm", process->comm);
	if (process->nr_ranks) {
		yyjson_mut_obj_add_int(doc, object, "rank", process->rank);
		yyjson_mut_obj_add_uint(doc, object, "nr_ranks", process->nr_ranks);
	}
	yyjson_mut_obj_add_uint(doc, object, "wall_ns", blame->wall_ns);
	yyjson_mut_obj_add_uint(doc, object, "busy_ns", blame->busy_ns);
	add_idle(doc, object, after, blame);
	values = yyjson_mut_obj_add_obj(doc, object, "causes");
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		yyjson_mut_obj_add_uint(doc, values, idle_cause_label(cause),
					blame->cause_ns[cause]);
	values = yyjson_mut_obj_add_arr(doc, object, "culprits");
	for (u32 i = 0; i < blame->nr_culprits; i++) {
		yyjson_mut_val *culprit = yyjson_mut_arr_add_obj(doc, values);

		yyjson_mut_obj_add_str(doc, culprit, "cause",
				       idle_cause_label(blame->culprits[i].cause));
		yyjson_mut_obj_add_str(doc, culprit, "name", blame->culprits[i].name);
		yyjson_mut_obj_add_uint(doc, culprit, "ns", blame->culprits[i].ns);
	}
	add_steps(doc, object, blame);
	yyjson_mut_obj_add_str(doc, object, "step_basis", step_basis_label(process->step_basis));
	yyjson_mut_obj_add_str(doc, object, "gpu_evidence",
			       gpu_evidence_label(process->gpu_evidence));
	add_gpu(doc, object, process);
	if (process->oom.nr)
		memory_oom_to_json(process, doc, object);
	if (blame->waited != WAITED_UNKNOWN)
		yyjson_mut_obj_add_uint(doc, object,
					blame->waited == WAITED_MEASURED
						? "waited_for_ranks_ns"
						: "waited_for_ranks_max_ns",
					blame->waited_ns);
}

static void add_life(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct snapshot_job *job)
{
	if (!job->ended_ms)
		return;
	yyjson_mut_obj_add_uint(doc, object, "started_ms", job->started_ms);
	yyjson_mut_obj_add_uint(doc, object, "ended_ms", job->ended_ms);
	yyjson_mut_obj_add_uint(doc, object, "peak_bytes", job->peak_bytes);
	yyjson_mut_obj_add_uint(doc, object, "processes_left_out", job->nr_left_out);
}

static void add_group(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct why_group *group)
{
	const struct snapshot_job *job = snapshot_job(group->after, group->blames->process);
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list), *values;
	char sentence[WHY_SENTENCE_LEN], advice[WHY_ADVICE_MAX][WHY_ADVICE_LEN];
	u32 nr_advice = why_advice(group, advice);

	why_sentence(group, sentence);
	if (job) {
		yyjson_mut_obj_add_str(doc, object, "name", job->name);
		yyjson_mut_obj_add_str(doc, object, "cgroup", job->cgroup);
		job_names_to_json(job, doc, object);
		add_life(doc, object, job);
	}
	yyjson_mut_obj_add_strcpy(doc, object, "answer", sentence);
	values = yyjson_mut_obj_add_arr(doc, object, "advice");
	for (u32 i = 0; i < nr_advice; i++)
		yyjson_mut_arr_add_strcpy(doc, values, advice[i]);
	yyjson_mut_obj_add_uint(doc, object, "subject", group->blames[group->subject].process->pid);
	if (group->has_straggler) {
		const struct snapshot_process *process = group->blames[group->straggler.at].process;

		values = yyjson_mut_obj_add_obj(doc, object, "straggler");
		yyjson_mut_obj_add_int(doc, values, "rank", process->rank);
		yyjson_mut_obj_add_uint(doc, values, "pid", process->pid);
		add_gpu(doc, values, process);
		yyjson_mut_obj_add_uint(doc, values, "lead_ns", group->straggler.lead_ns);
		yyjson_mut_obj_add_bool(doc, values, "is_measured", group->straggler.is_measured);
	}
	values = yyjson_mut_obj_add_arr(doc, object, "processes");
	for (u32 i = 0; i < group->nr; i++)
		add_blame(doc, values, group->after, &group->blames[i]);
}

int why_to_json(const struct why *why, char **ret, size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "time_ms", why->after->time_ms);
	list = yyjson_mut_obj_add_arr(doc, root, "jobs");
	for (u32 first = 0; first < why->nr_blames;) {
		struct why_group group = why_group(why, first);

		add_group(doc, list, &group);
		first += group.nr;
	}
	list = yyjson_mut_obj_add_arr(doc, root, "without_answer");
	for (u32 i = 0; i < why->nr_missing; i++) {
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);

		yyjson_mut_obj_add_uint(doc, object, "pid", why->missing[i].process->pid);
		yyjson_mut_obj_add_str(doc, object, "reason",
				       why_missing_text(why->missing[i].err));
	}
	text = yyjson_mut_write(doc, 0, ret_length);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}
