/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/status.h"
#include "answers/job_text.h"
#include "base/cleanup.h"
#include "base/user.h"
#include "core/feature.h"
#include "core/process.h"

/* Lines of the terminal outside the lists, and the minimum rows per list. */
#define FIXED_LINES 18
#define ROWS_MIN    3

#define LABEL_WIDTH 11

static void print_label(const struct term *term, const char *label)
{
	term_print(term, STYLE_DIM, "%-*s", LABEL_WIDTH, label);
}

static void print_rules(const struct snapshot_sched *sched, const struct term *term)
{
	if (!sched->rules_off)
		return;
	term_print(term, STYLE_WARNING, ", rules disabled:");
	for (u32 rule = 0; rule < RULE_NR; rule++)
		if (sched->rules_off & (1U << rule))
			term_print(term, STYLE_WARNING, " %s", sched_rule_label(rule));
}

static void print_nice(const struct snapshot_sched *sched, const struct term *term)
{
	bool acts = sched->actuator == ACTUATOR_NICE;

	if (!acts && !sched->nr_nice_changes)
		return;
	print_label(term, "nice");
	term_print(term, acts ? STYLE_GOOD : STYLE_DIM, "%s", acts ? "acting" : "off");
	term_print(term, STYLE_PLAIN, ", %llu threads changed, %s changes", sched->nr_nice_threads,
		   unit_count(sched->nr_nice_changes).text);
	if (sched->nr_nice_dropped)
		term_print(term, STYLE_WARNING, ", %s dropped",
			   unit_count(sched->nr_nice_dropped).text);
	if (sched->nr_nice_lost)
		term_print(term, STYLE_WARNING, ", %llu threads left to other programs",
			   sched->nr_nice_lost);
	term_print(term, STYLE_PLAIN, "\n");
}

static void print_scheduler(const struct snapshot_sched *sched, const struct term *term)
{
	static const enum style styles[SCHED_STATE_NR] = {
		[SCHED_OFF] = STYLE_WARNING,
		[SCHED_ATTACHED] = STYLE_GOOD,
		[SCHED_EJECTED] = STYLE_BAD,
		[SCHED_WAITING] = STYLE_GOOD,
	};
	u64 nr[DECISION_NR] = {}, total = 0;

	print_label(term, "scheduler");
	term_print(term, sched->state < SCHED_STATE_NR ? styles[sched->state] : STYLE_BAD, "%s",
		   snapshot_sched_state_label(sched->state));
	if (sched->reason[0])
		term_print(term, STYLE_BAD, " (%s)", sched->reason);
	term_print(term, STYLE_PLAIN, ", %u %% of each CPU is reserved for ordinary tasks",
		   sched->reserved_percent);
	print_rules(sched, term);
	if (sched->nr_ejected)
		term_print(term, STYLE_BAD, ", ejected %llu times", sched->nr_ejected);
	term_print(term, STYLE_PLAIN, "\n");

	print_nice(sched, term);
	for (u32 c = 0; c < CLASS_NR; c++)
		for (u32 d = 0; d < DECISION_NR; d++)
			nr[d] += sched->classes[c].nr[d];
	print_label(term, "decisions");
	for (u32 d = 0; d < DECISION_NR; d++) {
		if (nr[d])
			term_print(term, STYLE_PLAIN, "%s%s %s", total ? ", " : "",
				   unit_count(nr[d]).text, sched_decision_label(d));
		total += nr[d];
	}
	term_print(term, STYLE_PLAIN, "%s\n", total ? "" : "none yet");
}

/* How many of `nr` rows are shown. A line below the list counts the rest. */
static u32 rows_shown(const struct term *term, u32 nr)
{
	u32 room = term->height > FIXED_LINES ? (term->height - FIXED_LINES) / 3 : 0;

	room = room < ROWS_MIN ? ROWS_MIN : room;
	return term->height && nr > room ? room : nr;
}

static int print_list(const struct term *term, const struct table *table, u32 shown, u32 nr)
{
	int err = table_print(table, term);

	if (shown < nr)
		term_print(term, STYLE_DIM, "... and %u more: use --json to see all\n", nr - shown);
	term_print(term, STYLE_PLAIN, "\n");
	return err;
}

