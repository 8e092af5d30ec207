/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Advice, from a table of causes and evidence. Without evidence, no advice is given. */
#include "answers/why.h"
#include "base/macros.h"
#include <stdio.h>
#include <string.h>

/* No advice for a cause with a smaller share of the time, in thousandths. */
#define ADVICE_PERMILLE 30

/* Not a cause of idle time: the GPU is busy and the other ranks wait for it. */
#define BUSY_STRAGGLER IDLE_CAUSE_NR

/* The condition for a row, in addition to its cause. */
enum evidence {
	ALWAYS,
	NO_ACTUATOR, /* neither the scheduler nor the nice actuator acts */
	SCHEDULER_ON,
	NICE_ON,
	UNPROVEN, /* one of them acts, but does not promote the process */
	STRAGGLER_ELSEWHERE,
	NO_STRAGGLER,
	NAMED, /* the culprit is known */
	UNNAMED,
};

#define TRY_AB "The scheduler is off. To measure its effect on this job, run: zernel ab $P"

#define UNPROVEN_TEXT                                                                              \
	"zerneld does not promote process $P: it calls a GPU runtime, but has opened no GPU. If "  \
	"its GPU has another device file, add the file to device_files in zernel.conf(5)."

#define NICE_TEXT                                                                                  \
	"Nice values already prefer launchers and late loaders, but only within their cgroup. "    \
	"Run fewer ordinary tasks on this machine, or use a kernel with sched_ext."

/*
 * $P is the pid of the process, $C the culprit, $L the number of its loaders, $R the rank of the
 * straggler and $S its pid, $O the share of each CPU that is reserved for ordinary tasks.
 */
static const struct {
	u32 cause;
	enum evidence evidence;
	const char *text;
} rows[] = {
	{ BUSY_STRAGGLER, ALWAYS,
	  "Rank $R has more to compute than the other ranks, or a slower GPU. Compare batch sizes "
	  "and GPU clocks." },
	{ IDLE_RUNQUEUE, NO_ACTUATOR, TRY_AB },
	{ IDLE_RUNQUEUE, SCHEDULER_ON,
	  "The scheduler already runs launchers first, but reserves $O of each CPU for ordinary "
	  "tasks. Run fewer ordinary tasks on this machine, or lower reserved_percent in "
	  "zernel.conf(5)." },
	{ IDLE_RUNQUEUE, NICE_ON, NICE_TEXT },
	{ IDLE_LOADER_RUNQUEUE, NICE_ON, NICE_TEXT },
	{ IDLE_RUNQUEUE, UNPROVEN, UNPROVEN_TEXT },
	{ IDLE_LOADER_RUNQUEUE, UNPROVEN, UNPROVEN_TEXT },
	{ IDLE_LOADER_CPU, ALWAYS,
	  "The loaders ($L now) are busy computing. Add loaders if CPUs are free, or make "
	  "preprocessing cheaper." },
	{ IDLE_LOADER_RUNQUEUE, NO_ACTUATOR, TRY_AB },
	{ IDLE_LOADER_RUNQUEUE, SCHEDULER_ON,
	  "The scheduler already runs late loaders first ($L loaders now), but reserves $O of each "
	  "CPU for ordinary tasks. Run fewer ordinary tasks on this machine, or add CPUs." },
	{ IDLE_LOADER_DISK, NAMED,
	  "The loaders wait for the disk $C. Use a faster disk, or cache the data in memory." },
	{ IDLE_LOADER_DISK, UNNAMED,
	  "The loaders wait for a disk. Use a faster disk, or cache the data in memory." },
	{ IDLE_LOADER_OTHER, ALWAYS,
	  "The loaders wait for neither a CPU nor a disk. Check whether they read from a network "
	  "file system, or wait for other loaders." },
	{ IDLE_COLLECTIVE, STRAGGLER_ELSEWHERE,
	  "Rank $R enters collectives last. To see why, run: zernel why $S" },
	{ IDLE_COLLECTIVE, NO_STRAGGLER,
	  "No rank on this node stands out. Check the network, and run zernel why on the other "
	  "nodes of the job." },
	{ IDLE_CPU, ALWAYS,
	  "The launching thread computes while the GPU is idle. Do less work between steps, use "
	  "larger batches, or record the launches once (CUDA graphs)." },
	{ IDLE_DISK, NAMED,
	  "The launching thread itself waits for the disk $C. Read and write in another thread." },
	{ IDLE_DISK, UNNAMED,
	  "The launching thread itself waits for a disk. Read and write in another thread." },
	{ IDLE_MEMORY, ALWAYS,
	  "The launching thread waits until the kernel reclaims memory. Raise the memory limit of "
	  "the job, or use less memory on this machine." },
	{ IDLE_LOCK, ALWAYS,
	  "The launching thread waits for another thread of process $P. Use a profiler to find "
	  "that thread." },
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
	bool nice = group->after->sched.actuator == ACTUATOR_NICE;
	bool unproven = snapshot_is_unproven(group->after, blame->process);

	switch (evidence) {
	case ALWAYS: return true;
	case NO_ACTUATOR: return !attached && !nice;
	case SCHEDULER_ON: return attached && !unproven;
	case NICE_ON: return nice && !unproven;
	case UNPROVEN: return (attached || nice) && unproven;
	case STRAGGLER_ELSEWHERE:
		return group->has_straggler && group->straggler.at != group->subject;
	case NO_STRAGGLER: return !group->has_straggler;
	case NAMED: return culprit_name(blame, cause);
	case UNNAMED: return !culprit_name(blame, cause);
	}
	return false;
}

static void expand(const struct why_group *group, u32 row, char letter, char *to, size_t size)
{
	const struct blame *blame = &group->blames[group->subject];
	const struct snapshot_process *straggler = group->blames[group->straggler.at].process;

	switch (letter) {
	case 'P': snprintf(to, size, "%u", blame->process->pid); break;
	case 'C': snprintf(to, size, "%s", culprit_name(blame, rows[row].cause)); break;
	case 'L':
		snprintf(to, size, "%u", why_nr_loaders(group->after, blame->process->pid));
		break;
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

/* The weight of the advice for a cause; 0: give no advice. */
static u64 weight(const struct why_group *group, u32 cause)
{
	const struct blame *blame = &group->blames[group->subject];
	bool is_straggler = group->has_straggler && group->straggler.at == group->subject;

	if (blame->disagrees)
		return 0;
	if (cause == BUSY_STRAGGLER)
		return is_straggler && group->straggler.is_measured &&
				       why_share(blame, blame->idle_ns) < WHY_IDLE_PERMILLE
			       ? group->straggler.lead_ns
			       : 0;
	/*
	 * A GPU that waits for other ranks is not idle, but the same advice applies. The wait
	 * counts if it was measured. If only an upper bound is known, the wait counts only if
	 * a straggler was found.
	 */
	if (cause == IDLE_COLLECTIVE && !is_straggler) {
		bool is_known = blame->waited == WAITED_MEASURED || group->has_straggler;
		u64 ns = blame->cause_ns[cause] + (is_known ? blame->waited_ns : 0);

		return why_share(blame, ns) >= STRAGGLER_PERMILLE ? ns : 0;
	}
	/* More work is not a matter of this machine. */
	if (cause == blame_largest_cause(blame) &&
	    why_cause(group->after, blame) == WHY_NO_REQUESTS)
		return 0;
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
		/* Do not repeat a text that two causes share. */
		for (u32 row = 0; row < ARRAY_SIZE(rows); row++)
			given[row] |= strcmp(rows[row].text, rows[best].text) == 0;
		write_advice(group, best, ret[nr++]);
	}
	return nr;
}
