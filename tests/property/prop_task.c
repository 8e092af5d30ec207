/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "property/property.h"

#include <math.h>
#include <string.h>

#include "core/task.h"

#define STEPS 16

/* No time is lost or booked twice: the totals add up to the elapsed time. */
static bool totals_add_up_to_the_elapsed_time_holds(struct random *r)
{
	struct task_state task = {};
	u64 expected[PHASE_NR] = {};
	u64 first = 1 + random_below(r, 1000), now = first, booked = 0;
	u32 phase = random_below(r, PHASE_NR);

	task_transition(&task, phase, now);
	for (u32 i = 0; i < STEPS; i++) {
		u64 stay = random_any(r) >> 8;

		expected[phase] += stay;
		now += stay;
		phase = random_below(r, PHASE_NR);
		task_transition(&task, phase, now);
		if (task.phase != phase || task.phase_since_ns != now)
			return false;
	}
	for (u32 i = 0; i < PHASE_NR; i++)
		booked += task.phase_ns[i];
	return booked == now - first && !memcmp(task.phase_ns, expected, sizeof(expected));
}
PROPERTY(totals_add_up_to_the_elapsed_time, STEPS)

/* For any state and any time, only the total of the old phase may change, and it only grows. */
static bool any_transition_books_only_the_old_phase_holds(struct random *r)
{
	struct phase_config c = random_config(r);
	struct task_state before = random_task(r, &c), after = before;
	u64 now = random_near(r, before.phase_since_ns);
	u32 phase = random_below(r, 4) ? random_below(r, PHASE_NR) : random_any32(r);
	bool books = before.phase_since_ns > 0 && now > before.phase_since_ns;
	u32 old = before.phase < PHASE_NR ? before.phase : 0;

	task_transition(&after, phase, now);
	for (u32 i = 0; i < PHASE_NR; i++) {
		u64 added = after.phase_ns[i] - before.phase_ns[i];

		if (added != (books && i == old ? now - before.phase_since_ns : 0))
			return false;
	}
	return after.phase_since_ns == now && after.phase == (phase < PHASE_NR ? phase : 0);
}
PROPERTY(any_transition_books_only_the_old_phase, 1)

static bool fractions_agree_with_128_bit_arithmetic_holds(struct random *r)
{
	struct phase_config c = random_config(r);
	struct task_state task = random_task(r, &c);
	unsigned __int128 total = 0;
	double sum = 0;

	for (u32 i = 0; i < PHASE_NR; i++)
		total += task.phase_ns[i];
	for (u32 i = 0; i < PHASE_NR; i++) {
		double fraction = phase_fraction(task.phase_ns, i);
		long double exact = total ? (long double)task.phase_ns[i] / (long double)total : 0;

		if (fabsl(fraction - exact) > 1e-15L)
			return false;
		sum += fraction;
	}
	return fabs(sum - (total ? 1 : 0)) < 1e-12;
}
PROPERTY(fractions_agree_with_128_bit_arithmetic, 1)

static bool each_detected_change_is_one_transition_holds(struct random *r)
{
	struct phase_config c = random_config(r);
	struct task_state before = random_task(r, &c), after = before;
	u64 now = random_any(r);

	before.phase = after.phase = random_below(r, PHASE_NR);
	task_detect(&c, &after, &before.signals, now);
	if (after.phase == before.phase)
		return after.nr_transitions == before.nr_transitions &&
		       after.phase_since_ns == before.phase_since_ns;
	return after.nr_transitions == before.nr_transitions + 1 && after.phase_since_ns == now;
}
PROPERTY(each_detected_change_is_one_transition, 1)

int main(void)
{
	const struct CMUnitTest task_properties[] = {
		cmocka_unit_test(totals_add_up_to_the_elapsed_time),
		cmocka_unit_test(any_transition_books_only_the_old_phase),
		cmocka_unit_test(fractions_agree_with_128_bit_arithmetic),
		cmocka_unit_test(each_detected_change_is_one_transition),
	};

	return cmocka_run_group_tests(task_properties, NULL, NULL);
}
