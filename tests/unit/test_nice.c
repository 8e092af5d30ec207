/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/nice.h"

#define NOW	(100 * NSEC_PER_SEC)
#define TICK_NS (200 * NSEC_PER_MSEC)

/* What a thread did between two samples that are TICK_NS apart. */
struct did {
	struct class_view view;
	u64 cpu_ms;
	u64 spin_ms;
	u64 sleep_ms;
};

struct row {
	const char *name;
	struct did first, second;
	u32 rules_off;
	u32 after_first, after_second; /* enum sched_class */
};

/* clang-format off */
#define FEEDS { .role = ROLE_LAUNCHER, .device_busy = 1 }
#define RESTS { .role = ROLE_LAUNCHER, .last_sync_ns = 1 }
#define LATE  { .role = ROLE_LOADER, .consumer_waited = 1 }
#define HELPS { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1 }

static const struct row rows[] = {
	{ "a launcher that feeds", { FEEDS }, { FEEDS, 2, 0, 150 }, 0, CLASS_FEEDER, CLASS_FEEDER },
	{ "a sync waiter", { { .role = ROLE_SYNC_WAITER, .device_busy = 1 } },
	  { { .role = ROLE_SYNC_WAITER, .device_busy = 1 }, 1, 0, 190 }, 0, CLASS_FEEDER, CLASS_FEEDER },
	{ "a launcher that no longer feeds is held", { FEEDS }, { RESTS }, 0, CLASS_FEEDER, CLASS_FEEDER },
	{ "a launcher that never fed", { RESTS }, { RESTS }, 0, CLASS_ORDINARY, CLASS_ORDINARY },
	{ "a launcher that starts to feed", { RESTS }, { FEEDS }, 0, CLASS_ORDINARY, CLASS_FEEDER },
	{ "a launcher that computes without a sync", { FEEDS }, { FEEDS, 200 }, 0, CLASS_FEEDER, CLASS_FEEDER },
	/* spinning syncs */
	{ "a launcher that was known to spin", { FEEDS, 90, 80, 20 }, { FEEDS }, 0, CLASS_SPINNER, CLASS_SPINNER },
	{ "a launcher that begins to spin", { FEEDS, 2, 0, 150 }, { FEEDS, 100, 90, 10 }, 0, CLASS_FEEDER,
	  CLASS_SPINNER },
	{ "a starved launcher that spins", { FEEDS }, { FEEDS, 8, 7, 0 }, 0, CLASS_FEEDER, CLASS_SPINNER },
	{ "a launcher that spins a little", { FEEDS }, { FEEDS, 8, 6, 0 }, 0, CLASS_FEEDER, CLASS_FEEDER },
	{ "a launcher that spins before it sleeps", { FEEDS }, { FEEDS, 50, 40, 60 }, 0, CLASS_FEEDER, CLASS_FEEDER },
	{ "a spinner without the rule spinner", { FEEDS }, { FEEDS, 100, 90, 10 }, 1 << RULE_SPINNER, CLASS_FEEDER,
	  CLASS_SPINNER },
	/* loaders */
	{ "a loader whose consumer waits", { { .role = ROLE_LOADER, .consumer_waits = 1 } }, { LATE, 200 }, 0,
	  CLASS_WANTED_LOADER, CLASS_LATE_LOADER },
	{ "a loader that works ahead", { { .role = ROLE_LOADER } }, { { .role = ROLE_LOADER }, 200 }, 0,
	  CLASS_ORDINARY, CLASS_ORDINARY },
	/* helpers */
	{ "a helper that sleeps", { HELPS }, { HELPS, 10 }, 0, CLASS_ORDINARY, CLASS_FEEDER },
	{ "a helper that polls", { HELPS }, { HELPS, 26 }, 0, CLASS_ORDINARY, CLASS_SPINNER },
	{ "a helper outside of collectives", { { .role = ROLE_COLLECTIVE_HELPER } },
	  { { .role = ROLE_COLLECTIVE_HELPER }, 10 }, 0, CLASS_ORDINARY, CLASS_ORDINARY },
	/* rules */
	{ "no rule feeder", { FEEDS }, { FEEDS }, 1 << RULE_FEEDER, CLASS_ORDINARY, CLASS_ORDINARY },
	{ "no rule late-loader", { LATE }, { LATE }, 1 << RULE_LATE_LOADER, CLASS_LOADER, CLASS_LOADER },
	{ "no rule helper", { HELPS }, { HELPS }, 1 << RULE_HELPER, CLASS_ORDINARY, CLASS_ORDINARY },
	{ "no role", { { .device_busy = 1 } }, { { .device_busy = 1 } }, 0, CLASS_ORDINARY, CLASS_ORDINARY },
};
/* clang-format on */

