/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What to do about it: a table of causes and evidence. What does not follow from them is not said.
 */
#include "answers/why.h"
#include "base/macros.h"
#include <stdio.h>
#include <string.h>

/* A cause that took less of the time than that, in thousandths, is not worth advice. */
#define ADVICE_PERMILLE 30

/* Beside the causes of idle time: busy, and others wait. */
#define BUSY_STRAGGLER IDLE_CAUSE_NR

/* What must be so, beside the cause. */
enum evidence {
	ALWAYS,
	SCHEDULER_OFF,
	SCHEDULER_ON,
	STRAGGLER_ELSEWHERE,
	NO_STRAGGLER,
	NAMED, /* a culprit */
	UNNAMED,
};

#define TRY_AB "The scheduler is off. What it would change for this job: zernel ab $P"

/*
 * $P is the process, $C the culprit, $L how many loaders it has, $R the straggler's rank and
 * $S its process, $O the share of each CPU that is reserved for ordinary tasks.
 */
static const struct {
	u32 cause;
	enum evidence evidence;
	const char *text;
} rows[] = {
	{ BUSY_STRAGGLER, ALWAYS,
	  "Rank $R has more to compute than the others, or a slower GPU: compare batches and "
	  "clocks" },
	{ IDLE_RUNQUEUE, SCHEDULER_OFF, TRY_AB },
	{ IDLE_RUNQUEUE, SCHEDULER_ON,
	  "The scheduler puts launchers first already, but reserves $O of each CPU for ordinary "
	  "tasks: run fewer of them on this machine, or set a smaller reserved_percent "
	  "(zernel config show)" },
	{ IDLE_LOADER_CPU, ALWAYS,
	  "Loaders ($L now) compute as fast as they can: more of them if there are CPUs, or "
	  "cheaper "
	  "preprocessing" },
	{ IDLE_LOADER_RUNQUEUE, SCHEDULER_OFF, TRY_AB },
	{ IDLE_LOADER_RUNQUEUE, SCHEDULER_ON,
	  "The scheduler puts late loaders ($L now) first already, but reserves $O of each CPU "
	  "for ordinary tasks: run fewer of them on this machine, or add CPUs" },
	{ IDLE_LOADER_DISK, NAMED,
	  "Loaders wait for $C: a faster disk, or the data cached in memory" },
	{ IDLE_LOADER_DISK, UNNAMED,
	  "Loaders wait for a disk: a faster one, or the data cached in memory" },
	{ IDLE_LOADER_OTHER, ALWAYS,
	  "Loaders wait for neither CPU nor disk: look for a file system on the network, or for "
	  "loaders that wait for each other" },
	{ IDLE_COLLECTIVE, STRAGGLER_ELSEWHERE, "Rank $R comes last: zernel why $S" },
	{ IDLE_COLLECTIVE, NO_STRAGGLER,
	  "No rank of this node stands out: the network, or a rank on another node "
	  "(docs/FLEET.md)" },
	{ IDLE_CPU, ALWAYS,
	  "The launching thread works while the GPU is idle: less work between steps, larger "
	  "batches, or launches recorded once (CUDA graphs)" },
	{ IDLE_DISK, NAMED,
	  "The launching thread itself waits for $C: read and write in another thread" },
	{ IDLE_DISK, UNNAMED,
	  "The launching thread itself waits for a disk: read and write in another thread" },
	{ IDLE_MEMORY, ALWAYS,
	  "Memory is short: a higher limit for the job, or less of it in use on this machine" },
	{ IDLE_LOCK, ALWAYS,
	  "The launching thread waits for another thread of process $P: a profiler shows for "
	  "which" },
};

static const char *culprit_name(const struct blame *blame, u32 cause)
{
	for (u32 i = 0; i < blame->nr_culprits; i++)
		if (blame->culprits[i].cause == cause)
			return blame->culprits[i].name;
	return NULL;
}

