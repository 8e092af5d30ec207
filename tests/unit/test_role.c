/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/role.h"

#define NOW (100 * NSEC_PER_SEC)

#define MS NSEC_PER_MSEC

/*
 * The launcher asks at NOW. The thread works for `work` ms and rests after `rest` ms; the launcher
 * goes on after `fed` ms (0: it does not), and is woken after `answer` ms (0: it is not).
 */
static void question(struct role_evidence *e, u64 work, u64 rest, u64 fed, u64 answer)
{
	struct role_question q = {
		.answered_ns = answer ? NOW + answer * MS : 0,
		.fed_ns = fed ? NOW + fed * MS : NOW - 1,
		.cpu_ns = 7 + work * MS,
		.now = NOW + rest * MS,
	};

	role_ask(e, 3, 7, NOW);
	role_rests(e, &q);
	assert_int_equal(e->asked, 0);
	role_rests(e, &q); /* it was not asked again */
}

static void a_team_ends_the_wait_of_the_launcher(void **state)
{
	struct role_evidence e = {};

	question(&e, 1, 5, 0, 4);
	assert_false(role_is_team(&e));
	question(&e, 1, 5, 0, 4);
	assert_true(role_is_team(&e));
}

/* The launcher spins, and the team spins for a while after its work. */
static void a_team_stops_when_the_launcher_goes_on(void **state)
{
	struct role_evidence e = {};

	question(&e, 8, 11, 10, 0);
	question(&e, 8, 11, 10, 0);
	assert_true(role_is_team(&e));
}

static void a_thread_that_works_while_the_launcher_launches_is_no_team(void **state)
{
	struct role_evidence e = {};

	for (u32 i = 0; i < 10; i++)
		question(&e, 9, 10, 1, 0);
	assert_false(role_is_team(&e));
	for (u32 i = 0; i < 10; i++)
		question(&e, 1, 5, 0, 4);
	assert_int_equal(e.nr_answers, ROLE_ANSWERS_MAX);
	for (u32 i = 0; i < ROLE_ANSWERS_MAX; i++)
		question(&e, 9, 10, 1, 0);
	assert_int_equal(e.nr_answers, 0);
	question(&e, 9, 10, 1, 0);
	assert_int_equal(e.nr_answers, 0);
}

/* The wait is what counts, not a fixed time. */
static void a_team_may_spin_for_half_of_the_wait(void **state)
{
	struct role_evidence e = {};

	question(&e, 10, 11, 8, 0);
	question(&e, 10, 11, 8, 0);
	assert_true(role_is_team(&e));
	e = (struct role_evidence){};
	question(&e, 10, 12, 8, 0);
	assert_int_equal(e.nr_answers, 0);
}

/* A loader with little work ends soon after the launcher went on, which did not wait for it. */
static void a_short_loader_is_no_team(void **state)
{
	struct role_evidence e = {};
	struct role_question q = {
		.fed_ns = NOW + ROLE_WORKED_NS,
		.cpu_ns = ROLE_WORKED_NS,
		.now = NOW + ROLE_WORKED_NS + 1,
	};

	role_ask(&e, 3, 0, NOW);
	role_rests(&e, &q);
	assert_int_equal(e.nr_answers, 0);
	q.fed_ns++;
	q.cpu_ns++;
	q.now++;
	role_ask(&e, 3, 0, NOW);
	role_rests(&e, &q);
	assert_int_equal(e.nr_answers, 1);
}

/* It rests while the launcher still waits for others, or it had little to do. */
static void a_short_or_undecided_rest_is_no_evidence(void **state)
{
	struct role_evidence e = { .nr_answers = 1 };

	question(&e, 4, 5, 0, 0);
	question(&e, 0, 2, 1, 0);
	question(&e, 1, 11, 10, 0);
	question(&e, 15, 15, 8, 0);
	assert_int_equal(e.nr_answers, 1);
}

/* It rests after 5 ms; the launcher polled last after `polled` ms and went on after `fed` ms (0: it
 * did not). */
static void polled_question(struct role_evidence *e, s64 polled, u64 fed)
{
	struct role_question q = {
		.polled_ns = NOW + (u64)polled * MS,
		.fed_ns = fed ? NOW + fed * MS : NOW - 1,
		.cpu_ns = MS,
		.now = NOW + 5 * MS,
	};

	role_ask(e, 3, 0, NOW);
	role_rests(e, &q);
}

static void a_launcher_that_polls_until_a_task_rests_waits_for_it(void **state)
{
	struct role_evidence e = {};

	polled_question(&e, -1, 0); /* it polled before it asked */
	polled_question(&e, 3, 4);  /* it went on before the task rested */
	assert_int_equal(e.nr_answers, 0);
	polled_question(&e, 3, 0);
	assert_int_equal(e.nr_answers, 1);
}

