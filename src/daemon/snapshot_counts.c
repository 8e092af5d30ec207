/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/snapshot_counts.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void fold_drops(const struct snapshot_sources *sources, struct snapshot *s)
{
	const struct supervisor *supervisor = sources->supervisor;
	const struct kernel *kernel = supervisor_kernel(supervisor);
	struct library_counts libraries = supervisor_libraries(supervisor);
	struct discovery_counts discovery = discovery_counts(sources->discovery);
	struct kernel_drops drops;

	s->nr_restarts += discovery.nr_restarts;
	s->nr_dropped[DROP_MAPS] = discovery.nr_lost;
	s->nr_dropped[DROP_STACKS] = oom_stacks_dropped(sources->oom_stacks);
	if (!kernel)
		return;
	drops = kernel_drops(kernel);
	s->nr_dropped[DROP_EVENTS] = drops.nr_events;
	s->nr_dropped[DROP_PROCESSES] = drops.nr_processes + libraries.nr_processes_excess;
	s->nr_dropped[DROP_FRAMES] = drops.nr_frames;
	s->nr_dropped[DROP_LEDGER] = drops.nr_ledger;
	s->nr_dropped[DROP_LAUNCHERS] = drops.nr_launchers;
	s->nr_dropped[DROP_SAMPLES] = drops.nr_samples;
	s->nr_dropped[DROP_BPF_PROGRAM_RUNS] = drops.nr_bpf_program_runs;
	s->nr_dropped[DROP_COMMS] = drops.nr_comms;
	s->nr_dropped[DROP_MEMORY] = drops.nr_memory;
	s->nr_dropped[DROP_OBSERVATIONS] = drops.nr_observations;
	s->nr_dropped[DROP_READS] = drops.nr_torn;
	s->nr_dropped[DROP_STACKS] += drops.nr_stacks;
	s->nr_dropped[DROP_KERNELS] = drops.nr_kernels;
	s->nr_dropped[DROP_MAPS] +=
		supervisor_nr_lost_maps(supervisor) + libraries.nr_libraries_excess;
}

static void add_table_quota(void *ctx, u32 uid, const u64 nr_refused[TENANT_TABLE_NR])
{
	snapshot_add_quota(ctx,
			   &(struct snapshot_quota){ .uid = uid,
						     .nr_processes = nr_refused[TENANT_PROCESSES],
						     .nr_memory = nr_refused[TENANT_MEMORY] });
}

static void add_scan_quota(void *ctx, u32 uid, u64 nr_scans)
{
	snapshot_add_quota(ctx, &(struct snapshot_quota){ .uid = uid, .nr_scans = nr_scans });
}

static void fold_quotas(const struct snapshot_sources *sources, struct snapshot *s)
{
	const struct kernel *kernel = supervisor_kernel(sources->supervisor);

	s->nr_over_quota = 0;
	if (kernel)
		kernel_read_quotas(kernel, add_table_quota, s);
	discovery_quotas(sources->discovery, add_scan_quota, s);
}

static void fold_probes(const struct supervisor *supervisor, struct snapshot_probes *probes)
{
	struct library_counts counts = supervisor_libraries(supervisor);

	*probes = (struct snapshot_probes){
		.nr_libraries = counts.nr_libraries,
		.nr_probes = counts.nr_probes,
		.nr_processes = counts.nr_processes,
		.nr_failed = counts.nr_unreadable + counts.nr_attach_failed,
		.nr_libraries_left_out = counts.nr_libraries_excess,
		.nr_processes_left_out = counts.nr_processes_excess,
		.nr_stepped = counts.nr_stepped,
	};
	_Static_assert(sizeof(probes->stepped) >= sizeof(counts.stepped), "names fit");
	memcpy(probes->stepped, counts.stepped, sizeof(counts.stepped));
}

static u64 timeval_ns(struct timeval time)
{
	return (u64)time.tv_sec * NSEC_PER_SEC + (u64)time.tv_usec * NSEC_PER_USEC;
}

static void fold_cost(const struct snapshot_sources *sources, struct snapshot_cost *cost)
{
	const struct kernel *kernel = supervisor_kernel(sources->supervisor);
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long nr_pages = 0;
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		cost->cpu_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
	if (statm && fscanf(statm, "%*u %lu", &nr_pages) == 1)
		cost->rss_bytes = nr_pages * (u64)sysconf(_SC_PAGESIZE);
	if (statm)
		fclose(statm);
	cost->bpf_run_ns = kernel ? kernel_run_ns(kernel) : 0;
	cost->loop_longest_ns = sources->loop_turns->max;
}

void counts_fold(const struct snapshot_sources *sources, struct snapshot *s)
{
	fold_drops(sources, s);
	fold_quotas(sources, s);
	fold_probes(sources->supervisor, &s->probes);
	fold_cost(sources, &s->cost);
}