static int print_jobs(const struct snapshot *snapshot, const struct term *term)
{
	static const struct column columns[] = {
		{ "JOB" },    { "USER" }, { "PROCESSES", true }, { "RANKS", true }, { "NAMES" },
		{ "CGROUP" }, {},
	};
	CLEANUP(table_free_cleanup) struct table *table = NULL;
	u32 shown = rows_shown(term, snapshot->nr_jobs);

	if (snapshot->nr_jobs == 0)
		return 0;
	table = table_new(columns);
	for (u32 job = 0; job < shown; job++) {
		u32 nr_processes = 0, nr_ranks = 0;

		for (u32 i = 0; i < snapshot->nr_processes; i++) {
			const struct snapshot_process *process = &snapshot->processes[i];

			if (process->job != job + 1)
				continue;
			nr_processes++;
			nr_ranks += process->nr_ranks > 0;
		}
		table_cell(table, STYLE_TITLE, "%s", snapshot->jobs[job].name);
		table_cell(table, STYLE_PLAIN, "%s", user_name(snapshot->jobs[job].uid).text);
		table_cell(table, STYLE_PLAIN, "%u", nr_processes);
		table_cell(table, STYLE_PLAIN, "%u", nr_ranks);
		table_cell(table, STYLE_PLAIN, "%s", job_names_text(&snapshot->jobs[job]).text);
		table_cell(table, STYLE_DIM, "%s", snapshot->jobs[job].cgroup);
	}
	return print_list(term, table, shown, snapshot->nr_jobs);
}

/* "1 launcher, 3 loader" */
static void add_roles(struct table *table, const struct snapshot *snapshot, u32 pid)
{
	u32 nr[ROLE_NR] = {};
	char text[128] = "";
	size_t used = 0;

	for (u32 i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].pid == pid && snapshot->threads[i].role < ROLE_NR)
			nr[snapshot->threads[i].role]++;
	for (u32 role = 0; role < ROLE_NR && used < sizeof(text); role++)
		if (role != ROLE_OTHER && nr[role])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u %s",
						 used ? ", " : "", nr[role], role_label(role));
	table_cell(table, STYLE_PLAIN, "%s", text);
}

/* The number of its main GPU, and of the part (MIG) that it uses: "3" or "3/7". */
static void add_device(struct table *table, const struct snapshot_process *process)
{
	const struct snapshot_task *task = &process->task;

	if (snapshot_gpu_is_unknown(process))
		table_cell(table, STYLE_WARNING, "unknown");
	else if (!task->known || task->gpu == SNAPSHOT_GPU_UNKNOWN)
		table_cell(table, STYLE_DIM, "-");
	else if (task->gpu_instance == SNAPSHOT_GPU_UNKNOWN)
		table_cell(table, STYLE_PLAIN, "%u", task->gpu);
	else
		table_cell(table, STYLE_PLAIN, "%u/%u", task->gpu, task->gpu_instance);
}

static void add_process(struct table *table, const struct snapshot *snapshot,
			const struct snapshot_process *process)
{
	static const enum style styles[PHASE_NR] = {
		[PHASE_UNKNOWN] = STYLE_DIM,	  [PHASE_DATA_LOADING] = STYLE_WARNING,
		[PHASE_GPU_COMPUTE] = STYLE_GOOD, [PHASE_COLLECTIVE] = STYLE_TITLE,
		[PHASE_OPTIMIZER] = STYLE_PLAIN,
	};
	u64 total = 0, memory = 0;

	for (u32 phase = 0; phase < PHASE_NR; phase++)
		total += process->phase_ns[phase];
	for (u32 i = 0; i < process->nr_memory; i++)
		memory += process->memory[i].book.current_bytes;
	if (process->nr_ranks)
		table_cell(table, STYLE_TITLE, "%d", process->rank);
	else
		table_cell(table, STYLE_DIM, "-");
	table_cell(table, STYLE_PLAIN, "%u", process->pid);
	table_cell(table, STYLE_PLAIN, "%s%s", process->comm,
		   snapshot_is_unproven(snapshot, process) ? " (unproven)" : "");
	table_cell(table, styles[phase_of(process->phase)], "%s", phase_label(process->phase));
	for (u32 phase = PHASE_UNKNOWN + 1; phase < PHASE_NR; phase++)
		table_cell(table, STYLE_PLAIN, "%.0f%%",
			   total ? 100.0 * (double)process->phase_ns[phase] / (double)total : 0.0);
	add_device(table, process);
	table_cell(table, STYLE_PLAIN, "%s", process->nr_memory ? unit_bytes(memory).text : "-");
	add_roles(table, snapshot, process->pid);
}