static void add(struct nice_sample *sample, const struct did *did)
{
	u64 now = sample->view.now + TICK_NS;

	sample->view = did->view;
	sample->view.now = now;
	sample->cpu_ns += did->cpu_ms * NSEC_PER_MSEC;
	sample->sync_spin_ns += did->spin_ms * NSEC_PER_MSEC;
	sample->sync_sleep_ns += did->sleep_ms * NSEC_PER_MSEC;
}

/* Classes that change nothing are equal. */
static s32 effect(u32 class)
{
	return nice_rules[class].nice;
}

static void test_two_samples(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct nice_sample sample = { .view.now = NOW };
		struct nice_state thread = {};
		u32 first, second;

		add(&sample, &rows[i].first);
		first = nice_decide(&thread, &sample, rows[i].rules_off);
		add(&sample, &rows[i].second);
		second = nice_decide(&thread, &sample, rows[i].rules_off);
		if (effect(first) != effect(rows[i].after_first) ||
		    effect(second) != effect(rows[i].after_second) ||
		    (second == CLASS_SPINNER) != (rows[i].after_second == CLASS_SPINNER))
			fail_msg("%s: classes %u and %u", rows[i].name, first, second);
	}
}

/* The number of samples without a promotion until the thread has the default again. */
static u32 samples_until_default(struct nice_state *thread, struct nice_sample *sample,
				 const struct did *did)
{
	for (u32 nr = 1; nr < 1000; nr++) {
		add(sample, did);
		if (!effect(nice_decide(thread, sample, 0)))
			return nr;
	}
	return 0;
}

static void test_a_class_that_ends_is_held_for_a_while(void **state)
{
	const struct did feeds = { FEEDS }, none = {};
	struct nice_sample sample = { .view.now = NOW };
	struct nice_state thread = {};

	add(&sample, &feeds);
	assert_int_equal(nice_decide(&thread, &sample, 0), CLASS_FEEDER);
	assert_int_equal(samples_until_default(&thread, &sample, &none), NICE_HOLD_NS / TICK_NS);
}

static void test_a_spinner_is_restored_at_once_and_left_alone(void **state)
{
	const struct did feeds = { FEEDS }, spins = { FEEDS, 100, 100, 0 };
	struct nice_sample sample = { .view.now = NOW };
	struct nice_state thread = {};
	u32 nr = 0;

	add(&sample, &feeds);
	assert_int_equal(nice_decide(&thread, &sample, 0), CLASS_FEEDER);
	assert_int_equal(samples_until_default(&thread, &sample, &spins), 1);
	do {
		add(&sample, &feeds);
		nr++;
	} while (!effect(nice_decide(&thread, &sample, 0)));
	assert_int_equal(nr, NICE_SPUN_HOLD_NS / TICK_NS);
}

static struct process_state process_with(bool holds_gpu)
{
	return (struct process_state){
		.holds_gpu = holds_gpu,
		.data_waited_ns = NOW - NSEC_PER_SEC,
		.task = { .phase = PHASE_COLLECTIVE, .signals.last_sync_ns = NOW - 5 },
	};
}

