/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Tests 65,536 profiles. The cost of an operation for each profile must not grow with the number
 * of profiles: it is compared with the cost at 1,024 profiles, in the same run. `./dev test
 * timing` also judges the wall time of the work of one second, with a save to a real file.
 */
#include "base/time.h"
#include "procdb/support.h"

#include <malloc.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "support/timing.h"

#define NR_FEW	    1024U
#define NR_PROFILES 65536U
#define NR_NEW	    8192U
#define NR_SECONDS  9
#define SECOND_MS   50.0
#define NR_ROUNDS   5
/* Caches make more profiles slower by a small factor. A search through all would be 64 times
 * slower. */
#define MAX_RATIO   16.0

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

enum operation {
	MERGE_NEW,
	MERGE_KNOWN,
	TICK_SET,
	TICK_NOTHING,
	MERGE_EVICT,
	TICK_EVICT,
	ENCODE,
	DECODE,
	TICK_REPLACE,
	OPERATION_NR,
};

static const char *const operations[OPERATION_NR] = {
	[MERGE_NEW] = "merge, every key new",
	[MERGE_KNOWN] = "merge, every key known",
	[TICK_SET] = "tick, all predictions set",
	[TICK_NOTHING] = "tick, nothing to do",
	[MERGE_EVICT] = "merge of new keys, an eighth of all",
	[TICK_EVICT] = "tick, an eighth evicted and set",
	[ENCODE] = "encode",
	[DECODE] = "decode",
	[TICK_REPLACE] = "tick, all evicted and replaced",
};

/* The CPU time of each operation for one profile, in ns: the cheapest round. */
struct costs {
	double ns[OPERATION_NR];
	u64 began_ns;
};

static void cost_begins(struct costs *costs)
{
	costs->began_ns = time_of_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void cost_ends(struct costs *costs, enum operation operation, u32 nr)
{
	double ns = (double)(time_of_ns(CLOCK_THREAD_CPUTIME_ID) - costs->began_ns) / nr;

	if (!costs->ns[operation] || ns < costs->ns[operation])
		costs->ns[operation] = ns;
}

static void tick(struct procdb *db, u64 second, size_t nr_expected)
{
	size_t nr_calls = 0;

	assert_int_equal(procdb_tick(db, EPOCH_S + second, count_calls, &nr_calls), 0);
	assert_int_equal(nr_calls, nr_expected);
}

/* All profiles have the same age and observations, so their names decide the order of evictions. */
static void evict(struct procdb *db, struct costs *costs, u32 nr)
{
	cost_begins(costs);
	for (int i = 0; i < 3; i++)
		merge_range(db, nr, nr + nr / 8, EPOCH_S + 3);
	cost_ends(costs, MERGE_EVICT, nr / 8 * 3);
	cost_begins(costs);
	tick(db, 3, nr / 4);
	cost_ends(costs, TICK_EVICT, nr / 8);
	assert_int_equal(procdb_summarize(db).nr_profiles, nr);
}

static void save_and_load(const struct procdb *db, struct procdb *loaded, struct costs *costs,
			  u32 nr)
{
	size_t size = procdb_encoded_size(db);
	CLEANUP_FREE u8 *file = malloc(size);
	struct procdb_report found;

	assert_non_null(file);
	cost_begins(costs);
	assert_int_equal(procdb_encode(db, file, size, &size), 0);
	cost_ends(costs, ENCODE, nr);
	cost_begins(costs);
	assert_int_equal(procdb_decode(loaded, file, size, EPOCH_S + 3, &found), 0);
	cost_ends(costs, DECODE, nr);
	assert_int_equal(procdb_summarize(loaded).nr_profiles, nr);
}

static void round_run(struct costs *costs, u32 nr)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	size_t nr_calls = 0;

	config.capacity = nr;
	CLEANUP_DB struct procdb *db = db_make(config);
	CLEANUP_DB struct procdb *loaded = db_make(config);
	cost_begins(costs);
	merge_range(db, 0, nr, EPOCH_S);
	cost_ends(costs, MERGE_NEW, nr);
	cost_begins(costs);
	for (int i = 0; i < 4; i++)
		merge_range(db, 0, nr, EPOCH_S + 1);
	cost_ends(costs, MERGE_KNOWN, 4 * nr);
	cost_begins(costs);
	tick(db, 1, nr);
	cost_ends(costs, TICK_SET, nr);
	cost_begins(costs);
	tick(db, 2, 0);
	cost_ends(costs, TICK_NOTHING, nr);
	evict(db, costs, nr);
	save_and_load(db, loaded, costs, nr);
	merge_range(loaded, 2 * nr, 3 * nr, EPOCH_S + 4);
	cost_begins(costs);
	assert_int_equal(procdb_tick(loaded, EPOCH_S + 4, count_calls, &nr_calls), 0);
	cost_ends(costs, TICK_REPLACE, nr);
	assert_int_equal(procdb_summarize(loaded).nr_profiles, nr);
}