static bool holds(enum evidence evidence, const struct why_group *group, u32 cause)
{
	const struct blame *blame = &group->blames[group->subject];
	bool attached = group->after->sched.state == SCHED_ATTACHED;

	switch (evidence) {
	case ALWAYS: return true;
	case SCHEDULER_OFF: return !attached;
	case SCHEDULER_ON: return attached;
	case STRAGGLER_ELSEWHERE:
		return group->has_straggler && group->straggler.at != group->subject;
	case NO_STRAGGLER: return !group->has_straggler;
	case NAMED: return culprit_name(blame, cause);
	case UNNAMED: return !culprit_name(blame, cause);
	}
	return false;
}

/* Its own threads, and those of processes that feed it. */
static u32 count_loaders(const struct snapshot *s, u32 pid)
{
	u32 nr = 0;

	for (u32 i = 0; i < s->nr_threads; i++)
		nr += s->threads[i].pid == pid && s->threads[i].role == ROLE_LOADER;
	for (u32 i = 0; i < s->nr_processes; i++)
		nr += s->processes[i].consumer_pid == pid;
	return nr;
}

static void expand(const struct why_group *group, u32 row, char letter, char *to, size_t size)
{
	const struct blame *blame = &group->blames[group->subject];
	const struct snapshot_process *straggler = group->blames[group->straggler.at].process;

	switch (letter) {
	case 'P': snprintf(to, size, "%u", blame->process->pid); break;
	case 'C': snprintf(to, size, "%s", culprit_name(blame, rows[row].cause)); break;
	case 'L': snprintf(to, size, "%u", count_loaders(group->after, blame->process->pid)); break;
	case 'R': snprintf(to, size, "%d", straggler->rank); break;
	case 'S': snprintf(to, size, "%u", straggler->pid); break;
	case 'O': snprintf(to, size, "%u %%", group->after->sched.reserved_percent); break;
	}
}

static void write_advice(const struct why_group *group, u32 row, char ret[static WHY_ADVICE_LEN])
{
	size_t used = 0;

	ret[0] = '\0';
	for (const char *text = rows[row].text; *text && used + 1 < WHY_ADVICE_LEN; text++) {
		if (*text != '$') {
			ret[used++] = *text;
			ret[used] = '\0';
			continue;
		}
		expand(group, row, *++text, ret + used, WHY_ADVICE_LEN - used);
		used = strlen(ret);
	}
}

/* What the advice for a cause is worth: 0 for none. */
static u64 weight(const struct why_group *group, u32 cause)
{
	const struct blame *blame = &group->blames[group->subject];
	bool is_straggler = group->has_straggler && group->straggler.at == group->subject;

	if (cause == BUSY_STRAGGLER)
		return is_straggler && group->straggler.is_measured &&
				       why_share(blame, blame->idle_ns) < WHY_IDLE_PERMILLE
			       ? group->straggler.lead_ns
			       : 0;
	/*
	 * What waits on the device for others is no idle time, and the advice is the same. A
	 * bound is no evidence, unless somebody stands out.
	 */
	if (cause == IDLE_COLLECTIVE && !is_straggler) {
		bool is_known = blame->waited == WAITED_MEASURED || group->has_straggler;
		u64 ns = blame->cause_ns[cause] + (is_known ? blame->waited_ns : 0);

		return why_share(blame, ns) >= STRAGGLER_PERMILLE ? ns : 0;
	}
	return why_share(blame, blame->cause_ns[cause]) >= ADVICE_PERMILLE ? blame->cause_ns[cause]
									   : 0;
}

u32 why_advice(const struct why_group *group, char ret[static WHY_ADVICE_MAX][WHY_ADVICE_LEN])
{
	bool given[ARRAY_SIZE(rows)] = {};
	u32 nr = 0;

	while (nr < WHY_ADVICE_MAX) {
		u32 best = 0;
		u64 most = 0;

		for (u32 row = 0; row < ARRAY_SIZE(rows); row++) {
			u64 ns = given[row] || !holds(rows[row].evidence, group, rows[row].cause)
					 ? 0
					 : weight(group, rows[row].cause);

			if (ns > most) {
				best = row;
				most = ns;
			}
		}
		if (most == 0)
			break;
		/* The same advice for two causes is given once. */
		for (u32 row = 0; row < ARRAY_SIZE(rows); row++)
			given[row] |= strcmp(rows[row].text, rows[best].text) == 0;
		write_advice(group, best, ret[nr++]);
	}
	return nr;
}
