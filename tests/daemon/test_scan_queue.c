/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the order of scans: slow and hostile processes of one user delay only that user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/scan_queue.h"

#define NOW  (1000 * NSEC_PER_SEC)
#define ROWS 64

static int setup(void **state)
{
	return scan_queue_new((struct scan_queue **)state);
}

static int teardown(void **state)
{
	scan_queue_free(*state);
	return 0;
}

static struct scan_row row_of(u32 uid, pid_t pid)
{
	return (struct scan_row){ .pid = pid, .has_owner = true, .owner.uid = uid };
}

static void add(struct scan_queue *q, u32 uid, pid_t pid)
{
	struct scan_row row = row_of(uid, pid);

	scan_queue_add(q, &row);
}

static void charge(struct scan_queue *q, u32 uid, struct scan_cost cost)
{
	struct scan_row row = row_of(uid, 1);

	scan_queue_charge(q, &row, &cost, NOW);
}

static u32 take(struct scan_queue *q, u64 now_ns, struct scan_row *rows)
{
	return scan_queue_take(q, now_ns, rows, ROWS);
}

static u32 nr_of(const struct scan_row *rows, u32 nr, u32 uid)
{
	u32 nr_found = 0;

	for (u32 i = 0; i < nr; i++)
		nr_found += rows[i].owner.uid == uid;
	return nr_found;
}

static void test_a_process_is_scanned_once(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS], other = { .pid = 7, .kind = 1 };

	add(q, 1000, 7);
	add(q, 1000, 7);
	scan_queue_add(q, &other);
	assert_true(scan_queue_has(q, 7, 0));
	assert_true(scan_queue_has(q, 7, 1));
	assert_false(scan_queue_has(q, 8, 0));
	assert_int_equal(take(q, NOW, rows), 2);
	assert_int_equal(take(q, NOW, rows), 0);
	assert_false(scan_queue_has(q, 7, 0));
}

static void test_owners_are_asked_for_first(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS], row = { .pid = 7 };

	scan_queue_add(q, &row);
	assert_int_equal(take(q, NOW, rows), 1);
	assert_false(rows[0].has_owner);
	/* It is wanted again before its owner is known. */
	scan_queue_add(q, &row);
	rows[0].has_owner = true;
	scan_queue_add(q, &rows[0]);
	assert_int_equal(take(q, NOW, rows), 1);
	assert_true(rows[0].has_owner);
	assert_int_equal(take(q, NOW, rows), 0);
}

static void test_new_processes_leave_room_for_known_ones(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS];

	for (pid_t pid = 1; pid <= 1000; pid++)
		scan_queue_add(q, &(struct scan_row){ .pid = pid });
	add(q, 1000, 5000);
	assert_int_equal(take(q, NOW, rows), ROWS / 2 + 1);
	assert_int_equal(rows[ROWS / 2].pid, 5000);
}

static void test_users_take_turns(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS];

	for (pid_t pid = 1; pid <= 20000; pid++)
		add(q, 1000, pid);
	add(q, 1001, 30001);
	add(q, 1001, 30002);
	assert_int_equal(take(q, NOW, rows), ROWS);
	assert_int_equal(nr_of(rows, 4, 1001), 2);
	/* Who waited long without a process to scan has saved nothing. */
	for (u32 i = 0; i < 100; i++)
		take(q, NOW, rows);
	for (pid_t pid = 30001; pid <= 30100; pid++)
		add(q, 1001, pid);
	assert_int_equal(take(q, NOW, rows), ROWS);
	assert_in_range(nr_of(rows, ROWS, 1001), ROWS / 2 - 1, ROWS / 2 + 1);
}

static void test_slow_scans_delay_their_user(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS];

	for (pid_t pid = 1; pid <= 1000; pid++) {
		add(q, 1000, pid);
		add(q, 1001, 10000 + pid);
	}
	take(q, NOW, rows);
	charge(q, 1000, (struct scan_cost){ .taken_ns = 40 * NSEC_PER_MSEC });
	/* The other user is as far as this one after 39 rows more. */
	assert_int_equal(take(q, NOW, rows), ROWS);
	assert_int_equal(nr_of(rows, 39, 1001), 39);
	assert_in_range(nr_of(rows, ROWS, 1000), 10, 14);
}

