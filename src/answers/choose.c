/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/choose.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0 if the word is not a number. */
static u32 parse_pid(const char *word)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(word, &end, 10);
	return errno || *end || value > 0x7fffffff ? 0 : (u32)value;
}

/* For a loader process, returns the pid of its consumer. */
static u32 consumer_of(const struct snapshot *s, u32 pid)
{
	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == pid && s->processes[i].consumer_pid)
			return s->processes[i].consumer_pid;
	return pid;
}

u32 choose_pid(const struct snapshot *s, const char *word)
{
	u32 pid = word ? parse_pid(word) : 0;

	return pid ? consumer_of(s, pid) : 0;
}

bool choose_is_meant(const struct snapshot *s, const struct snapshot_process *process,
		     const char *word)
{
	const struct snapshot_job *job = snapshot_job(s, process);

	if (!word || process->pid == choose_pid(s, word))
		return true;
	return job && (strcmp(job->name, word) == 0 || strcmp(job->cgroup, word) == 0);
}

const struct snapshot_process *choose_next(const struct snapshot *s, const char *word, u32 *at)
{
	while (*at < s->nr_processes) {
		const struct snapshot_process *process = &s->processes[(*at)++];

		if (process->launcher_tid && choose_is_meant(s, process, word))
			return process;
	}
	return NULL;
}

struct process_name choose_name(const struct snapshot_process *process)
{
	struct process_name name;

	if (process->nr_ranks)
		snprintf(name.text, sizeof(name.text), "rank %d (%s %u)", process->rank,
			 process->comm, process->pid);
	else
		snprintf(name.text, sizeof(name.text), "%s (%u)", process->comm, process->pid);
	return name;
}
