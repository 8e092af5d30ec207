/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/idle.h"

static const struct wait_share nobody;

/* A launch, and at once a thread that waits for it. */
static void gpu_works(struct idle_account *account, u64 now)
{
	idle_ends(account, now);
	idle_set_gpu(account, IDLE_GPU_BUSY, now);
}

/* A launch at 1000, and the sync that covers it returns at 2000. */
static struct idle_account account_of_a_sync(void)
{
	struct idle_account account = {};

	gpu_works(&account, 1000);
	idle_set_gpu(&account, IDLE_GPU_DONE, 2000);
	return account;
}

static u64 sum(const struct idle_account *account)
{
	u64 all = 0;

	for (u32 i = 0; i < IDLE_CAUSE_NR; i++)
		all += account->done.cause_ns[i];
	return all;
}

static void test_nothing_is_booked_before_the_first_launch(void **state)
{
	struct idle_account account = {};

	idle_doing(&account, IDLE_DISK, 100);
	idle_set_gpu(&account, IDLE_GPU_DONE, 500);
	idle_doing(&account, IDLE_CPU, 900);
	idle_settle(&account, 950);
	assert_int_equal(sum(&account), 0);
	gpu_works(&account, 1000);
	idle_settle(&account, 1500);
	assert_int_equal(account.busy_ns, 500);
	assert_int_equal(sum(&account), 0);
}

static void test_launcher_states_are_booked_while_idle(void **state)
{
	struct idle_account account = account_of_a_sync();

	idle_doing(&account, IDLE_RUNQUEUE, 2100);
	idle_doing(&account, IDLE_CPU, 2300);
	idle_doing(&account, IDLE_DISK, 2600);
	idle_doing(&account, IDLE_MEMORY, 3000);
	gpu_works(&account, 3500);
	assert_int_equal(account.busy_ns, 1000);
	assert_int_equal(account.done.cause_ns[IDLE_CPU], 100 + 300);
	assert_int_equal(account.done.cause_ns[IDLE_RUNQUEUE], 200);
	assert_int_equal(account.done.cause_ns[IDLE_DISK], 400);
	assert_int_equal(account.done.cause_ns[IDLE_MEMORY], 500);
	idle_settle(&account, 4000);
	assert_int_equal(account.busy_ns, 1500);
	assert_int_equal(sum(&account), 1500);
}

/* Another thread syncs while the launcher sleeps, so the state of the launcher began earlier. */
static void test_a_state_before_the_sync_counts_from_the_sync(void **state)
{
	struct idle_account account = {};

	gpu_works(&account, 1000);
	idle_doing(&account, IDLE_DISK, 1200);
	idle_set_gpu(&account, IDLE_GPU_DONE, 2000);
	idle_doing(&account, IDLE_CPU, 2500);
	assert_int_equal(account.busy_ns, 1000);
	assert_int_equal(account.done.cause_ns[IDLE_DISK], 500);
}

static void test_a_sleep_gets_its_cause_when_it_ends(void **state)
{
	struct idle_account account = account_of_a_sync();

	idle_sleeps(&account, true, 2000);
	idle_doing(&account, IDLE_RUNQUEUE, 2400);
	assert_int_equal(account.done.cause_ns[IDLE_LOCK], 400);
	idle_sleeps(&account, false, 2500);
	idle_doing(&account, IDLE_RUNQUEUE, 2700);
	assert_int_equal(account.done.cause_ns[IDLE_OTHER], 200);
	assert_int_equal(account.done.cause_ns[IDLE_RUNQUEUE], 100);
	assert_int_equal(sum(&account), 700);
}

