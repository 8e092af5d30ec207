/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks that memory does not grow with the number of samples: many samples go through
 * histograms, snapshots and all exporters, while ML processes start and exit.
 * METRICS_SAMPLES sets the number of samples; the long run uses 10^9.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "metrics/prometheus.h"
#include "ipc/snapshot_json.h"
#include "metrics/node.h"

#define SHORT_SAMPLES 10000000
#define NR_ROUNDS     200
#define NR_STAYING    8
#define NR_NEW	      50
#define GROWTH_MAX_KB 512

static long resident_kb(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Copies the histograms of the kernel, like a fold. */
static void fold(struct snapshot *s, const struct snapshot *before, const struct hist *measured,
		 u32 round)
{
	snapshot_clear(s);
	for (u32 i = 0; i < NR_STAYING + NR_NEW; i++) {
		/* The new processes of the previous round have exited. */
		struct snapshot_process *process =
			snapshot_add_process(s, 1 + i + (i < NR_STAYING ? 0 : round * NR_NEW));
		u32 nr_kinds = i < NR_STAYING ? HIST_KIND_NR : 2;

		process->start_ns = process->pid;
		process->job = snapshot_add_job(s, "/job", "job");
		for (u32 kind = 0; kind < nr_kinds; kind++)
			hist_add(snapshot_add_hist(s, &process->hists, kind), measured);
	}
	snapshot_carry(s, before);
}

static void export(const struct snapshot *s)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *read = NULL;
	char *text = NULL;
	size_t length = 0;

	for (u32 format = 0; format < PROMETHEUS_FORMAT_NR; format++) {
		assert_int_equal(prometheus_render(s, &node_config, format, &text, &length), 0);
		free(text);
	}
	assert_int_equal(snapshot_to_json(s, &text, &length), 0);
	assert_int_equal(snapshot_from_json(text, length, &read), 0);
	free(text);
}

static void test_memory_is_flat(void **state)
{
	u64 nr_samples = random_runs("METRICS_SAMPLES", SHORT_SAMPLES);
	CLEANUP(snapshot_free_cleanup) struct snapshot *now = NULL, *before = NULL;
	struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	struct random r = random_start();
	struct hist measured = {};
	long first_kb = 0, last_kb;

	/* Fills every bucket from the start, because empty buckets are not written. */
	for (u32 i = 0; i < HIST_SLOTS; i++)
		hist_record(&measured, hist_bounds_ns[i]);

	assert_int_equal(snapshot_new(&limits, &now), 0);
	assert_int_equal(snapshot_new(&limits, &before), 0);
	for (u32 round = 0; round < NR_ROUNDS; round++) {
		struct snapshot *spare = before;

		for (u64 i = 0; i < nr_samples / NR_ROUNDS; i++)
			hist_record(&measured, random_any(&r));
		before = now;
		now = spare;
		fold(now, before, &measured, round);
		export(now);
		/* The allocator needs some rounds until its memory is stable. */
		if (round == NR_ROUNDS / 2)
			first_kb = resident_kb();
	}
	last_kb = resident_kb();
	print_message("# %llu samples, %u processes: resident %ld kB halfway, %ld kB at the end\n",
		      measured.count, NR_STAYING + NR_NEW * NR_ROUNDS, first_kb, last_kb);
	assert_int_equal(now->nr_dropped[DROP_SNAPSHOT_HISTS], 0);
	assert_true(last_kb - first_kb <= GROWTH_MAX_KB);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_memory_is_flat) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
