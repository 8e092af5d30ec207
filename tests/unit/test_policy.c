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
/* `now` and a sync just before are filled in where the row has none. */
static const struct vector vectors[] = {
	{ { .role = ROLE_OTHER, .device_busy = 1 }, 0, CLASS_ORDINARY },
	/* nobody in particular stays that, whoever waits */
	{ { .role = ROLE_OTHER, .consumer_waits = 1, .woken = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_OTHER, .consumer_waited = 1, .woken = 1 }, 0, CLASS_ORDINARY },
	/* launchers: between syncs, and woken out of one */
	{ { .role = ROLE_LAUNCHER }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER, .device_busy = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .woken = 1,
	  .expected_end_ns = NOW + NSEC_PER_SEC },
	  0, CLASS_FEEDER },
	/* spinning: not yet, nearly, and when nobody knows */
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
	{ { .role = ROLE_LAUNCHER, .device_busy = 1, .in_sync = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER, .in_sync = 1, .expected_end_ns = NOW + NSEC_PER_SEC },
	  0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER,
	  .device_busy = 1,
	  .in_sync = 1,
	  .expected_end_ns = NOW + 10 * NSEC_PER_MSEC },
	  1 << RULE_SPINNER,
	  CLASS_FEEDER },
	/* it has not used the device for long: an ordinary program */
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = NOW - 2 * FEEDING_MAX_NS }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_LAUNCHER, .last_sync_ns = NOW - 2 * FEEDING_MAX_NS, .woken = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_LAUNCHER }, 1 << RULE_FEEDER, CLASS_ORDINARY },
	/* loaders */
	{ { .role = ROLE_LOADER }, 0, CLASS_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waits = 1 }, 0, CLASS_WANTED_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waits = 1 }, 1 << RULE_LOADER, CLASS_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waited = 1 }, 0, CLASS_LATE_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waited = 1, .consumer_waits = 1 }, 0, CLASS_WANTED_LOADER },
	{ { .role = ROLE_LOADER, .consumer_waited = 1 }, 1 << RULE_LATE_LOADER, CLASS_LOADER },
	/* helpers: when they are woken; who polls looks now and then, who works is ordinary */
	{ { .role = ROLE_COLLECTIVE_HELPER, .woken = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .polls = 1 }, 0, CLASS_SPINNER },
	{ { .role = ROLE_COLLECTIVE_HELPER, .polls = 1 }, 0, CLASS_ORDINARY },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .polls = 1 }, 1 << RULE_HELPER, CLASS_ORDINARY },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .woken = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .woken = 1, .polls = 1 }, 0, CLASS_FEEDER },
	{ { .role = ROLE_COLLECTIVE_HELPER, .in_collective = 1, .woken = 1 }, 1 << RULE_HELPER, CLASS_ORDINARY },
	/* what is no role */
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
			fail_msg("vector %zu", i);
	}
}

/* However much the promoted want, the others get their share before the debt is forgiven. */
static void test_others_keep_their_share(void **state)
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

/* A higher tier never waits longer, and the lowest has nobody to take a CPU from. */
static void test_tiers_are_ordered(void **state)
{
	assert_int_equal(tier_rules[TIER_BATCH].credit_ns, 0);
	assert_int_equal(tier_rules[TIER_BATCH].takes_below, TIER_BATCH);
	for (u32 tier = TIER_BATCH; tier < TIER_NR; tier++) {
		/* Of equals nobody takes the other's CPU: they would do so in turns. */
		assert_true(tier_rules[tier].takes_below <= tier);
		/* No more than a slice, or who has none waits for a whole round. */
		assert_true(tier_rules[tier].credit_ns <= class_rules[CLASS_ORDINARY].slice_ns);
		if (tier > TIER_BATCH)
			assert_true(tier_rules[tier].credit_ns > tier_rules[tier - 1].credit_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_others_keep_their_share),
		cmocka_unit_test(test_debt_is_bounded),
		cmocka_unit_test(test_tiers_are_ordered),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