static void test_only_processes_with_evidence_have_roles(void **state)
{
	const struct process_state proven = process_with(true), unproven = process_with(false);
	const struct {
		u32 role;
		const struct process_state *process, *consumer;
		bool counts;
	} cases[] = {
		{ ROLE_LAUNCHER, &proven, NULL, true },
		{ ROLE_LAUNCHER, &unproven, NULL, false },
		{ ROLE_LAUNCHER, &unproven, &proven, false },
		{ ROLE_COLLECTIVE_HELPER, &proven, NULL, true },
		{ ROLE_COLLECTIVE_HELPER, &unproven, NULL, false },
		{ ROLE_LOADER, &unproven, &proven, true },
		{ ROLE_LOADER, &proven, &unproven, false },
		{ ROLE_LOADER, &proven, NULL, false },
		{ ROLE_LAUNCHER, NULL, NULL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct thread_record thread = { .role = cases[i].role };
		struct nice_sample sample =
			nice_look(&thread, cases[i].process, cases[i].consumer, NOW);

		assert_int_equal(sample.view.role, cases[i].counts ? cases[i].role : ROLE_OTHER);
	}
}

static void test_a_look_passes_on_what_the_policy_needs(void **state)
{
	struct process_state process = process_with(true);
	struct thread_record thread = {
		.role = ROLE_LOADER, .cpu_ns = 3, .sync_spin_ns = 4, .sync_sleep_ns = 5
	};
	struct nice_sample sample = nice_look(&thread, NULL, &process, NOW);

	assert_int_equal(sample.cpu_ns, 3);
	assert_int_equal(sample.sync_spin_ns, 4);
	assert_int_equal(sample.sync_sleep_ns, 5);
	assert_int_equal(sample.view.now, NOW);
	assert_true(sample.view.consumer_waited);
	assert_false(sample.view.consumer_waits);
	process.data_wait_since_ns = NOW - 1;
	process.data_waited_ns = NOW - LATE_MAX_NS;
	sample = nice_look(&thread, NULL, &process, NOW);
	assert_true(sample.view.consumer_waits);
	assert_false(sample.view.consumer_waited);
	thread.role = ROLE_LAUNCHER;
	sample = nice_look(&thread, &process, NULL, NOW);
	assert_int_equal(sample.view.last_sync_ns, NOW - 5);
	assert_true(sample.view.device_busy);
	assert_true(sample.view.in_collective);
	assert_false(sample.view.consumer_waits);
	assert_false(sample.view.polls);
	thread.polls = 1;
	sample = nice_look(&thread, &process, NULL, NOW);
	assert_true(sample.view.polls);
	thread.role = ROLE_COLLECTIVE_HELPER; /* its CPU time decides */
	sample = nice_look(&thread, &process, NULL, NOW);
	assert_false(sample.view.polls);
}

/* With a low nice value it would take the CPU time of the task that it waits for. */
static void test_a_launcher_that_polls_is_restored_at_once(void **state)
{
	struct process_state process = process_with(true);
	struct thread_record thread = { .role = ROLE_LAUNCHER };
	struct nice_state history = {};
	struct nice_sample sample = nice_look(&thread, &process, NULL, NOW);

	assert_int_equal(nice_decide(&history, &sample, 0), CLASS_FEEDER);
	thread.polls = 1;
	sample = nice_look(&thread, &process, NULL, NOW + 1);
	assert_int_equal(nice_decide(&history, &sample, 0), CLASS_SPINNER);
	thread.polls = 0;
	sample = nice_look(&thread, &process, NULL, NOW + NICE_SPUN_HOLD_NS);
	assert_int_equal(nice_decide(&history, &sample, 0), CLASS_SPINNER);
	sample = nice_look(&thread, &process, NULL, NOW + 1 + NICE_SPUN_HOLD_NS);
	assert_int_equal(nice_decide(&history, &sample, 0), CLASS_FEEDER);
}

int main(void)
{
	const struct CMUnitTest nice[] = {
		cmocka_unit_test(test_two_samples),
		cmocka_unit_test(test_a_class_that_ends_is_held_for_a_while),
		cmocka_unit_test(test_a_spinner_is_restored_at_once_and_left_alone),
		cmocka_unit_test(test_only_processes_with_evidence_have_roles),
		cmocka_unit_test(test_a_look_passes_on_what_the_policy_needs),
		cmocka_unit_test(test_a_launcher_that_polls_is_restored_at_once),
	};

	return cmocka_run_group_tests(nice, NULL, NULL);
}
