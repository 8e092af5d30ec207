/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/job_names.h"
#include <string.h>

/* The time between the first two requests; it doubles. */
#define FIRST_PAUSE_NS (10 * NSEC_PER_SEC)
/* The last request is 42 minutes after the first one. */
#define TRIES_MAX      9

static bool is_due(const struct snapshot_job *job, u64 now_ns)
{
	return job_names_are_missing(job->kind, &job->names) && job->nr_names_tries < TRIES_MAX &&
	       now_ns >= job->names_due_ns;
}

void job_names_want(struct snapshot *s, u64 now_ns, struct discovery *discovery)
{
	for (u32 i = 0; i < s->nr_processes; i++) {
		struct snapshot_job *job = snapshot_job(s, &s->processes[i]);

		if (!job || !is_due(job, now_ns))
			continue;
		job->names_due_ns = now_ns + (FIRST_PAUSE_NS << job->nr_names_tries++);
		discovery_want_names(discovery, (pid_t)s->processes[i].pid);
	}
}

/*
 * The process that was asked for may have ended, and its pid may belong to another one: the result
 * says which job it is about.
 */
void job_names_take(struct snapshot *s, const struct job_scan *result)
{
	char cgroup[JOB_CGROUP_LEN];

	snapshot_set_text(cgroup, sizeof(cgroup), result->cgroup, sizeof(result->cgroup));
	for (u32 i = 0; i < s->nr_jobs; i++)
		if (strcmp(s->jobs[i].cgroup, cgroup) == 0 &&
		    job_names_are_missing(s->jobs[i].kind, &s->jobs[i].names))
			s->jobs[i].names = result->names;
}
