/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "core/sched_stats.h"

static void fill(struct sched_stats *stats, u32 factor)
{
	for (u32 cls = 0; cls < CLASS_NR; cls++) {
		for (u32 decision = 0; decision < DECISION_NR; decision++)
			stats->counters.nr[cls][decision] = factor * (cls * DECISION_NR + decision);
		stats->counters.ran_ns[cls] = factor * (cls + 1);
		for (u32 i = 0; i < factor; i++)
			hist_record(&stats->waits[cls], 1000 * (cls + 1));
	}
}

static void test_cpus_add_up(void **state)
{
	static struct sched_stats sum, one, two, expected;

	fill(&one, 1);
	fill(&two, 2);
	fill(&expected, 3);
	sched_stats_add(&sum, &one);
	sched_stats_add(&sum, &two);
	assert_memory_equal(&sum, &expected, sizeof(sum));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpus_add_up),
	};

	return cmocka_run_group_tests_name("sched_stats", tests, NULL, NULL);
}
