/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the rules of the process database: merge, confidence, prediction, eviction, fading. */
#include "base/macros.h"
#include "procdb/support.h"

#include <errno.h>

/* Replaces the prediction map of the kernel. */
struct kernel {
	struct procdb_key keys[2048];
	struct procdb_record records[2048];
	size_t nr;
	unsigned int nr_sets;
	unsigned int nr_withdrawals;
	int fail;
};

static int kernel_position(const struct kernel *k, const struct procdb_key *key)
{
	for (size_t i = 0; i < k->nr; i++)
		if (memcmp(&k->keys[i], key, sizeof(*key)) == 0)
			return (int)i;
	return -1;
}

static int kernel_predict(void *userdata, const struct procdb_key *key,
			  const struct procdb_record *prediction)
{
	struct kernel *k = userdata;
	int at = kernel_position(k, key);

	if (k->fail)
		return k->fail;
	if (!prediction) {
		assert_true(at >= 0);
		k->nr_withdrawals++;
		k->nr--;
		k->keys[at] = k->keys[k->nr];
		k->records[at] = k->records[k->nr];
		return 0;
	}
	k->nr_sets++;
	if (at < 0)
		at = (int)k->nr++;
	k->keys[at] = *key;
	k->records[at] = *prediction;
	return 0;
}

static const struct procdb_record *kernel_record(const struct kernel *k, const char *comm)
{
	struct procdb_key key = key_named(comm);
	int at = kernel_position(k, &key);

	return at < 0 ? NULL : &k->records[at];
}

static void tick(struct procdb *db, u64 now_s, struct kernel *k)
{
	assert_int_equal(procdb_tick(db, now_s, kernel_predict, k), k->fail);
}

static void test_merge_first_as_is_then_averaged(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct procdb_key key = key_named("cc1");
	struct procdb_record first = { .tier = 0, .behaviour = { 1000, 100, 10, 80 } };
	struct procdb_record second = { .tier = 2, .behaviour = { 1008, 0, 9, 81 } };
	const struct procdb_profile *p;

	assert_int_equal(procdb_merge(db, &key, 1000, &first, 5), 0);
	p = procdb_find(db, &key);
	assert_memory_equal(&p->behaviour, &first.behaviour, sizeof(p->behaviour));
	assert_int_equal(p->owner, 1000);

	assert_int_equal(procdb_merge(db, &key, 1001, &second, 6), 0);
	p = procdb_find(db, &key);
	assert_int_equal(p->behaviour.runtime_avg_ns, 1001); /* (7000 + 1008) / 8 */
	assert_int_equal(p->behaviour.runtime_dev_ns, 87);   /* 700 / 8 = 87.5 */
	assert_int_equal(p->behaviour.wakeup_freq, 9);	     /* 79 / 8 = 9.875 */
	assert_int_equal(p->behaviour.switch_rate, 80);	     /* 641 / 8 = 80.125 */
	assert_int_equal(p->nr_observations, 2);
	assert_int_equal(p->last_seen_s, 6);
	assert_int_equal(p->votes.nr[TIER_BATCH], 1);
	assert_int_equal(p->votes.nr[TIER_LAT_CRITICAL], 1);
	assert_int_equal(p->owner, 1000);
}

static void test_merge_tier_above_two_counts_as_two(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);

	merge_times(db, "x", 3, 1, 1);
	merge_times(db, "x", 255, 1, 1);
	assert_int_equal(find_named(db, "x")->votes.nr[TIER_LAT_CRITICAL], 2);
}

static void test_needs_three_observations(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct kernel k = {};

	merge_times(db, "make", 0, 2, 1);
	tick(db, 1, &k);
	assert_int_equal(k.nr, 0);
	merge_times(db, "make", 0, 1, 2);
	tick(db, 2, &k);
	assert_int_equal(k.nr, 1);
	assert_int_equal(kernel_record(&k, "make")->tier, TIER_BATCH);
	assert_int_equal(kernel_record(&k, "make")->behaviour.runtime_avg_ns, 1000);
	assert_int_equal(kernel_record(&k, "make")->behaviour.switch_rate, 9);
}