static int print_processes(const struct snapshot *snapshot, const struct term *term)
{
	/* The percentage columns are the phases in their order, without unknown. */
	static const struct column columns[] = {
		{ "RANK", true },   { "PID", true },	{ "COMMAND" },	  { "PHASE" },
		{ "DATA", true },   { "GPU", true },	{ "COLL", true }, { "OPT", true },
		{ "DEVICE", true }, { "MEMORY", true }, { "THREADS" },	  {},
	};
	CLEANUP(table_free_cleanup) struct table *table = NULL;
	u32 shown = rows_shown(term, snapshot->nr_processes);

	if (snapshot->nr_processes == 0) {
		term_print(term, STYLE_DIM, "No process uses a GPU.\n");
		term_print(term, STYLE_PLAIN, "\n");
		return 0;
	}
	table = table_new(columns);
	for (u32 i = 0; i < shown; i++)
		add_process(table, snapshot, &snapshot->processes[i]);
	return print_list(term, table, shown, snapshot->nr_processes);
}

static void add_gpu(struct table *table, const struct snapshot_gpu *gpu)
{
	table_cell(table, STYLE_TITLE, "%u", gpu->gpu);
	if (gpu->valid & SNAPSHOT_GPU_BUSY)
		table_cell(table, gpu->busy_percent >= 80 ? STYLE_GOOD : STYLE_WARNING, "%u%%",
			   gpu->busy_percent);
	else
		table_cell(table, STYLE_DIM, "-");
	table_cell(table, STYLE_PLAIN, "%s",
		   gpu->valid & SNAPSHOT_GPU_MEMORY_USED ? unit_bytes(gpu->memory_used_bytes).text
							 : "-");
	table_cell(table, STYLE_PLAIN, "%s",
		   gpu->valid & SNAPSHOT_GPU_MEMORY_TOTAL ? unit_bytes(gpu->memory_total_bytes).text
							  : "-");
	if (gpu->valid & SNAPSHOT_GPU_NUMA_NODE)
		table_cell(table, STYLE_PLAIN, "%u", gpu->numa_node);
	else
		table_cell(table, STYLE_DIM, "-");
	table_cell(table, STYLE_DIM, "%s", gpu->uuid);
}

static int print_gpus(const struct snapshot *snapshot, const struct term *term)
{
	static const struct column columns[] = {
		{ "GPU", true },
		{ "BUSY", true },
		{ "MEM USED", true },
		{ "MEM TOTAL", true },
		{ "NUMA NODE", true },
		{ "UUID" },
		{},
	};
	CLEANUP(table_free_cleanup) struct table *table = NULL;
	u32 shown = rows_shown(term, snapshot->nr_gpus);

	if (snapshot->nr_gpus == 0)
		return 0;
	table = table_new(columns);
	for (u32 i = 0; i < shown; i++)
		add_gpu(table, &snapshot->gpus[i]);
	return print_list(term, table, shown, snapshot->nr_gpus);
}

