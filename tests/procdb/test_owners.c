/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Tests the limits of users in the database, votes that move, profiles by name from before
 * executables were known, a newly loaded kernel, and weeks of use.
 */
#include "procdb/support.h"

#include <errno.h>

#define ALICE	1000U
#define MALLORY 1001U

static const struct procdb_config small = { .capacity = 400, .vote_bound = 128, .disuse_s = 60 };

static int count_predictions(void *userdata, const struct procdb_key *key,
			     const struct procdb_record *prediction)
{
	*(int *)userdata += prediction ? 1 : -1;
	return 0;
}

static struct procdb_key key_of_exe(u64 exe_id)
{
	struct procdb_key key = key_named("program");

	key.exe_id = exe_id;
	return key;
}

static void run(struct procdb *db, u64 exe_id, u32 owner, int times, u64 now_s)
{
	struct procdb_key key = key_of_exe(exe_id);
	struct procdb_record seen = record_of(TIER_BATCH, 1000, 0);

	for (int i = 0; i < times; i++)
		(void)procdb_merge(db, &key, owner, &seen, now_s);
}

static u32 nr_of(const struct procdb *db, u32 owner)
{
	const struct procdb_profile *p;
	u32 nr = 0;

	for (size_t i = 0; (p = procdb_at(db, i)); i++)
		nr += p->owner == owner;
	return nr;
}

/* Mallory runs new programs every second, often enough for a profile. Other users lose nothing. */
static void test_one_user_cannot_evict_profiles_of_other_users(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(small);
	u64 now = EPOCH_S, next = 1 << 20;
	int nr = 0;

	for (u64 i = 0; i < 100; i++) {
		run(db, 1 + i, ALICE, 3, now);
		run(db, 1001 + i, 0, 3, now);
	}
	assert_int_equal(procdb_tick(db, now, count_predictions, &nr), 0);
	for (int second = 1; second <= 50; second++) {
		for (int i = 0; i < 300; i++)
			run(db, next++, MALLORY, 3, now + (u64)second);
		assert_int_equal(procdb_tick(db, now + (u64)second, count_predictions, &nr), 0);
		assert_int_equal(nr_of(db, ALICE), 100);
		assert_int_equal(nr_of(db, 0), 100);
		assert_int_equal(nr_of(db, MALLORY), small.capacity / PROCDB_USER_PARTS);
		assert_int_equal(nr, 300);
	}
	/* Only the newest profiles of Mallory are left. */
	for (u64 i = 1; i <= 100; i++) {
		struct procdb_key key = key_of_exe(next - i);

		assert_non_null(procdb_find(db, &key));
	}
}

/* Seven users exceed their limit. The limit is enforced for all of them. */
static void test_every_user_has_a_limit(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(small);
	u64 next = 1;
	int nr = 0;

	for (u32 user = 1; user <= 7; user++)
		for (int i = 0; i < 101 + (int)user; i++)
			run(db, next++, user, 1, EPOCH_S);
	assert_int_equal(procdb_tick(db, EPOCH_S, count_predictions, &nr), 0);
	assert_int_equal(procdb_summarize(db).nr_profiles, small.capacity);
	for (u32 user = 1; user <= 7; user++)
		assert_true(nr_of(db, user) <= small.capacity / PROCDB_USER_PARTS);
}

static void test_root_has_no_limit(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(small);
	int nr = 0;

	for (u64 i = 1; i <= 400; i++)
		run(db, i, 0, 1, EPOCH_S);
	assert_int_equal(procdb_tick(db, EPOCH_S, count_predictions, &nr), 0);
	assert_int_equal(nr_of(db, 0), 400);
}

static void test_a_program_that_root_runs_belongs_to_root(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(small);

	run(db, 7, ALICE, 1, EPOCH_S);
	assert_int_equal(nr_of(db, ALICE), 1);
	run(db, 7, 0, 1, EPOCH_S);
	run(db, 7, ALICE, 1, EPOCH_S);
	assert_int_equal(nr_of(db, 0), 1);
}

static void test_a_correction_moves_the_vote(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(small);
	struct procdb_key key = key_of_exe(7);
	struct procdb_record seen = record_of(TIER_LAT_CRITICAL, 1000, 0);
	const struct procdb_profile *p;

	assert_int_equal(procdb_merge(db, &key, 0, &seen, EPOCH_S), 0);
	seen.corrects = TIER_LAT_CRITICAL + 1;
	seen.tier = TIER_BATCH;
	assert_int_equal(procdb_merge(db, &key, 0, &seen, EPOCH_S + 5), 0);
	p = procdb_find(db, &key);
	assert_int_equal(p->votes.nr[TIER_LAT_CRITICAL], 0);
	assert_int_equal(p->votes.nr[TIER_BATCH], 1);
	assert_int_equal(p->nr_observations, 1);
	assert_int_equal(p->last_seen_s, EPOCH_S + 5);
	/* A correction of a faded vote, or of an invalid tier, counts as an ordinary vote. */
	assert_int_equal(procdb_merge(db, &key, 0, &seen, EPOCH_S), 0);
	seen.corrects = 255;
	assert_int_equal(procdb_merge(db, &key, 0, &seen, EPOCH_S), 0);
	assert_int_equal(p->votes.nr[TIER_BATCH], 3);
	assert_int_equal(p->nr_observations, 3);
}

