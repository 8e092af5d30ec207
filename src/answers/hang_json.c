/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <yyjson.h>
#include "answers/hang.h"
#include "answers/job_text.h"
#include "core/process.h"

static u64 age_ns(const struct hang_comm *comm, u64 time_ns)
{
	return comm->snapshot->monotonic_ns > time_ns ? comm->snapshot->monotonic_ns - time_ns : 0;
}

static yyjson_mut_val *add_name(yyjson_mut_doc *doc, yyjson_mut_val *object,
				const struct hang_member *member)
{
	if (hang_rank(member) >= 0)
		yyjson_mut_obj_add_int(doc, object, "rank", hang_rank(member));
	yyjson_mut_obj_add_uint(doc, object, "pid", member->process->pid);
	return object;
}

static void add_call(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct snapshot_call *call)
{
	yyjson_mut_obj_add_str(doc, object, "op", operation_label(call->operation));
	yyjson_mut_obj_add_uint(doc, object, "bytes", call->bytes);
}

static void add_launcher(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct hang_comm *comm,
			 const struct snapshot_process *process)
{
	yyjson_mut_val *launcher = yyjson_mut_obj_add_obj(doc, object, "launcher");

	yyjson_mut_obj_add_uint(doc, launcher, "tid", process->launcher_tid);
	yyjson_mut_obj_add_str(doc, launcher, "state", thread_doing_label(process->launcher_doing));
	yyjson_mut_obj_add_str(doc, launcher, "phase", phase_label(process->phase));
	if (*process->launcher_call) {
		yyjson_mut_obj_add_str(doc, launcher, "call", process->launcher_call);
		yyjson_mut_obj_add_uint(doc, launcher, "call_age_ns",
					age_ns(comm, process->launcher_call_since_ns));
	}
}

static void add_member(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct hang_comm *comm,
		       const struct hang_member *member)
{
	yyjson_mut_val *object = add_name(doc, yyjson_mut_arr_add_obj(doc, list), member);
	const struct snapshot_call *call = hang_call(member, member->comm->nr);

	yyjson_mut_obj_add_str(doc, object, "comm", member->process->comm);
	yyjson_mut_obj_add_uint(doc, object, "entered", member->comm->nr);
	yyjson_mut_obj_add_bool(doc, object, "missing", !hang_has_entered(member, comm->number));
	if (call) {
		add_call(doc, object, call);
		yyjson_mut_obj_add_uint(doc, object, "age_ns", age_ns(comm, call->entered_ns));
		yyjson_mut_obj_add_bool(doc, object, "returned", call->returned_ns);
	}
	add_launcher(doc, object, comm, member->process);
	if (hang_has_stack(member))
		lines_add_stack(member->stack, doc, object);
}

static void add_odd(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct hang_comm *comm)
{
	yyjson_mut_val *odd = yyjson_mut_obj_add_obj(doc, object, "disagreement"), *list;

	yyjson_mut_obj_add_uint(doc, odd, "number", comm->odd_number);
	yyjson_mut_obj_add_bool(doc, odd, "majority", comm->has_majority);
	add_call(doc, odd, hang_call(&comm->members[comm->model], comm->odd_number));
	list = yyjson_mut_obj_add_arr(doc, odd, "ranks");
	for (u32 i = 0; i < comm->nr_members; i++)
		if (hang_is_odd(comm, &comm->members[i]))
			add_call(
				doc,
				add_name(doc, yyjson_mut_arr_add_obj(doc, list), &comm->members[i]),
				hang_call(&comm->members[i], comm->odd_number));
}

static void add_late(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct hang_comm *comm)
{
	const struct hang_late *late = &comm->late;
	yyjson_mut_val *value;

	if (!late->nr_last)
		return;
	value = add_name(doc, yyjson_mut_obj_add_obj(doc, object, "last"),
			 &comm->members[late->at]);
	yyjson_mut_obj_add_uint(doc, value, "times", late->nr_last);
	yyjson_mut_obj_add_uint(doc, value, "of", late->nr_numbers);
	yyjson_mut_obj_add_uint(doc, value, "mean_ns", late->mean_ns);
	yyjson_mut_obj_add_bool(doc, value, "late", late->is_late);
}