static void test_a_slow_process_rests(void **state)
{
	struct scan_queue *q = *state;
	struct scan_cost slow = { .taken_ns = SCAN_QUEUE_SLOW_NS };
	struct scan_row rows[ROWS], row = row_of(1000, 7);
	u64 end_ns = NOW + SCAN_QUEUE_SLOW_TIMES * SCAN_QUEUE_SLOW_NS;

	scan_queue_charge(q, &row, &slow, NOW);
	assert_false(scan_queue_has(q, 7, 0));
	scan_queue_add(q, &row);
	add(q, 1000, 8);
	assert_true(scan_queue_has(q, 7, 0));
	assert_int_equal(take(q, end_ns - 1, rows), 1);
	assert_int_equal(rows[0].pid, 8);
	assert_int_equal(take(q, end_ns, rows), 1);
	assert_int_equal(rows[0].pid, 7);
	/* A process that nobody wants is forgotten. */
	scan_queue_charge(q, &row, &slow, NOW);
	assert_int_equal(take(q, end_ns, rows), 0);
	add(q, 1000, 7);
	assert_int_equal(take(q, end_ns, rows), 1);
}

/* Its other processes are scanned after a short pause, the process itself after a long one. */
static void test_a_hung_scan_stops_its_user(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS], row = row_of(1000, 7);

	add(q, 1000, 8);
	add(q, 1001, 9);
	scan_queue_blame(q, &row, true, NOW, NOW);
	add(q, 1000, 7);
	assert_int_equal(take(q, NOW + SCAN_QUEUE_ENDED_NS - 1, rows), 1);
	assert_int_equal(rows[0].pid, 9);
	assert_int_equal(take(q, NOW + SCAN_QUEUE_ENDED_NS, rows), 1);
	assert_int_equal(rows[0].pid, 8);
	assert_int_equal(take(q, NOW + SCAN_QUEUE_HUNG_NS - 1, rows), 0);
	assert_int_equal(take(q, NOW + SCAN_QUEUE_HUNG_NS, rows), 1);
	assert_int_equal(rows[0].pid, 7);
	assert_int_equal(scan_queue_refused(q), 1);
	/* The second time, all of them wait. */
	add(q, 1000, 8);
	scan_queue_blame(q, &row, true, NOW + SCAN_QUEUE_HUNG_NS, NOW + SCAN_QUEUE_HUNG_NS);
	assert_int_equal(take(q, NOW + 2 * SCAN_QUEUE_HUNG_NS - 1, rows), 0);
	assert_int_equal(take(q, NOW + 2 * SCAN_QUEUE_HUNG_NS, rows), 1);
}

/* Other users of the same machine go on. */
static void test_scans_that_cannot_be_ended_stop_their_user(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS], row = row_of(1000, 7);

	scan_queue_stuck(q, &row.owner);
	add(q, 1000, 7);
	assert_int_equal(take(q, NOW, rows), 1);
	scan_queue_stuck(q, &row.owner);
	add(q, 1000, 7);
	add(q, 1001, 8);
	assert_int_equal(take(q, NOW + 1000 * SCAN_QUEUE_HUNG_NS, rows), 1);
	assert_int_equal(rows[0].pid, 8);
	scan_queue_unstuck(q, &row.owner);
	assert_int_equal(take(q, NOW, rows), 1);
	assert_int_equal(rows[0].pid, 7);
}

/* The time counts, so a user who arrives meanwhile is next, and not a process of the same user. */
static void test_a_hung_scan_takes_the_turn_of_its_user(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS], row = row_of(1000, 7);

	add(q, 1001, 5);
	add(q, 1001, 6);
	add(q, 1000, 7);
	assert_int_equal(take(q, NOW, rows), 3);
	scan_queue_blame(q, &row, true, NOW - 10 * NSEC_PER_SEC, NOW);
	add(q, 1000, 8);
	add(q, 1001, 9);
	assert_int_equal(scan_queue_take(q, NOW + SCAN_QUEUE_ENDED_NS, rows, 1), 1);
	assert_int_equal(rows[0].pid, 9);
}

static void test_a_process_that_scans_and_ends_is_blamed_twice(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS], row = row_of(1000, 7);
	u64 later_ns = NOW + SCAN_QUEUE_ENDED_NS;

	add(q, 1000, 7);
	scan_queue_blame(q, &row, false, NOW, NOW);
	assert_int_equal(take(q, later_ns - 1, rows), 0);
	assert_int_equal(take(q, later_ns, rows), 1);
	add(q, 1000, 7);
	scan_queue_blame(q, &row, false, later_ns, later_ns);
	assert_int_equal(take(q, later_ns + SCAN_QUEUE_HUNG_NS - 1, rows), 0);
	assert_int_equal(take(q, later_ns + SCAN_QUEUE_HUNG_NS, rows), 1);
}

static void note_quota(void *ctx, u32 uid, u64 nr_refused)
{
	u64 *of = ctx;

	of[uid - 1000] = nr_refused;
}

