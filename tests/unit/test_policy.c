/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/policy.h"

#define NOW (100 * NSEC_PER_SEC)

struct vector {
	struct class_view view;
	u32 rules_off;
	enum sched_class class;
};

/* clang-format off */
/* The test sets `now`, and a recent sync if the row has no last_sync_ns. */
static const struct vector vectors[] = {
	{ { .role = ROLE_OTHER, .device_busy = 1 }, 0, CLASS_ORDINARY },
	/* a task without a role stays ordinary, no matter what its consumer does */
	{ { .role = ROLE_OTHER, .consumer_waits = 1, .woken = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_OTHER, .consumer_waited = 1, .woken = 1 }, 0, CLASS_ORDINARY },
	/* launchers: between syncs, and woken inside a sync */
	{ { .role = ROLE_LAUNCHER }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER, .device_busy = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .woken = 1,
	  .expected_end_ns = NOW + NSEC_PER_SEC },
	  0, CLASS_FEEDER },
	/* spinning sync: the end is far, near, or unknown */
	{ { .role = ROLE_LAUNCHER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .expected_end_ns = NOW + 10 * NSEC_PER_MSEC },
	  0, CLASS_SPINNER	},
	{ { .role = ROLE_SYNC_WAITER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .expected_end_ns = NOW + 10 * NSEC_PER_MSEC },
	  0, CLASS_SPINNER	},
	{ { .role = ROLE_LAUNCHER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .expected_end_ns = NOW + SPIN_MARGIN_NS / 2 },
	  0, CLASS_FEEDER },
	/* the end was expected long ago: look at intervals */
	{ { .role = ROLE_LAUNCHER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .expected_end_ns = NOW - SPIN_PATIENCE_NS / 2 },
	  0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .expected_end_ns = NOW - 2 * SPIN_PATIENCE_NS },
	  0, CLASS_SPINNER	},
	{ { .role = ROLE_LAUNCHER, .device_busy = 1, .in_sync = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER, .in_sync = 1, .expected_end_ns = NOW + NSEC_PER_SEC },
	  0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .expected_end_ns = NOW + 10 * NSEC_PER_MSEC },
	  1 << RULE_SPINNER,
	  CLASS_FEEDER },
	/* no sync for a long time: ordinary */
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = NOW - 2 * FEEDING_MIN_NS }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = NOW - 2 * FEEDING_MIN_NS, .woken = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = NOW - 2 * FEEDING_MIN_NS, .cycle_ns = FEEDING_MIN_NS }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = NOW - 2 * FEEDING_MIN_NS, .cycle_ns = FEEDING_MIN_NS + 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = NOW - FEEDING_MAX_NS, .cycle_ns = UINT64_MAX }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_LAUNCHER }, 1 << RULE_FEEDER, CLASS_ORDINARY },
	/* loaders */
	{ { .role = ROLE_LAUNCHER, .polls = 1 }, 0, CLASS_SPINNER },
	{ { .role = ROLE_LAUNCHER, .polls = 1, .woken = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER, .polls = 1 }, 1 << RULE_POLLER, CLASS_FEEDER },
	{ { .role = ROLE_CRITICAL }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_CRITICAL, .woken = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_CRITICAL, .awaited = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_CRITICAL, .awaited = 1 }, 1 << RULE_CRITICAL, CLASS_ORDINARY },
	{ { .role = ROLE_LOADER }, 0, CLASS_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waits = 1 }, 0, CLASS_WANTED_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waits = 1 }, 1 << RULE_LOADER, CLASS_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waited = 1 }, 0, CLASS_LATE_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waited = 1, .consumer_waits = 1 }, 0, CLASS_WANTED_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waited = 1 }, 1 << RULE_LATE_LOADER, CLASS_LOADER },
	/* collective helpers: feeder if woken, spinner if polling, else ordinary */
	{ { .role = ROLE_COLLECTIVE_HELPER, .woken = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .polls = 1 }, 0, CLASS_SPINNER },
	{ { .role = ROLE_COLLECTIVE_HELPER, .polls = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .polls = 1 }, 1 << RULE_HELPER, CLASS_ORDINARY },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .woken = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .woken = 1, .polls = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .woken = 1 }, 1 << RULE_HELPER, CLASS_ORDINARY },
	/* tasks of a process that has just opened a GPU, without a role or a reason by their role */
	{ { .opens = 1 }, 0, CLASS_WANTED_LOADER },
	{ { .parent_opens = 1 }, 0, CLASS_LATE_LOADER },
	{ { .opens = 1, .parent_opens = 1 }, 0, CLASS_WANTED_LOADER },
	{ { .opens = 1 }, 1 << RULE_OPENING, CLASS_ORDINARY },
	{ { .parent_opens = 1 }, 1 << RULE_OPENING, CLASS_ORDINARY },
	{ { .role = ROLE_LOADER, .opens = 1 }, 0, CLASS_LOADER },
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = 1, .opens = 1 }, 0, CLASS_WANTED_LOADER },
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = 1, .opens = 1 }, 1 << RULE_OPENING, CLASS_ORDINARY },
	{ { .role = ROLE_LAUNCHER, .woken = 1, .opens = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_CRITICAL, .parent_opens = 1 }, 0, CLASS_LATE_LOADER },
	/* an invalid role */
	{ { .role = 1000 }, 0, CLASS_ORDINARY },
};
/* clang-format on */