/* A profile by name has eight votes from an old file. Six runs of an executable outweigh it. */
static void test_a_name_learns_from_executables(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(small);
	int nr = 0, runs = 0;

	merge_times(db, "program", TIER_LAT_CRITICAL, 8, EPOCH_S);
	merge_times(db, "another", TIER_LAT_CRITICAL, 8, EPOCH_S);
	assert_int_equal(procdb_tick(db, EPOCH_S, count_predictions, &nr), 0);
	assert_int_equal(nr, 2);
	while (procdb_profile_is_confident(find_named(db, "program"))) {
		run(db, 7, 0, 1, EPOCH_S);
		runs++;
	}
	assert_int_equal(runs, 6);
	assert_true(procdb_profile_is_confident(find_named(db, "another")));
}

static void test_a_new_kernel_gets_all_predictions(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(small);
	int before = 0, after = 0;

	for (u64 i = 1; i <= 10; i++)
		run(db, i, 0, 3, EPOCH_S);
	run(db, 11, 0, 1, EPOCH_S);
	assert_int_equal(procdb_tick(db, EPOCH_S, count_predictions, &before), 0);
	assert_int_equal(procdb_tick(db, EPOCH_S + 1, count_predictions, &after), 0);
	assert_int_equal(before, 10);
	assert_int_equal(after, 0);
	procdb_predict_again(db);
	assert_int_equal(procdb_tick(db, EPOCH_S + 2, count_predictions, &after), 0);
	assert_int_equal(after, 10);
}

static void test_a_forgotten_prediction_is_withdrawn(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(small);
	struct procdb_key key = key_of_exe(3);
	int nr = 0;

	run(db, 3, 0, 3, EPOCH_S);
	merge_times(db, "program", TIER_BATCH, 3, EPOCH_S);
	assert_int_equal(procdb_tick(db, EPOCH_S, count_predictions, &nr), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(procdb_forget(db, &key, count_predictions, &nr), 0);
	assert_int_equal(nr, 1);
	/* The profile by name is a different profile and stays. */
	assert_int_equal(procdb_forget(db, &key, count_predictions, &nr), -ENOENT);
	assert_int_equal(procdb_summarize(db).nr_profiles, 1);
}

/*
 * Simulates three weeks with one tick per second, and a save and load every night. 200 programs
 * run once a day. 200 programs run only on the first day.
 */
static void test_weeks_of_use(void **state)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	struct procdb *db = db_make(config);
	struct procdb_report report;
	int nr = 0;

	for (u64 i = 1; i <= 200; i++)
		run(db, 10000 + i, 0, 3, EPOCH_S);
	for (u64 day = 0; day < 21; day++) {
		CLEANUP_FREE void *file = NULL;
		size_t size = 0;

		for (u64 second = 0; second < DAY_S; second++) {
			u64 now = EPOCH_S + day * DAY_S + second;

			if (second % 400 == 0 && second / 400 < 200)
				run(db, 1 + second / 400, 0, day == 0 ? 3 : 1, now);
			assert_int_equal(procdb_tick(db, now, count_predictions, &nr), 0);
		}
		for (u64 i = 1; i <= 200; i++) {
			struct procdb_key daily = key_of_exe(i), once = key_of_exe(10000 + i);

			assert_non_null(procdb_find(db, &daily));
			assert_true(!procdb_find(db, &once) == (day >= 14));
		}
		file = malloc(procdb_encoded_size(db));
		assert_int_equal(procdb_encode(db, file, procdb_encoded_size(db), &size), 0);
		procdb_free(db);
		db = db_make(config);
		assert_int_equal(
			procdb_decode(db, file, size, EPOCH_S + (day + 1) * DAY_S, &report), 0);
	}
	assert_int_equal(procdb_summarize(db).nr_confident, 200);
	procdb_free(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_user_cannot_evict_profiles_of_other_users),
		cmocka_unit_test(test_every_user_has_a_limit),
		cmocka_unit_test(test_root_has_no_limit),
		cmocka_unit_test(test_a_program_that_root_runs_belongs_to_root),
		cmocka_unit_test(test_a_correction_moves_the_vote),
		cmocka_unit_test(test_a_name_learns_from_executables),
		cmocka_unit_test(test_a_new_kernel_gets_all_predictions),
		cmocka_unit_test(test_a_forgotten_prediction_is_withdrawn),
		cmocka_unit_test(test_weeks_of_use),
	};

	return cmocka_run_group_tests_name("procdb owners", tests, NULL, NULL);
}