/* Files, bytes and processes have a bound each, and the excess counts against the user. */
static void test_quotas(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS];
	u64 of[4] = {};

	for (u32 uid = 1000; uid < 1004; uid++)
		add(q, uid, (pid_t)uid);
	charge(q, 1000, (struct scan_cost){ .nr_files = SCAN_QUEUE_FILES });
	charge(q, 1001, (struct scan_cost){ .nr_bytes = SCAN_QUEUE_BYTES });
	charge(q, 1002,
	       (struct scan_cost){ .nr_files = SCAN_QUEUE_FILES - 1,
				   .nr_bytes = SCAN_QUEUE_BYTES - 1 });
	for (pid_t pid = 2000; pid < 2000 + TENANT_SHARE(SCAN_QUEUE_ROWS) + 9; pid++)
		add(q, 1003, pid);
	assert_int_equal(take(q, NOW + 1, rows), ROWS);
	assert_int_equal(nr_of(rows, ROWS, 1002), 1);
	assert_int_equal(nr_of(rows, ROWS, 1003), ROWS - 1);
	scan_queue_quotas(q, note_quota, of);
	assert_int_equal(of[0], 1);
	assert_int_equal(of[1], 1);
	assert_int_equal(of[2], 0);
	assert_int_equal(of[3], 10); /* it had a row before */
	assert_int_equal(scan_queue_refused(q), 12);
	take(q, NOW + SCAN_QUEUE_WINDOW_NS, rows);
	assert_int_equal(nr_of(rows, ROWS, 1000) + nr_of(rows, ROWS, 1001), 2);
}

/* The groups of root are owners of their own; those of a user are not. */
static void test_owners(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS];
	struct scan_row first = { .pid = 1, .has_owner = true, .owner = { .group = 1 } };
	struct scan_row second = { .pid = 2, .has_owner = true, .owner = { .group = 2 } };
	struct scan_row third = { .pid = 3, .has_owner = true, .owner = { 1000, 0, 1 } };
	struct scan_row fourth = { .pid = 4, .has_owner = true, .owner = { 1000, 0, 2 } };

	scan_queue_add(q, &first);
	scan_queue_add(q, &second);
	scan_queue_add(q, &third);
	scan_queue_add(q, &fourth);
	scan_queue_blame(q, &first, true, NOW, NOW);
	scan_queue_blame(q, &third, true, NOW, NOW);
	assert_int_equal(take(q, NOW, rows), 1);
	assert_int_equal(rows[0].pid, 2);
}

/* A user can have 65,536 user IDs in a namespace. */
static void test_many_owners(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS];

	for (u32 uid = 1; uid <= 2000; uid++) {
		struct scan_row row = row_of(uid, (pid_t)uid);

		add(q, uid, (pid_t)uid);
		scan_queue_blame(q, &row, true, NOW, NOW);
	}
	assert_int_equal(take(q, NOW, rows), 0);
	assert_int_equal(scan_queue_refused(q), 2000);
	/* Their places are free again, and what was refused stays counted. */
	for (u32 i = 0; i < 100; i++)
		take(q, NOW + SCAN_QUEUE_HUNG_NS, rows);
	for (u32 uid = 100000; uid < 110000; uid++)
		add(q, uid, (pid_t)uid);
	assert_int_equal(scan_queue_refused(q), 2000);
	assert_int_equal(take(q, NOW + SCAN_QUEUE_HUNG_NS, rows), ROWS);
}

static void test_a_full_queue(void **state)
{
	struct scan_queue *q = *state;
	struct scan_row rows[ROWS];
	u32 nr = 0;

	for (pid_t pid = 1; pid <= SCAN_QUEUE_ROWS + 3; pid++)
		scan_queue_add(q, &(struct scan_row){ .pid = pid });
	assert_int_equal(scan_queue_refused(q), 3);
	for (u32 more; (more = take(q, NOW, rows)); nr += more)
		;
	assert_int_equal(nr, SCAN_QUEUE_ROWS);
	add(q, 1000, 7);
	scan_queue_clear(q);
	assert_false(scan_queue_has(q, 7, 0));
	assert_int_equal(take(q, NOW, rows), 0);
	add(q, 1000, 7);
	assert_int_equal(take(q, NOW, rows), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_process_is_scanned_once),
		TEST(test_owners_are_asked_for_first),
		TEST(test_new_processes_leave_room_for_known_ones),
		TEST(test_users_take_turns),
		TEST(test_slow_scans_delay_their_user),
		TEST(test_a_slow_process_rests),
		TEST(test_a_hung_scan_stops_its_user),
		TEST(test_scans_that_cannot_be_ended_stop_their_user),
		TEST(test_a_hung_scan_takes_the_turn_of_its_user),
		TEST(test_a_process_that_scans_and_ends_is_blamed_twice),
		TEST(test_quotas),
		TEST(test_owners),
		TEST(test_many_owners),
		TEST(test_a_full_queue),
	};

	return cmocka_run_group_tests_name("scan queue", tests, NULL, NULL);
}
