// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include "sim/count.h"
#include "sim/load.h"
#include "sim/report.h"

static const char *const count_names[COUNT_NR] = {
	[COUNT_WORK] = "work",	     [COUNT_CPU_SCANS] = "scans",
	[COUNT_CPU_STEPS] = "cpus",  [COUNT_QUEUE_STEPS] = "queued",
	[COUNT_LOCKS] = "locks",     [COUNT_LINES_WRITTEN] = "written",
	[COUNT_LINES_READ] = "read", [COUNT_KICKS] = "kicks",
};

static const char *const kind_names[KIND_NR] = {
	[KIND_HOG] = "hog",	    [KIND_INTERACTIVE] = "interactive", [KIND_PAIR] = "pair",
	[KIND_KTHREAD] = "kthread", [KIND_LAUNCHER] = "launcher",	[KIND_LOADER] = "loader",
	[KIND_HELPER] = "helper",   [KIND_WORKER] = "worker",		[KIND_CORE] = "core",
};

static double in_ms(u64 ns)
{
	return (double)ns / (double)NSEC_PER_MSEC;
}

static void print_operations(const char *name)
{
	printf("%-9s %-11s %9s", "row", "operation", "calls");
	for (u32 i = 0; i < COUNT_NR; i++)
		printf(" %8s %6s", count_names[i], "max");
	for (u32 op = 0; op < OP_OTHER; op++) {
		const struct op_counts *counts = count_of(op);

		printf("\n%-9s %-11s %9llu", name, op_names[op], (unsigned long long)counts->nr);
		for (u32 i = 0; i < COUNT_NR; i++)
			printf(" %8.2f %6llu",
			       counts->nr ? (double)counts->sum[i] / (double)counts->nr : 0,
			       (unsigned long long)counts->max[i]);
	}
	printf("\n\n");
}

static void print_locks(const char *name, u64 measured_ns)
{
	const struct holds *holds = count_holds();
	u64 milliseconds = measured_ns / NSEC_PER_MSEC;

	printf("%-9s longest hold of a lock: run queue %llu (%s), queue %llu (%s)\n", name,
	       (unsigned long long)holds->longest_rq, op_names[holds->rq_op],
	       (unsigned long long)holds->longest_dsq, op_names[holds->dsq_op]);
	printf("%-9s each ms: the busiest lock of a queue is taken %llu times, the busiest line "
	       "is written by another CPU %llu times\n\n",
	       name, (unsigned long long)(dsqs_most_locked() / milliseconds),
	       (unsigned long long)(count_busiest_line() / milliseconds));
}

static void print_waits(const char *name, u64 all_ns)
{
	printf("%-9s %-11s %7s %9s %9s %9s %9s %7s\n", "row", "tasks", "number", "waits", "p50 ms",
	       "p99 ms", "max ms", "CPU %");
	for (u32 kind = 0; kind < KIND_NR; kind++) {
		const struct hist *waits = load_waits(kind);
		u64 nr = 0, ran_ns = 0;

		for (u32 i = 0; i < load_nr_tasks(); i++) {
			if (load_task(i)->kind != kind)
				continue;
			nr++;
			ran_ns += load_ran_ns(load_task(i));
		}
		if (!nr)
			continue;
		printf("%-9s %-11s %7llu %9llu %9.3f %9.3f %9.3f %7.1f\n", name, kind_names[kind],
		       (unsigned long long)nr, (unsigned long long)waits->count,
		       in_ms(hist_quantile(waits, 500)), in_ms(hist_quantile(waits, 990)),
		       in_ms(waits->max), 100.0 * (double)ran_ns / (double)all_ns);
	}
	printf("\n");
}

struct spread {
	double sum, least, most;
	u32 nr;
};

static void spread_add(struct spread *spread, double value)
{
	if (!spread->nr || value < spread->least)
		spread->least = value;
	if (!spread->nr || value > spread->most)
		spread->most = value;
	spread->sum += value;
	spread->nr++;
}

static void spread_print(const char *name, const char *what, const struct spread *spread)
{
	double mean = spread->nr ? spread->sum / spread->nr : 0;

	if (mean <= 0)
		return;
	printf("%-9s %s: mean %.3f ms, least %.2f and most %.2f of the mean\n", name, what, mean,
	       spread->least / mean, spread->most / mean);
}

/* CPU time of hogs that may run anywhere: of each, and the mean of those in each cache or shard. */
static void print_shares(const char *name)
{
	struct spread hogs = {}, caches = {};

	for (u32 llc = 0; llc < topology.nr_llcs; llc++) {
		struct spread here = {};

		for (u32 i = 0; i < load_nr_tasks(); i++) {
			const struct task *task = load_task(i);

			if (task->kind != KIND_HOG || task->p.nr_cpus_allowed == 1 ||
			    topology.cpu_llc[task->cpu] != llc)
				continue;
			spread_add(&here, in_ms(load_ran_ns(task)));
			spread_add(&hogs, in_ms(load_ran_ns(task)));
		}
		if (here.nr)
			spread_add(&caches, here.sum / here.nr);
	}
	spread_print(name, "hogs", &hogs);
	spread_print(name, "hogs of a cache", &caches);
}

static void print_steps(const char *name)
{
	const struct hist *steps = load_steps();

	if (steps->count)
		printf("%-9s steps: %llu, mean %.2f ms, p99 %.2f ms\n", name,
		       (unsigned long long)steps->count, in_ms(hist_mean(steps)),
		       in_ms(hist_quantile(steps, 990)));
}

void report_print(u64 measured_ns)
{
	const struct row *row = load_row();

	printf("%s: %u CPUs, %u caches, %u nodes, %u tasks\n\n", row->name, row->cpus, row->llcs,
	       row->nodes, load_nr_tasks());
	print_operations(row->name);
	print_locks(row->name, measured_ns);
	print_waits(row->name, measured_ns * row->cpus);
	print_shares(row->name);
	print_steps(row->name);
	printf("\n");
}
