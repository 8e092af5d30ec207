/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/hang/hang_print.h"
#include <errno.h>
#include "answers/choose.h"
#include "answers/hang.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/stacks.h"
#include "core/process.h"

static u64 age_ns(const struct hang_comm *comm, u64 time_ns)
{
	return comm->snapshot->monotonic_ns > time_ns ? comm->snapshot->monotonic_ns - time_ns : 0;
}

static void add_last(struct table *table, const struct hang_comm *comm,
		     const struct hang_member *member)
{
	const struct snapshot_call *call = hang_call(member, member->comm->nr);

	if (!call) {
		for (u32 i = 0; i < 4; i++)
			table_cell(table, STYLE_DIM, "-");
		return;
	}
	table_cell(table, STYLE_PLAIN, "%s", operation_label(call->operation));
	table_cell(table, STYLE_PLAIN, "%s", unit_bytes(call->bytes).text);
	table_cell(table, STYLE_PLAIN, "%s", unit_ns(age_ns(comm, call->entered_ns)).text);
	table_cell(table, STYLE_PLAIN, "%s", call->returned_ns ? "returned" : "in the call");
}

static void add_member(struct table *table, const struct hang_comm *comm,
		       const struct hang_member *member)
{
	bool is_missing = !hang_has_entered(member, comm->number);
	const struct snapshot_process *process = member->process;

	if (hang_rank(member) >= 0)
		table_cell(table, is_missing ? STYLE_WARNING : STYLE_PLAIN, "%d",
			   hang_rank(member));
	else
		table_cell(table, STYLE_DIM, "-");
	table_cell(table, STYLE_PLAIN, "%u", process->pid);
	table_cell(table, is_missing ? STYLE_WARNING : STYLE_PLAIN, "%llu", member->comm->nr);
	add_last(table, comm, member);
	table_cell(table, STYLE_PLAIN, "%s", phase_label(process->phase));
	table_cell(table, STYLE_PLAIN, "%s", thread_doing_label(process->launcher_doing));
	table_cell(table, STYLE_PLAIN, "%s", process->launcher_call);
}

static int print_members(const struct hang_comm *comm, const struct term *term)
{
	static const struct column columns[] = {
		{ "RANK", true },
		{ "PID", true },
		{ "ENTERED", true },
		{ "OPERATION" },
		{ "BYTES", true },
		{ "AGO", true },
		{ "CALL" },
		{ "PHASE" },
		{ "LAUNCHER" },
		{ "IN" },
		{},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);

	for (u32 i = 0; i < comm->nr_members; i++)
		add_member(table, comm, &comm->members[i]);
	return table_print(table, term);
}

/* The innermost call is the place where the rank is. */
static void print_stack(const struct hang_comm *comm, const struct hang_member *member,
			const struct term *term)
{
	const struct lines_stack *stack = member->stack;

	if (!hang_is_missing(comm, member) || !stack)
		return;
	if (!hang_has_stack(member)) {
		term_print(term, STYLE_DIM,
			   "The stack of process %u cannot be read: it runs no supported Python, "
			   "or too fast.\n",
			   member->process->pid);
		return;
	}
	term_print(term, STYLE_PLAIN, "Stack of process %u, thread %u, innermost call first:\n",
		   member->process->pid, stack->tid);
	stack_print(stack, term);
}

static int print_job(const struct hang_job *job, const struct term *term)
{
	const struct hang_comm *subject = &job->comms[job->subject];
	char sentence[HANG_SENTENCE_LEN];
	int err;

	hang_sentence(job, sentence);
	term_print(term, STYLE_TITLE, "%s\n", sentence);
	term_print(term, STYLE_PLAIN, "\n");
	term_print(term, STYLE_DIM, "communicator %s, %u of %u ranks are seen here\n",
		   subject->members->comm->identity, subject->nr_members,
		   subject->nr_ranks ? subject->nr_ranks : subject->nr_members);
	err = print_members(subject, term);
	for (u32 i = 0; i < subject->nr_members; i++)
		print_stack(subject, &subject->members[i], term);
	for (u32 i = 0; i < job->nr; i++) {
		if (i == job->subject)
			continue;
		hang_comm_sentence(&job->comms[i], sentence);
		term_print(term, STYLE_PLAIN, "communicator %s: %s\n",
			   job->comms[i].members->comm->identity, sentence);
	}
	term_print(term, STYLE_DIM,
		   "A call that returned has queued its work. Whether the GPU has finished it is "
		   "not known.\n");
	return err;
}

static void print_notes(const struct hang *hang, const struct term *term)
{
	u64 nr_dropped = hang->snapshot->nr_dropped[DROP_COMMS] +
			 hang->snapshot->nr_dropped[DROP_SNAPSHOT_COMMS];

	for (u32 i = 0; i < hang->nr_unknown; i++)
		term_print(term, STYLE_WARNING,
			   "%s: no ledger. It uses MPI, or its calls have no probes, or it created "
			   "its communicators before zerneld started.\n",
			   choose_name(hang->unknown[i]).text);
	if (nr_dropped)
		term_print(term, STYLE_WARNING,
			   "%llu communicators were dropped: there were too many\n", nr_dropped);
	if (!hang->nr_comms && !hang->nr_unknown)
		term_print(term, STYLE_PLAIN, "%s\n",
			   hang->snapshot->nr_processes
				   ? "No matching process or job has several ranks."
				   : "No process uses a GPU.");
}

static int print_text(const struct hang *hang, const struct term *term)
{
	int err = 0;

	for (u32 first = 0; err == 0 && first < hang->nr_comms;) {
		struct hang_job job = hang_job(hang, first);

		if (first)
			term_print(term, STYLE_PLAIN, "\n");
		err = print_job(&job, term);
		first += job.nr;
	}
	print_notes(hang, term);
	return err;
}

static int print_json(const struct hang *hang, FILE *out)
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err = hang_to_json(hang, &text, &length);

	if (err < 0)
		return err;
	return fprintf(out, "%s\n", text) > 0 ? 0 : -EIO;
}

int hang_print(const struct hang *hang, bool json, const struct term *term)
{
	int err = json ? print_json(hang, term->out) : print_text(hang, term);

	if (err < 0)
		return err;
	return hang->nr_comms ? 0 : -ENOENT;
}