/* Three of five votes give exactly 0.6, which is predicted. Any deviation gives less. */
static void test_threshold_is_exact(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct procdb_key key = key_named("shaky");
	struct procdb_record seen = record_of(2, 1000000, 1);
	struct kernel k = {};

	merge_times(db, "even", 2, 3, 1);
	merge_times(db, "even", 0, 2, 1);
	merge_times(db, "below", 2, 4, 1);
	merge_times(db, "below", 0, 3, 1);
	for (int i = 0; i < 5; i++) {
		seen.tier = i < 3 ? 2 : 0;
		seen.behaviour.runtime_dev_ns = 8;
		assert_int_equal(procdb_merge(db, &key, 0, &seen, 1), 0);
	}
	tick(db, 1, &k);
	assert_non_null(kernel_record(&k, "even"));
	assert_int_equal(kernel_record(&k, "even")->tier, TIER_LAT_CRITICAL);
	assert_null(kernel_record(&k, "below"));
	assert_null(kernel_record(&k, "shaky"));
	assert_int_equal(procdb_summarize(db).nr_profiles, 3);
	assert_int_equal(procdb_summarize(db).nr_confident, 1);
}

static void test_unstable_runtime_is_not_confident(void **state)
{
	static const struct {
		u64 average, deviation;
		bool confident;
	} rows[] = {
		{ 1000, 0, true },    { 1000, 800, true }, /* 0.5 + 0.5 x 0.2 = 0.6 */
		{ 1000, 801, false }, { 1000, 5000, false },
		{ 0, 0, false }, /* no average: stability 0, so 0.5 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
		struct procdb_key key = key_named("x");
		struct procdb_record seen = record_of(1, rows[i].average, rows[i].deviation);

		for (int n = 0; n < 3; n++)
			assert_int_equal(procdb_merge(db, &key, 0, &seen, 1), 0);
		assert_int_equal(procdb_summarize(db).nr_confident, rows[i].confident);
	}
}

/* A profile seen at tick 0 stays at tick 60. At tick 61, it and its prediction are removed. */
static void test_disuse_evicts_after_sixty_ticks(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct kernel k = {};

	merge_times(db, "gone", 0, 3, 1000);
	merge_times(db, "used", 0, 3, 1000);
	for (u64 now = 1000; now <= 1060; now++)
		tick(db, now, &k);
	assert_non_null(find_named(db, "gone"));
	assert_non_null(kernel_record(&k, "gone"));
	merge_times(db, "used", 0, 1, 1060);
	tick(db, 1061, &k);
	assert_null(find_named(db, "gone"));
	assert_null(kernel_record(&k, "gone"));
	assert_non_null(find_named(db, "used"));
	assert_non_null(kernel_record(&k, "used"));
	assert_int_equal(k.nr_withdrawals, 1);
}

static void test_capacity_evicts_by_age_then_observations_then_name(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct procdb_record seen = record_of(1, 1000, 0);
	struct kernel k = {};

	merge_times(db, "zz-many-but-old", 1, 90, 100);
	/* 512 ordinary profiles. Each of the remaining profiles differs in one criterion. */
	for (unsigned int i = 0; i < 512; i++)
		for (int n = 0; n < 4; n++) {
			struct procdb_key key = key_numbered(i);

			assert_int_equal(procdb_merge(db, &key, 0, &seen, 101), 0);
		}
	merge_times(db, "zz-seen-thrice", 1, 3, 101);
	merge_times(db, "a-first-name", 1, 4, 101);
	merge_times(db, "zz-last-name", 1, 4, 101);
	tick(db, 101, &k);
	assert_int_equal(procdb_summarize(db).nr_profiles, 512);
	assert_null(find_named(db, "zz-many-but-old"));
	assert_null(find_named(db, "zz-seen-thrice"));
	assert_null(find_named(db, "a-first-name"));
	assert_null(find_named(db, "task-000000"));
	assert_non_null(find_named(db, "task-000001"));
	assert_non_null(find_named(db, "zz-last-name"));
	assert_int_equal(k.nr, 512);
	assert_int_equal(k.nr_withdrawals, 0);

	merge_times(db, "zz-newer", 1, 1, 102);
	tick(db, 102, &k);
	assert_null(find_named(db, "task-000001"));
	assert_int_equal(k.nr_withdrawals, 1);
	assert_int_equal(k.nr, 511);
}

static void test_observations_without_room_are_counted(void **state)
{
	struct procdb_config config = REFERENCE_CONFIG;
	struct procdb_record seen = record_of(1, 1000, 0);
	struct kernel k = {};

	config.capacity = 4;
	CLEANUP_DB struct procdb *db = db_make(config);
	for (unsigned int i = 0; i < 10; i++) {
		struct procdb_key key = key_numbered(i);

		assert_int_equal(procdb_merge(db, &key, 0, &seen, 1), i < 8 ? 0 : -ENOSPC);
	}
	assert_int_equal(procdb_summarize(db).nr_dropped, 2);
	tick(db, 1, &k);
	assert_int_equal(procdb_summarize(db).nr_profiles, 4);
	merge_times(db, "room-again", 1, 1, 2);
}

static void test_prediction_withdrawn_when_confidence_falls(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct kernel k = {};

	merge_times(db, "python3", 2, 3, 1);
	tick(db, 1, &k);
	assert_int_equal(k.nr, 1);
	merge_times(db, "python3", 0, 3, 2);
	tick(db, 2, &k);
	assert_int_equal(k.nr, 0);
	assert_int_equal(k.nr_withdrawals, 1);
	/* Without a change, nothing is sent. */
	tick(db, 3, &k);
	assert_int_equal(k.nr_sets + k.nr_withdrawals, 2);
	merge_times(db, "python3", 0, 3, 4);
	tick(db, 4, &k);
	assert_int_equal(kernel_record(&k, "python3")->tier, TIER_BATCH);
}

static void test_failed_prediction_is_tried_again(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct kernel k = { .fail = -E2BIG };

	merge_times(db, "x", 2, 3, 1);
	tick(db, 1, &k);
	k.fail = 0;
	tick(db, 2, &k);
	assert_int_equal(k.nr, 1);
	/* If a prediction cannot be withdrawn, its profile stays. */
	k.fail = -EIO;
	tick(db, 100, &k);
	assert_non_null(find_named(db, "x"));
	k.fail = 0;
	tick(db, 101, &k);
	assert_null(find_named(db, "x"));
	assert_int_equal(k.nr, 0);
}

/* Tests the bound that the header gives for the default configuration. */
static void test_votes_fade(void **state)
{
	int fewest = 1000, most = 0;

	for (int history = 128; history < 400; history++) {
		CLEANUP_DB struct procdb *db = db_make(PROCDB_CONFIG_DEFAULT);
		int n = 0;

		merge_times(db, "x", 2, history, 1);
		assert_true(tier_votes_total(&find_named(db, "x")->votes) < 128);
		for (; procdb_summarize(db).nr_confident; n++)
			merge_times(db, "x", 0, 1, 1);
		fewest = n < fewest ? n : fewest;
		most = n > most ? n : most;
	}
	assert_int_equal(fewest, 43);
	assert_int_equal(most, 52);
}

static void test_identity_is_executable_and_role(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct procdb_key key = { .exe_id = 77, .role = 2, .comm = "pt_main_thread" };
	struct procdb_key renamed = { .exe_id = 77, .role = 2, .comm = "worker" };
	struct procdb_key other_role = { .exe_id = 77, .role = 3, .comm = "worker" };
	struct procdb_key other_exe = { .exe_id = 78, .role = 2, .comm = "worker" };
	struct procdb_key nameless = { .exe_id = 0, .role = 5, .comm = "worker" };
	struct procdb_record seen = record_of(2, 1000, 0);

	assert_int_equal(procdb_merge(db, &key, 0, &seen, 1), 0);
	assert_int_equal(procdb_merge(db, &renamed, 0, &seen, 1), 0);
	assert_int_equal(procdb_summarize(db).nr_profiles, 1);
	assert_int_equal(procdb_find(db, &renamed)->nr_observations, 2);
	assert_null(procdb_find(db, &other_role));
	assert_null(procdb_find(db, &other_exe));

	/* A profile by name matches every role, but only if no better profile exists. */
	assert_int_equal(procdb_merge(db, &nameless, 0, &seen, 1), 0);
	assert_int_equal(find_named(db, "worker")->nr_observations, 1);
	assert_int_equal(procdb_find(db, &other_exe)->key.exe_id, 0);
	assert_int_equal(procdb_find(db, &renamed)->key.exe_id, 77);
}

static void test_name_is_cut_at_its_terminating_zero(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct procdb_key garbage = { .comm = { 'a', 'b', 0, 'x', 'y' } };
	struct procdb_key endless = {};
	struct procdb_record seen = record_of(2, 1000, 0);

	memset(endless.comm, 'e', COMM_LEN);
	assert_int_equal(procdb_merge(db, &garbage, 0, &seen, 1), 0);
	assert_int_equal(procdb_merge(db, &endless, 0, &seen, 1), 0);
	assert_non_null(find_named(db, "ab"));
	assert_non_null(find_named(db, "eeeeeeeeeeeeeee"));
}

/* A clock step or a suspended machine must not change the age of profiles. */
static void test_clock_step_keeps_ages(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct kernel k = {};

	merge_times(db, "old", 1, 3, 1000);
	merge_times(db, "young", 1, 3, 1030);
	tick(db, 1040, &k);
	tick(db, EPOCH_S, &k);
	assert_int_equal(find_named(db, "old")->last_seen_s, EPOCH_S - 40);
	assert_int_equal(find_named(db, "young")->last_seen_s, EPOCH_S - 10);
	tick(db, EPOCH_S - 30 * DAY_S, &k);
	assert_int_equal(find_named(db, "old")->last_seen_s, EPOCH_S - 30 * DAY_S - 40);
	tick(db, EPOCH_S - 30 * DAY_S + 21, &k);
	assert_null(find_named(db, "old"));
	assert_non_null(find_named(db, "young"));
}

/* Compares the index with a plain array during many merges and evictions. */
static void test_index_agrees_with_a_model(void **state)
{
	enum { NR_KEYS = 600 };
	struct procdb_config config = { .capacity = 128, .vote_bound = 16, .disuse_s = 20 };
	CLEANUP_DB struct procdb *db = db_make(config);
	u32 seen_times[NR_KEYS] = {};
	u64 rng = 0x5eed, last[NR_KEYS] = {};
	struct procdb_record seen = record_of(1, 1000, 0);
	struct kernel k = {};

	for (u64 now = 1; now < 2000; now++) {
		size_t nr_found = 0;

		for (int i = 0; i < 16; i++) {
			unsigned int which = random_next(&rng) % NR_KEYS;
			struct procdb_key key = key_numbered(which);

			assert_int_equal(procdb_merge(db, &key, 0, &seen, now), 0);
			seen_times[which]++;
			last[which] = now;
		}
		tick(db, now, &k);
		for (unsigned int i = 0; i < NR_KEYS; i++) {
			struct procdb_key key = key_numbered(i);
			const struct procdb_profile *p = procdb_find(db, &key);

			if (!p) {
				seen_times[i] = 0;
				continue;
			}
			nr_found++;
			assert_memory_equal(&p->key, &key, sizeof(key));
			assert_int_equal(p->nr_observations, seen_times[i]);
			assert_int_equal(p->last_seen_s, last[i]);
			assert_true(now - p->last_seen_s <= 20);
			assert_int_equal(p->predicted, kernel_position(&k, &key) >= 0);
		}
		assert_int_equal(nr_found, procdb_summarize(db).nr_profiles);
		assert_true(nr_found <= 128);
		assert_int_equal(k.nr, procdb_summarize(db).nr_confident);
	}
	assert_true(k.nr_withdrawals > 1000);
}

static void test_configuration_is_checked(void **state)
{
	static const struct procdb_config bad[] = {
		{ .capacity = 0, .vote_bound = 128, .disuse_s = 60 },
		{ .capacity = PROCDB_CAPACITY_MAX + 1, .vote_bound = 128, .disuse_s = 60 },
		{ .capacity = 512, .vote_bound = PROCDB_VOTE_BOUND_MIN - 1, .disuse_s = 60 },
	};
	struct procdb *db = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(procdb_new(&bad[i], &db), -EINVAL);
		assert_null(db);
	}
	procdb_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge_first_as_is_then_averaged),
		cmocka_unit_test(test_merge_tier_above_two_counts_as_two),
		cmocka_unit_test(test_needs_three_observations),
		cmocka_unit_test(test_threshold_is_exact),
		cmocka_unit_test(test_unstable_runtime_is_not_confident),
		cmocka_unit_test(test_disuse_evicts_after_sixty_ticks),
		cmocka_unit_test(test_capacity_evicts_by_age_then_observations_then_name),
		cmocka_unit_test(test_observations_without_room_are_counted),
		cmocka_unit_test(test_prediction_withdrawn_when_confidence_falls),
		cmocka_unit_test(test_failed_prediction_is_tried_again),
		cmocka_unit_test(test_votes_fade),
		cmocka_unit_test(test_identity_is_executable_and_role),
		cmocka_unit_test(test_name_is_cut_at_its_terminating_zero),
		cmocka_unit_test(test_clock_step_keeps_ages),
		cmocka_unit_test(test_index_agrees_with_a_model),
		cmocka_unit_test(test_configuration_is_checked),
	};

	return cmocka_run_group_tests_name("procdb", tests, NULL, NULL);
}
