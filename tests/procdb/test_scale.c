/* SPDX-License-Identifier: GPL-2.0-only */

/*
 * 65,536 profiles: what a merge, a tick that evicts, and a save cost, in CPU time.
 * It is printed; only a wild excess fails.
 */
#include "procdb/support.h"

#include <malloc.h>
#include <time.h>

#include "support/taken.h"

#define NR_PROFILES 65536U
#define NR_NEW	    8192U
#define FAR_TOO_MS  2000.0

struct cost {
	double cpu_ms, taken_ms;
};

static struct cost cost_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (struct cost){ (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6,
			      (double)taken_by_guests_ns() / 1e6 };
}

static size_t memory_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static int count_calls(void *userdata, const struct procdb_key *key,
		       const struct procdb_record *prediction)
{
	++*(size_t *)userdata;
	return 0;
}

static struct procdb_key key_at(unsigned int i)
{
	struct procdb_key key = key_numbered(i);

	key.exe_id = i % 2 ? (i + 1) * 0x9e3779b97f4a7c15ULL : 0;
	return key;
}

static void merge_range(struct procdb *db, unsigned int from, unsigned int to, u64 now_s)
{
	struct procdb_record seen = record_of(2, 1000000, 1000);

	for (unsigned int i = from; i < to; i++) {
		struct procdb_key key = key_at(i);

		assert_int_equal(procdb_merge(db, &key, 0, &seen, now_s), 0);
	}
}

static double report(const char *what, struct cost since, double per)
{
	struct cost now = cost_now();
	double ms = now.cpu_ms - since.cpu_ms;

	print_message("# %-44s %8.2f ms  %8.1f ns each\n", what, ms, ms * 1e6 / per);
	assert_true(ms < FAR_TOO_MS + now.taken_ms - since.taken_ms);
	return ms;
}

static void test_scale(void **state)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	size_t nr_calls = 0, size = 0, memory;
	enum procdb_defect defect;
	struct cost start;
	double together_ms;
	CLEANUP_FREE u8 *file = NULL;

	config.capacity = NR_PROFILES;
	memory = memory_bytes();
	CLEANUP_DB struct procdb *db = db_make(config);
	memory = memory_bytes() - memory;
	CLEANUP_DB struct procdb *loaded = db_make(config);

	start = cost_now();
	merge_range(db, 0, NR_PROFILES, EPOCH_S);
	report("merge, every key new", start, NR_PROFILES);
	start = cost_now();
	for (int round = 1; round <= 4; round++)
		merge_range(db, 0, NR_PROFILES, EPOCH_S + 1);
	report("merge, every key known", start, 4.0 * NR_PROFILES);

	start = cost_now();
	assert_int_equal(procdb_tick(db, EPOCH_S + 1, count_calls, &nr_calls), 0);
	report("tick, all predictions set", start, NR_PROFILES);
	assert_int_equal(nr_calls, NR_PROFILES);
	start = cost_now();
	assert_int_equal(procdb_tick(db, EPOCH_S + 2, count_calls, &nr_calls), 0);
	report("tick, nothing to do", start, NR_PROFILES);
	assert_int_equal(nr_calls, NR_PROFILES);

	/* All equally old and observed: the order goes down to the names. */
	start = cost_now();
	for (int i = 0; i < 3; i++)
		merge_range(db, NR_PROFILES, NR_PROFILES + NR_NEW, EPOCH_S + 3);
	together_ms = report("merge, 8192 new three times", start, 3.0 * NR_NEW);
	start = cost_now();
	assert_int_equal(procdb_tick(db, EPOCH_S + 3, count_calls, &nr_calls), 0);
	together_ms += report("tick, 8192 evicted and 8192 set", start, NR_NEW);
	assert_int_equal(procdb_summarize(db).nr_profiles, NR_PROFILES);
	assert_int_equal(nr_calls, NR_PROFILES + 2 * NR_NEW);

	file = malloc(procdb_encoded_size(db));
	assert_non_null(file);
	start = cost_now();
	assert_int_equal(procdb_encode(db, file, procdb_encoded_size(db), &size), 0);
	together_ms += report("encode", start, NR_PROFILES);
	print_message("# %-44s %8.2f ms\n", "merge + evict + encode", together_ms);
	start = cost_now();
	assert_int_equal(procdb_decode(loaded, file, size, EPOCH_S + 3, &defect), 0);
	report("decode", start, NR_PROFILES);
	assert_int_equal(procdb_summarize(loaded).nr_profiles, NR_PROFILES);

	merge_range(loaded, 2 * NR_PROFILES, 3 * NR_PROFILES, EPOCH_S + 4);
	start = cost_now();
	assert_int_equal(procdb_tick(loaded, EPOCH_S + 4, count_calls, &nr_calls), 0);
	report("tick, all 65536 evicted for others", start, NR_PROFILES);
	assert_int_equal(procdb_summarize(loaded).nr_profiles, NR_PROFILES);
	print_message("# file %zu bytes; memory of one database %zu bytes (0 under a sanitizer)\n",
		      size, memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scale) };

	return cmocka_run_group_tests_name("procdb scale", tests, NULL, NULL);
}
