/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests which stacks of out-of-memory errors are kept. The test plays the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "core/snapshot.h"
#include "daemon/lines_json.h"
#include "daemon/oom_stacks.h"

#define STACKS_MAX	 64
#define STACKS_OF_TENANT 16

static u32 nr_reads;   /* of the innermost frame */
static u32 nr_waiting; /* frames that the kernel has */
static u32 stale;      /* one of them is of an earlier error, if it is not 0 */
static u32 nr_released;

int kernel_take_oom_frame(struct kernel *kernel, const struct process_state *process, u32 index,
			  struct oom_frame *ret)
{
	nr_reads += index == 0;
	if (index >= nr_waiting)
		return -ENOENT;
	if (stale && index == stale)
		return -ESTALE;
	*ret = (struct oom_frame){ .time_ns = process->oom.time_ns, .nr_frames = nr_waiting };
	return 0;
}

void kernel_release_oom_frames(struct kernel *kernel, const struct process_state *process, u32 nr)
{
	nr_released += nr;
}

static u32 nr_shown; /* frames of the last stack that was shown */

struct message *lines_stack_to_json(const struct lines_head *head,
				    const struct lines_stack_now *now)
{
	nr_shown = now->nr;
	return NULL;
}

void reply_refuse(struct reply *reply, enum protocol_error error, const char *format, ...)
{
	reply->error = error;
}

static int setup(void **state)
{
	nr_reads = nr_released = stale = 0;
	nr_waiting = 3;
	return oom_stacks_new((struct oom_stacks **)state);
}

static int teardown(void **state)
{
	oom_stacks_free(*state);
	return 0;
}

/* An error of the process `pid` at this time. */
static void keep(struct oom_stacks *stacks, u32 uid, u64 group, u32 pid, u64 time_ns)
{
	struct process_state process = { .task.pid = pid,
					 .start_ns = 1,
					 .uid = uid,
					 .group = group,
					 .oom = { .nr = 1, .time_ns = time_ns } };

	oom_stacks_keep(stacks, NULL, &process);
}

/* A stack that is kept is refused only because the test makes no JSON. */
static bool has(const struct oom_stacks *stacks, u32 pid, u64 time_ns)
{
	struct reply reply = {};

	oom_stacks_show(stacks, SNAPSHOT_UID_UNKNOWN, pid, time_ns, &reply);
	return reply.error != PROTOCOL_NOT_FOUND;
}

static void test_a_stack_is_read_once(void **state)
{
	struct oom_stacks *stacks = *state;

	keep(stacks, 1000, 0, 1, 10);
	keep(stacks, 1000, 0, 1, 10);
	assert_int_equal(nr_reads, 1);
	assert_true(has(stacks, 1, 10));
	/* The latest error of a process replaces the one before, which is no loss. */
	keep(stacks, 1000, 0, 1, 11);
	keep(stacks, 1000, 0, 1, 10);
	assert_int_equal(nr_reads, 2);
	assert_true(has(stacks, 1, 11));
	assert_false(has(stacks, 1, 10));
	assert_int_equal(oom_stacks_dropped(stacks), 0);
}

/* What lies outside of a frame that is missing is not part of the stack. */
static void test_a_stack_ends_at_a_gap(void **state)
{
	struct oom_stacks *stacks = *state;

	nr_waiting = 5;
	keep(stacks, 1000, 0, 1, 10);
	assert_true(has(stacks, 1, 10));
	assert_int_equal(nr_shown, 5);
	assert_int_equal(nr_released, 5);
	stale = 2;
	keep(stacks, 1000, 0, 1, 11);
	assert_true(has(stacks, 1, 11));
	assert_int_equal(nr_shown, 2);
	assert_int_equal(nr_released, 10);
}

