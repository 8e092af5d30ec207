/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel jobs: lists the jobs that run and those that ended. */
#include <stdlib.h>
#include <string.h>
#include "answers/job_text.h"
#include "answers/jobs.h"
#include "answers/why.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/user.h"
#include "cli/ask.h"
#include "cli/command.h"

static u64 lasted_ns(const struct snapshot *s, const struct snapshot_job *job)
{
	u64 end_ms = job->ended_ms ? job->ended_ms : s->time_ms;

	return job->started_ms && end_ms > job->started_ms
		       ? (end_ms - job->started_ms) * NSEC_PER_MSEC
		       : 0;
}

/* Idle time is that which is certain, of the time that was watched. */
static void add_idle(struct table *table, const struct snapshot_account *sum)
{
	u64 idle_ns = 0, watched_ns = sum->busy_ns + sum->open_ns;
	u32 largest = jobs_largest_cause(sum), share;

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		idle_ns += sum->idle_ns[cause];
	watched_ns += idle_ns;
	share = blame_permille(idle_ns, watched_ns);
	if (watched_ns)
		table_cell(table, STYLE_PLAIN, "%u.%u%%", share / 10, share % 10);
	else
		table_cell(table, STYLE_DIM, "-");
	table_cell(table, STYLE_PLAIN, "%s",
		   largest < IDLE_CAUSE_NR ? why_cause_title(largest) : "");
}

static void add_jobs(struct table *table, const struct snapshot *s)
{
	for (u32 i = 0; i < s->nr_jobs; i++) {
		const struct snapshot_job *job = &s->jobs[i];
		struct snapshot_account sum = jobs_account(s, i);

		table_cell(table, STYLE_TITLE, "%s", job->name);
		table_cell(table, STYLE_PLAIN, "%s", user_name(job->uid).text);
		table_cell(table, job->ended_ms ? STYLE_DIM : STYLE_GOOD, "%s",
			   job->ended_ms ? "ended" : "running");
		table_cell(table, STYLE_PLAIN, "%s",
			   job->started_ms ? unit_local_time(job->started_ms).text : "-");
		table_cell(table, STYLE_PLAIN, "%s", unit_ns(lasted_ns(s, job)).text);
		table_cell(table, STYLE_PLAIN, "%llu", sum.nr_steps);
		add_idle(table, &sum);
		table_cell(table, STYLE_PLAIN, "%s",
			   job->peak_bytes ? unit_bytes(job->peak_bytes).text : "-");
		table_cell(table, STYLE_PLAIN, "%s", job_names_text(job).text);
	}
}

static int print_table(const struct snapshot *running, const struct snapshot *ended,
		       enum colour colour)
{
	static const struct column columns[] = {
		{ "JOB" },
		{ "USER" },
		{ "STATE" },
		{ "STARTED" },
		{ "LASTED", true },
		{ "STEPS", true },
		{ "IDLE", true },
		{ "LARGEST CAUSE" },
		{ "PEAK", true },
		{ "NAMES" },
		{},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);
	const struct term term = term_open(stdout, colour);
	u64 nr_forgotten = ended->nr_dropped[DROP_SNAPSHOT_JOBS];
	int err;

	if (!running->nr_jobs && !ended->nr_jobs) {
		term_print(&term, STYLE_DIM, "No job has used a GPU since zerneld started.\n");
		return 0;
	}
	add_jobs(table, running);
	add_jobs(table, ended);
	err = table_print(table, &term);
	if (nr_forgotten)
		term_print(&term, STYLE_DIM, "%llu older jobs were forgotten\n", nr_forgotten);
	return err;
}

static int print_json(const struct snapshot *running, const struct snapshot *ended)
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err = jobs_to_json(running, ended, &text, &length);

	if (err < 0) {
		log_error("cannot print the jobs: %s", strerror(-err));
		return err;
	}
	return puts(text) < 0 ? -EIO : 0;
}

static int run(struct command_call *call)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *running = NULL, *ended = NULL;
	const char *socket;
	int err;

	if (command_socket(call, 0, &socket) < 0)
		return COMMAND_MISUSED;
	/* In this order, a job that ends in between is not in both. */
	if (ask_ended(socket, NULL, &ended) < 0 || ask_snapshot(socket, &running) < 0)
		return EXIT_FAILURE;
	err = call->json ? print_json(running, ended) : print_table(running, ended, call->colour);
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = { OPTION_SOCKET, {} };

const struct command command_jobs = {
	.name = "jobs",
	.help = "list the jobs that run and those that ended",
	.description =
		"Lists the running jobs and the last 256 ended jobs that zerneld remembers, with\n"
		"their user, time, steps, certain idle time and its largest cause, and the "
		"largest\n"
		"GPU memory of one process. A job ends with its last process that uses a GPU.\n"
		"zernel why --ended JOB explains the idle time of an ended job.\n"
		"zerneld forgets ended jobs when it restarts.",
	.options = command_options,
	.run = run,
};