static void a_team_is_needed_until_shortly_after_the_launcher_went_on(void **state)
{
	struct role_evidence e = {};

	assert_false(role_is_needed(&e, 1, NOW, NOW)); /* it was not asked */
	role_ask(&e, 0, 0, NOW);
	assert_true(role_is_needed(&e, 0, NOW - MS, NOW + 9 * MS));
	assert_true(role_is_needed(&e, 1, NOW + MS, NOW + MS + ROLE_WORKS_ON_NS - 1));
	assert_false(role_is_needed(&e, 1, NOW + MS, NOW + MS + ROLE_WORKS_ON_NS));
	/* The launcher feeds its GPU again, and the task still works on something else. */
	assert_false(role_is_needed(&e, 2, NOW + 9 * MS, NOW + 9 * MS));
}

static void a_task_of_another_process_delays_until_the_gpu_is_fed(void **state)
{
	struct role_evidence e = {};

	assert_false(role_delays_from_outside(&e, NOW));
	role_ask(&e, 0, 0, NOW);
	assert_true(role_delays_from_outside(&e, NOW - 1));
	assert_false(role_delays_from_outside(&e, NOW + 1));
}

static void a_thread_delays_the_launcher_until_the_next_launch(void **state)
{
	struct role_evidence e = {};

	assert_false(role_delays(&e, 0));
	role_ask(&e, 0, 0, NOW);
	assert_true(role_delays(&e, 0));
	assert_false(role_delays(&e, 1));
}

static void a_guess_is_dropped_when_the_launcher_goes_on_without(void **state)
{
	struct role_evidence e = {};

	assert_false(role_was_guess(&e, NOW));
	role_presume(&e, NOW);
	assert_false(role_was_guess(&e, NOW));
	assert_false(role_was_guess(&e, NOW + ROLE_PRESUMED_NS));
	assert_true(role_was_guess(&e, NOW + ROLE_PRESUMED_NS + 1));
	role_prove(&e, 1, NOW);
	assert_false(role_was_guess(&e, NOW + ROLE_PRESUMED_NS + 1));
}

static void a_proof_gets_old(void **state)
{
	struct role_evidence e = {};

	assert_false(role_is_old(&e, NOW));
	role_prove(&e, 1, NOW);
	assert_false(role_is_old(&e, NOW + ROLE_PROVEN_NS));
	assert_true(role_is_old(&e, NOW + ROLE_PROVEN_NS + 1));
}

static void a_chain_is_bounded_and_keeps_the_shortest_distance(void **state)
{
	struct role_evidence e = {};

	assert_false(role_chain_goes_on(&e));
	role_prove(&e, ROLE_DISTANCE_MAX, NOW);
	assert_false(role_chain_goes_on(&e));
	role_prove(&e, 2, NOW);
	assert_true(role_chain_goes_on(&e));
	role_prove(&e, 3, NOW);
	assert_int_equal(e.distance, 2);
}

static void a_launcher_polls_after_turns_that_end_with_yields(void **state)
{
	struct role_evidence e = {};

	for (u32 i = 0; i < ROLE_YIELDS; i++) {
		assert_false(role_polls(&e));
		role_turn(&e, true, true);
		/* It is preempted before the next yield. */
		role_turn(&e, true, false);
	}
	assert_true(role_polls(&e));
	role_turn(&e, true, true);
	assert_true(role_polls(&e));
	role_turn(&e, false, true);
	assert_false(role_polls(&e));
}

static void a_parent_that_did_not_run_brought_nothing(void **state)
{
	struct role_evidence e = {};

	assert_false(role_parent_ran(&e, 5));
	assert_false(role_parent_ran(&e, 5));
	assert_true(role_parent_ran(&e, 6));
	assert_false(role_parent_ran(&e, 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_team_ends_the_wait_of_the_launcher),
		cmocka_unit_test(a_team_stops_when_the_launcher_goes_on),
		cmocka_unit_test(a_thread_that_works_while_the_launcher_launches_is_no_team),
		cmocka_unit_test(a_team_may_spin_for_half_of_the_wait),
		cmocka_unit_test(a_short_loader_is_no_team),
		cmocka_unit_test(a_short_or_undecided_rest_is_no_evidence),
		cmocka_unit_test(a_launcher_that_polls_until_a_task_rests_waits_for_it),
		cmocka_unit_test(a_team_is_needed_until_shortly_after_the_launcher_went_on),
		cmocka_unit_test(a_task_of_another_process_delays_until_the_gpu_is_fed),
		cmocka_unit_test(a_thread_delays_the_launcher_until_the_next_launch),
		cmocka_unit_test(a_guess_is_dropped_when_the_launcher_goes_on_without),
		cmocka_unit_test(a_proof_gets_old),
		cmocka_unit_test(a_chain_is_bounded_and_keeps_the_shortest_distance),
		cmocka_unit_test(a_launcher_polls_after_turns_that_end_with_yields),
		cmocka_unit_test(a_parent_that_did_not_run_brought_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