static void print_drops(const struct snapshot *snapshot, const struct term *term)
{
	bool any = false;

	print_label(term, "dropped");
	for (u32 drop = 0; drop < DROP_NR; drop++) {
		if (!snapshot->nr_dropped[drop])
			continue;
		term_print(term, STYLE_WARNING, "%s%s %s", any ? ", " : "",
			   unit_count(snapshot->nr_dropped[drop]).text, snapshot_drop_label(drop));
		any = true;
	}
	term_print(term, STYLE_PLAIN, "%s\n", any ? "" : "none");
	if (snapshot->nr_gpu_conflicts) {
		print_label(term, "conflicts");
		term_print(term, STYLE_WARNING,
			   "%s times, a runtime and the driver named different GPUs\n",
			   unit_count(snapshot->nr_gpu_conflicts).text);
	}
	if (!snapshot->nr_restarts)
		return;
	print_label(term, "restarts");
	term_print(term, STYLE_WARNING, "%s (see: journalctl -u zerneld)\n",
		   unit_count(snapshot->nr_restarts).text);
}

/* Who lost data because of a limit of its own. Others lost nothing. */
static void print_quotas(const struct snapshot *snapshot, const struct term *term)
{
	for (u32 i = 0; i < snapshot->nr_over_quota; i++) {
		const struct snapshot_quota *quota = &snapshot->over_quota[i];

		print_label(term, "over quota");
		term_print(term, STYLE_WARNING,
			   "user %u: %s calls of processes, %s memory operations not followed, %s "
			   "scans refused\n",
			   quota->uid, unit_count(quota->nr_processes).text,
			   unit_count(quota->nr_memory).text, unit_count(quota->nr_scans).text);
	}
}

static void print_roles(const struct snapshot *snapshot, const struct term *term)
{
	bool any = false;

	print_label(term, "roles");
	for (u32 role = 0; role < ROLE_NR; role++) {
		if (!snapshot->nr_role[role])
			continue;
		term_print(term, STYLE_PLAIN, "%s%u %s", any ? ", " : "", snapshot->nr_role[role],
			   role_label(role));
		any = true;
	}
	term_print(term, STYLE_PLAIN, "%s\n", any ? "" : "none");
}

static void print_lacks(const struct snapshot *snapshot, const struct term *term)
{
	char text[512];

	if (!snapshot->lacks)
		return;
	features_list(snapshot->lacks, text, sizeof(text));
	print_label(term, "left out");
	term_print(term, STYLE_WARNING, "%s", text);
	term_print(term, STYLE_DIM, " (run: zernel doctor)\n");
}

static void print_rest(const struct snapshot *snapshot, const struct term *term)
{
	if (snapshot->is_own) {
		term_print(term, STYLE_DIM,
			   "Only your own processes are shown. Members of group zernel see all.\n");
		print_quotas(snapshot, term);
		return;
	}
	print_lacks(snapshot, term);
	print_roles(snapshot, term);
	print_label(term, "learning");
	term_print(term, STYLE_PLAIN, "%llu profiles (%llu confident), %s observations\n",
		   snapshot->learning.nr_profiles, snapshot->learning.nr_confident,
		   unit_count(snapshot->learning.nr_observations).text);
	print_drops(snapshot, term);
	print_quotas(snapshot, term);
	print_label(term, "own cost");
	term_print(term, STYLE_PLAIN, "%s of CPU time, %s of memory",
		   unit_ns(snapshot->cost.cpu_ns).text, unit_bytes(snapshot->cost.rss_bytes).text);
	if (snapshot->cost.bpf_run_ns)
		term_print(term, STYLE_PLAIN, ", %s in BPF programs",
			   unit_ns(snapshot->cost.bpf_run_ns).text);
	term_print(term, STYLE_PLAIN, "\n");
}

int status_print(const struct snapshot *snapshot, const struct term *term)
{
	int err;

	term_print(term, STYLE_TITLE, "%s", snapshot->host);
	term_print(term, STYLE_DIM, "  zerneld %s, Linux %s\n", snapshot->version,
		   snapshot->kernel);
	print_scheduler(&snapshot->sched, term);
	term_print(term, STYLE_PLAIN, "\n");
	err = print_jobs(snapshot, term);
	if (err == 0)
		err = print_processes(snapshot, term);
	if (err == 0)
		err = print_gpus(snapshot, term);
	print_rest(snapshot, term);
	return err;
}