static void test_an_error_without_a_stack_takes_no_place(void **state)
{
	struct oom_stacks *stacks = *state;

	for (u32 pid = 1; pid <= STACKS_OF_TENANT; pid++)
		keep(stacks, 1000, 0, pid, pid);
	nr_waiting = 0;
	keep(stacks, 1000, 0, 100, 100);
	assert_true(has(stacks, 1, 1));
	assert_int_equal(oom_stacks_dropped(stacks), 0);
}

static void test_an_older_error_does_not_replace_a_newer_one(void **state)
{
	struct oom_stacks *stacks = *state;

	for (u32 pid = 1; pid <= STACKS_OF_TENANT; pid++)
		keep(stacks, 1000, 0, pid, 100 + pid);
	keep(stacks, 1000, 0, 50, 50);
	assert_false(has(stacks, 50, 50));
	assert_true(has(stacks, 1, 101));
	assert_int_equal(oom_stacks_dropped(stacks), 1);
	keep(stacks, 1000, 0, 51, 200);
	assert_true(has(stacks, 51, 200));
	assert_false(has(stacks, 1, 101));
	assert_int_equal(oom_stacks_dropped(stacks), 2);
}

/* Containers often run as root: their groups are different owners. */
static void test_owners_do_not_replace_stacks_of_others(void **state)
{
	static const struct {
		u32 uid;
		u64 group;
	} owners[] = { { 0, 7 }, { 0, 8 }, { 1000, 9 }, { 1001, 10 } };
	struct oom_stacks *stacks = *state;

	for (u32 i = 0; i < 4; i++)
		for (u32 k = 0; k <= STACKS_OF_TENANT; k++)
			keep(stacks, owners[i].uid, owners[i].group, 100 * i + k + 1, 1000 * i + k);
	for (u32 i = 0; i < 4; i++)
		for (u32 k = 0; k <= STACKS_OF_TENANT; k++)
			assert_int_equal(has(stacks, 100 * i + k + 1, 1000 * i + k), k > 0);
	assert_int_equal(oom_stacks_dropped(stacks), 4);
	/* All places are taken: the oldest stack of all goes. */
	keep(stacks, 1002, 0, 999, 9000);
	assert_true(has(stacks, 999, 9000));
	assert_false(has(stacks, 2, 1));
}

/* Users of one group have as many stacks as one user, and a user of many groups too. */
static void test_users_of_a_group_share_its_places(void **state)
{
	struct oom_stacks *stacks = *state;

	keep(stacks, 999, 6, 500, 1);
	for (u32 k = 0; k < 3 * STACKS_OF_TENANT; k++)
		keep(stacks, 1000 + k, 7, k + 1, 10 + k);
	assert_int_equal(oom_stacks_dropped(stacks), 2 * STACKS_OF_TENANT);
	for (u32 k = 0; k < 3 * STACKS_OF_TENANT; k++)
		assert_int_equal(has(stacks, k + 1, 10 + k), k >= 2 * STACKS_OF_TENANT);
	for (u32 k = 0; k < 3 * STACKS_OF_TENANT; k++)
		keep(stacks, 2000, 100 + k, k + 101, 100 + k);
	for (u32 k = 0; k < 3 * STACKS_OF_TENANT; k++)
		assert_int_equal(has(stacks, k + 101, 100 + k), k >= 2 * STACKS_OF_TENANT);
	/* Both have all their stacks, and none of them is of both. */
	keep(stacks, 2000, 7, 600, 9000);
	assert_false(has(stacks, 600, 9000));
	assert_int_equal(oom_stacks_dropped(stacks), 4 * STACKS_OF_TENANT + 1);
	assert_true(has(stacks, 500, 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_stack_is_read_once),
		TEST(test_a_stack_ends_at_a_gap),
		TEST(test_an_error_without_a_stack_takes_no_place),
		TEST(test_an_older_error_does_not_replace_a_newer_one),
		TEST(test_owners_do_not_replace_stacks_of_others),
		TEST(test_users_of_a_group_share_its_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