static void test_cost_does_not_grow_with_the_number_of_profiles(void **state)
{
	struct costs few = {}, many = {};

	for (int i = 0; i < NR_ROUNDS; i++) {
		round_run(&few, NR_FEW);
		round_run(&many, NR_PROFILES);
	}
	for (u32 i = 0; i < OPERATION_NR; i++) {
		double ratio = many.ns[i] / few.ns[i];

		print_message("# %-36s %7.1f ns each of %u, %7.1f ns each of %u: %.2f times\n",
			      operations[i], few.ns[i], NR_FEW, many.ns[i], NR_PROFILES, ratio);
		assert_true(ratio <= MAX_RATIO);
	}
}

static void test_memory_is_bounded(void **state)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	size_t before = memory_bytes(), empty;

	config.capacity = NR_PROFILES;
	CLEANUP_DB struct procdb *db = db_make(config);
	empty = memory_bytes() - before;
	merge_range(db, 0, NR_PROFILES, EPOCH_S);
	merge_range(db, NR_PROFILES, NR_PROFILES + NR_NEW, EPOCH_S + 1);
	print_message("# file %zu bytes; memory of one database %zu bytes (0 under a sanitizer)\n",
		      procdb_encoded_size(db), empty);
	assert_int_equal(memory_bytes() - before, empty);
}

static double wall_ms(void)
{
	return (double)time_of_ns(CLOCK_MONOTONIC) / 1e6;
}

static double disk_ms;

static int timed_fsync(int fd)
{
	double begin = wall_ms();
	int err = fsync(fd);

	disk_ms += wall_ms() - begin;
	return err;
}

static void save(const struct procdb *db, const char *path)
{
	struct file_ops ops = file_ops_system;
	size_t size = procdb_encoded_size(db);
	CLEANUP_FREE u8 *data = malloc(size);

	ops.fsync = timed_fsync;
	assert_non_null(data);
	assert_int_equal(procdb_encode(db, data, size, &size), 0);
	assert_int_equal(file_save(&ops, path, data, size, S_IRUSR | S_IWUSR), 0);
}

/* Does the work of one busy second: observations, evictions and a save. */
static void second_run(struct procdb *db, unsigned int second, const char *path)
{
	unsigned int from = NR_PROFILES + second * NR_NEW;
	u64 now_s = EPOCH_S + 1 + second;
	size_t nr_calls = 0;

	for (int i = 0; i < 3; i++)
		merge_range(db, from, from + NR_NEW, now_s);
	assert_int_equal(procdb_tick(db, now_s, count_calls, &nr_calls), 0);
	assert_int_equal(nr_calls, 2 * NR_NEW);
	save(db, path);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, const char *what)
{
	qsort(values, NR_SECONDS, sizeof(*values), by_value);
	print_message("# %-44s %8.2f ms  (%.2f to %.2f)\n", what, values[NR_SECONDS / 2], values[0],
		      values[NR_SECONDS - 1]);
	return values[NR_SECONDS / 2];
}

/* The time of fsync() is the disk's. */
static void test_a_second_with_a_save(void **state)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	double whole[NR_SECONDS], disk[NR_SECONDS];
	char path[] = "procdb-scale.XXXXXX";
	CLEANUP_FD int fd = mkstemp(path);
	size_t nr_calls = 0;

	assert_true(fd >= 0);
	config.capacity = NR_PROFILES;
	CLEANUP_DB struct procdb *db = db_make(config);
	for (int i = 0; i < 3; i++)
		merge_range(db, 0, NR_PROFILES, EPOCH_S);
	assert_int_equal(procdb_tick(db, EPOCH_S, count_calls, &nr_calls), 0);
	for (unsigned int i = 0; i < NR_SECONDS; i++) {
		double begin = wall_ms();

		disk_ms = 0;
		second_run(db, i, path);
		whole[i] = wall_ms() - begin - disk_ms;
		disk[i] = disk_ms;
	}
	unlink(path);
	median(disk, "time in fsync");
	timing_assert(median(whole, "merge + evict + save, without fsync") < SECOND_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost_does_not_grow_with_the_number_of_profiles),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_a_second_with_a_save),
	};

	return cmocka_run_group_tests_name("procdb scale", tests, NULL, NULL);
}