static void test_a_wait_for_data_is_booked_by_the_loader_states(void **state)
{
	struct idle_account account = account_of_a_sync();
	struct wait_share share = {};

	idle_sleeps(&account, true, 2000);
	share_book(&share, 2000, SHARE_CPU, 1500, 2100); /* it already ran before the wait */
	share_book(&share, 2000, SHARE_RUNQUEUE, 2100, 2400);
	share_book(&share, 2000, SHARE_DISK, 2400, 2600);
	share_book(&share, 2000, SHARE_CPU, 2700, 2800);
	share_book(&share, 2000, SHARE_CPU, 2700, 2900); /* overlaps: only the rest counts */
	idle_decide_data(&account, &share, 2000, 3000);
	assert_int_equal(account.doing, IDLE_RUNQUEUE);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_CPU], 100 + 200);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_RUNQUEUE], 300);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_DISK], 200);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_OTHER], 200);
	assert_int_equal(sum(&account), 1000);
}

static void test_a_share_of_another_wait_is_ignored(void **state)
{
	struct idle_account account = account_of_a_sync();
	struct wait_share share = {};

	share_book(&share, 1700, SHARE_CPU, 1700, 1900);
	idle_sleeps(&account, false, 2000);
	idle_decide_data(&account, &share, 2000, 2500);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_OTHER], 500);
	share_book(&share, 2600, SHARE_DISK, 2500, 2700);
	assert_int_equal(share.ns[SHARE_CPU], 0);
	assert_int_equal(share.ns[SHARE_DISK], 100);
	idle_doing(&account, IDLE_CPU, 2500);
	idle_sleeps(&account, false, 2550);
	idle_decide_data(&account, &nobody, 2550, 2600);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_OTHER], 550);
}

/* The GPU became idle during the wait, so only the idle part of the wait is booked. */
static void test_a_share_is_limited_to_the_idle_time(void **state)
{
	struct idle_account account = {};
	struct wait_share share = {};

	gpu_works(&account, 1000);
	idle_sleeps(&account, false, 1200);
	idle_set_gpu(&account, IDLE_GPU_DONE, 2000);
	share_book(&share, 1200, SHARE_CPU, 1200, 1900);
	share_book(&share, 1200, SHARE_DISK, 1900, 2600);
	idle_decide_data(&account, &share, 1200, 3000);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_CPU], 700);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_DISK], 300);
	assert_int_equal(sum(&account), 1000);
}

static void test_a_blocking_collective_is_booked_as_collective(void **state)
{
	struct idle_account account = account_of_a_sync();

	idle_set_collective(&account, true, 2100);
	idle_doing(&account, IDLE_RUNQUEUE, 2200);
	idle_doing(&account, IDLE_CPU, 2300);
	idle_set_collective(&account, false, 2600);
	idle_doing(&account, IDLE_RUNQUEUE, 2700);
	assert_int_equal(account.done.cause_ns[IDLE_COLLECTIVE], 500);
	assert_int_equal(account.done.cause_ns[IDLE_CPU], 200);
}

/* A cause never decreases between two snapshots, but a sleep that does not end is reported. */
static void test_a_long_pending_sleep_is_reported(void **state)
{
	struct idle_account account = account_of_a_sync(), seen;

	idle_sleeps(&account, false, 2000);
	seen = account;
	idle_settle(&seen, 2000 + IDLE_PENDING_NS - 1);
	assert_int_equal(sum(&seen), 0);
	seen = account;
	idle_settle(&seen, 2000 + IDLE_PENDING_NS);
	assert_int_equal(seen.done.cause_ns[IDLE_OTHER], IDLE_PENDING_NS);
	idle_decide_data(&account, &nobody, 2000, 3000);
	idle_sleeps(&account, false, 3000);
	seen = account;
	idle_settle(&seen, 3000 + IDLE_PENDING_NS);
	assert_int_equal(seen.done.cause_ns[IDLE_LOADER_OTHER], 1000 + IDLE_PENDING_NS);
}

static void test_an_earlier_time_adds_nothing(void **state)
{
	struct idle_account account = account_of_a_sync();

	idle_settle(&account, 1500);
	assert_int_equal(account.busy_ns, 1000);
	assert_int_equal(sum(&account), 0);
}

