/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer for an ended job covers its whole life. */
#include "answers/why.h"

int why_ended_span(struct snapshot *ended, struct snapshot **ret_before)
{
	const struct snapshot_limits limits = { .nr_processes = ended->nr_processes };
	const struct snapshot_job *job = &ended->jobs[0];
	struct snapshot *before;
	int err = snapshot_new(&limits, &before);

	if (err < 0)
		return err;
	/* All counters of its processes began with 0. */
	for (u32 i = 0; i < ended->nr_processes; i++)
		snapshot_add_process(before, ended->processes[i].pid)->start_ns =
			ended->processes[i].start_ns;
	ended->monotonic_ns = NSEC_PER_MSEC;
	if (ended->nr_jobs && job->ended_ms > job->started_ms)
		ended->monotonic_ns = (job->ended_ms - job->started_ms) * NSEC_PER_MSEC;
	*ret_before = before;
	return 0;
}