static void test_classes(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		struct class_view view = vectors[i].view;

		view.now = NOW;
		if (!view.last_sync_ns)
			view.last_sync_ns = NOW - NSEC_PER_MSEC;
		if (class_of(&view, vectors[i].rules_off) != vectors[i].class)
			fail_msg("vector %zu has the wrong class", i);
	}
}

/* Promoted tasks always want to run. Ordinary tasks still get their reserved share. */
static void test_ordinary_tasks_keep_their_share(void **state)
{
	u64 debt = 0, promoted_ns = 0, others_ns = 0;

	for (int i = 0; i < 100000; i++) {
		bool others = debt > DEBT_LIMIT_NS;

		*(others ? &others_ns : &promoted_ns) += NSEC_PER_MSEC;
		debt = debt_after(debt, !others, NSEC_PER_MSEC, 30);
	}
	assert_in_range(others_ns * 1000 / (others_ns + promoted_ns), 290, 310);
}

static void test_debt_is_bounded(void **state)
{
	assert_int_equal(debt_after(0, true, 3600 * NSEC_PER_SEC, 30), DEBT_MAX_NS);
	assert_int_equal(debt_after(NSEC_PER_MSEC, false, NSEC_PER_SEC, 30), 0);
	assert_int_equal(debt_after(5, true, NSEC_PER_SEC, 0), 5);
}

/* Tasks of the system always want to run, at each CPU. They get a tenth of it. */
static void test_system_tasks_are_bounded(void **state)
{
	u64 debt = 0, system_ns = 0, others_ns = 0;

	for (int i = 0; i < 100000; i++) {
		bool is_system = debt <= SYSTEM_DEBT_LIMIT_NS;

		*(is_system ? &system_ns : &others_ns) += NSEC_PER_MSEC;
		debt = system_debt_after(debt, is_system, NSEC_PER_MSEC);
		assert_true(debt <= SYSTEM_DEBT_MAX_NS);
	}
	assert_in_range(system_ns * 1000 / (others_ns + system_ns), 90, 110);
}

/* A sync that gave up its CPU looks at its GPU every 2 ms, and before the expected end. */
static void test_spinning_sync_looks_at_its_gpu(void **state)
{
	for (u64 end = 0; end < 2 * NOW; end += NSEC_PER_MSEC / 3) {
		u64 due = spin_due(end, NOW);

		assert_in_range(due, NOW, NOW + SPIN_CHECK_NS);
		if (end > NOW + SPIN_MARGIN_NS)
			assert_true(due <= end - SPIN_MARGIN_NS);
		if (end > NOW + NSEC_PER_SEC)
			end += NSEC_PER_SEC;
		else if (end + NSEC_PER_SEC < NOW)
			end += NSEC_PER_SEC / 2;
	}
}

/* A higher tier has a larger credit, and the lowest tier preempts no task. */
static void test_tiers_are_ordered(void **state)
{
	assert_int_equal(tier_rules[TIER_BATCH].credit_ns, 0);
	/* Tasks of the same tier do not preempt each other, else they would alternate. */
	assert_false(tier_rules[TIER_BATCH].takes_batch);
	for (u32 tier = TIER_BATCH; tier < TIER_NR; tier++) {
		/* A larger credit than a slice would delay tasks without a credit too long. */
		assert_true(tier_rules[tier].credit_ns <= class_rules[CLASS_ORDINARY].slice_ns);
		if (tier > TIER_BATCH)
			assert_true(tier_rules[tier].credit_ns > tier_rules[tier - 1].credit_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_ordinary_tasks_keep_their_share),
		cmocka_unit_test(test_debt_is_bounded),
		cmocka_unit_test(test_system_tasks_are_bounded),
		cmocka_unit_test(test_spinning_sync_looks_at_its_gpu),
		cmocka_unit_test(test_tiers_are_ordered),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