static void add_unseen(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct hang_comm *comm)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, "ended_ranks");
	u32 at = 0;
	s32 rank;

	while ((rank = hang_next_ended(comm, &at)) >= 0)
		yyjson_mut_arr_add_int(doc, list, rank);
	yyjson_mut_obj_add_uint(doc, object, "ranks_elsewhere", hang_nr_elsewhere(comm));
}

static void add_comm(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct hang_comm *comm)
{
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list), *ranks;
	char sentence[HANG_SENTENCE_LEN];

	hang_comm_sentence(comm, sentence);
	yyjson_mut_obj_add_str(doc, object, "identity", comm->members->comm->identity);
	yyjson_mut_obj_add_bool(doc, object, "world", comm->members->comm->is_world);
	yyjson_mut_obj_add_uint(doc, object, "nr_ranks", comm->nr_ranks);
	yyjson_mut_obj_add_str(doc, object, "verdict", hang_verdict_label(comm->verdict));
	yyjson_mut_obj_add_strcpy(doc, object, "answer", sentence);
	yyjson_mut_obj_add_uint(doc, object, "number", comm->number);
	yyjson_mut_obj_add_uint(doc, object, "waited_ns", comm->waited_ns);
	yyjson_mut_obj_add_bool(doc, object, "waited_is_exact", !comm->is_at_least);
	yyjson_mut_obj_add_uint(doc, object, "limit_ns", comm->limit_ns);
	if (comm->verdict == HANG_DISAGREE)
		add_odd(doc, object, comm);
	add_late(doc, object, comm);
	add_unseen(doc, object, comm);
	ranks = yyjson_mut_obj_add_arr(doc, object, "ranks");
	for (u32 i = 0; i < comm->nr_members; i++)
		add_member(doc, ranks, comm, &comm->members[i]);
}

static void add_job(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct hang_job *job)
{
	const struct hang_comm *subject = &job->comms[job->subject];
	const struct snapshot_job *named = snapshot_job(job->snapshot, subject->members->process);
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list), *comms;
	char sentence[HANG_SENTENCE_LEN];

	hang_sentence(job, sentence);
	if (named) {
		yyjson_mut_obj_add_str(doc, object, "name", named->name);
		yyjson_mut_obj_add_str(doc, object, "cgroup", named->cgroup);
		job_names_to_json(named, doc, object);
	}
	yyjson_mut_obj_add_strcpy(doc, object, "answer", sentence);
	yyjson_mut_obj_add_str(doc, object, "verdict",
			       job->is_cycle ? "cycle" : hang_verdict_label(subject->verdict));
	yyjson_mut_obj_add_uint(doc, object, "subject", job->subject);
	comms = yyjson_mut_obj_add_arr(doc, object, "communicators");
	for (u32 i = 0; i < job->nr; i++)
		add_comm(doc, comms, &job->comms[i]);
}

int hang_to_json(const struct hang *hang, char **ret, size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "time_ms", hang->snapshot->time_ms);
	list = yyjson_mut_obj_add_arr(doc, root, "jobs");
	for (u32 first = 0; first < hang->nr_comms;) {
		struct hang_job job = hang_job(hang, first);

		add_job(doc, list, &job);
		first += job.nr;
	}
	list = yyjson_mut_obj_add_arr(doc, root, "without_ledger");
	for (u32 i = 0; i < hang->nr_unknown; i++)
		yyjson_mut_obj_add_uint(doc, yyjson_mut_arr_add_obj(doc, list), "pid",
					hang->unknown[i]->pid);
	yyjson_mut_obj_add_uint(doc, root, "dropped",
				hang->snapshot->nr_dropped[DROP_COMMS] +
					hang->snapshot->nr_dropped[DROP_SNAPSHOT_COMMS]);
	text = yyjson_mut_write(doc, 0, ret_length);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}