static void test_open_time_is_booked_by_cause(void **state)
{
	struct idle_account account = account_of_a_sync();

	idle_ends(&account, 3000); /* launched, and no thread waits */
	idle_doing(&account, IDLE_RUNQUEUE, 3400);
	idle_doing(&account, IDLE_CPU, 3500);
	idle_set_gpu(&account, IDLE_GPU_BUSY, 3600);
	idle_set_gpu(&account, IDLE_GPU_OPEN, 4600); /* the work behind the sync is not done */
	idle_doing(&account, IDLE_CPU, 5000);
	assert_int_equal(account.done.cause_ns[IDLE_CPU], 1000);
	assert_int_equal(account.open.cause_ns[IDLE_CPU], 400 + 100 + 400);
	assert_int_equal(account.open.cause_ns[IDLE_RUNQUEUE], 100);
	assert_int_equal(account.busy_ns, 1000 + 1000);
	assert_int_equal(idle_total(&account, IDLE_CPU), 1900);
}

static void test_a_launch_keeps_the_gpu_busy_while_a_thread_waits(void **state)
{
	struct idle_account account = {};

	gpu_works(&account, 1000);
	idle_ends(&account, 1500);
	idle_set_gpu(&account, IDLE_GPU_DONE, 2000);
	assert_int_equal(account.busy_ns, 1000);
	assert_int_equal(idle_total(&account, IDLE_CPU), 0);
}

static void test_a_launch_into_a_full_queue_is_counted_beside_open_time(void **state)
{
	struct idle_account account = {};

	idle_ends(&account, 1000);
	idle_blocked(&account, 300, 1500);
	assert_int_equal(account.blocked_ns, 300);
	assert_int_equal(account.open.cause_ns[IDLE_CPU], 500);
	/* A sample that stands for many launches never makes more than the open time. */
	idle_blocked(&account, 5000, 2000);
	assert_int_equal(account.blocked_ns, 1000);
	assert_int_equal(account.open.cause_ns[IDLE_CPU], 1000);
}

/* The GPU runs dry during the wait, which another thread sees. */
static void test_a_wait_for_data_is_divided_into_open_and_idle(void **state)
{
	struct idle_account account = {};
	struct wait_share share = {};

	idle_ends(&account, 1000);
	idle_sleeps(&account, true, 1000);
	idle_set_gpu(&account, IDLE_GPU_DONE, 1600);
	share_book(&share, 1000, SHARE_DISK, 1000, 1800);
	idle_decide_data(&account, &share, 1000, 2000);
	assert_int_equal(account.open.cause_ns[IDLE_LOADER_DISK], 600);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_DISK], 200);
	assert_int_equal(account.done.cause_ns[IDLE_LOADER_OTHER], 200);
	assert_int_equal(account.open.pending_ns + account.done.pending_ns, 0);
}

int main(void)
{
	const struct CMUnitTest idle_tests[] = {
		cmocka_unit_test(test_nothing_is_booked_before_the_first_launch),
		cmocka_unit_test(test_launcher_states_are_booked_while_idle),
		cmocka_unit_test(test_a_state_before_the_sync_counts_from_the_sync),
		cmocka_unit_test(test_a_sleep_gets_its_cause_when_it_ends),
		cmocka_unit_test(test_a_wait_for_data_is_booked_by_the_loader_states),
		cmocka_unit_test(test_a_share_of_another_wait_is_ignored),
		cmocka_unit_test(test_a_share_is_limited_to_the_idle_time),
		cmocka_unit_test(test_a_blocking_collective_is_booked_as_collective),
		cmocka_unit_test(test_a_long_pending_sleep_is_reported),
		cmocka_unit_test(test_open_time_is_booked_by_cause),
		cmocka_unit_test(test_a_launch_keeps_the_gpu_busy_while_a_thread_waits),
		cmocka_unit_test(test_a_launch_into_a_full_queue_is_counted_beside_open_time),
		cmocka_unit_test(test_a_wait_for_data_is_divided_into_open_and_idle),
		cmocka_unit_test(test_an_earlier_time_adds_nothing),
	};

	return cmocka_run_group_tests(idle_tests, NULL, NULL);
}
