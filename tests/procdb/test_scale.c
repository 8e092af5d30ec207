/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Tests 65,536 profiles. Prints the CPU time of each operation. Only a very large excess fails
 * the test. The work of one second, with a save to a real file, has a bound in wall time.
 */
#include "base/time.h"
#include "procdb/support.h"

#include <malloc.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "support/taken.h"

#define NR_PROFILES 65536U
#define NR_NEW	    8192U
#define FAR_TOO_MS  2000.0
#define NR_SECONDS  9
#define SECOND_MS   50.0
/* Sanitizers make the test slower. */
#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SLOWER 10.0
#else
#define SLOWER 1.0
#endif

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
	struct procdb_report found;
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

	/* All profiles have the same age and observations, so their names decide the order. */
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
	assert_int_equal(procdb_decode(loaded, file, size, EPOCH_S + 3, &found), 0);
	report("decode", start, NR_PROFILES);
	assert_int_equal(procdb_summarize(loaded).nr_profiles, NR_PROFILES);

	merge_range(loaded, 2 * NR_PROFILES, 3 * NR_PROFILES, EPOCH_S + 4);
	start = cost_now();
	assert_int_equal(procdb_tick(loaded, EPOCH_S + 4, count_calls, &nr_calls), 0);
	report("tick, all 65536 evicted and replaced", start, NR_PROFILES);
	assert_int_equal(procdb_summarize(loaded).nr_profiles, NR_PROFILES);
	print_message("# file %zu bytes; memory of one database %zu bytes (0 under a sanitizer)\n",
		      size, memory);
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

/* If the disk is slow, the time of fsync() is added to the bound. */
static void test_a_second_with_a_save(void **state)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	double whole[NR_SECONDS], disk[NR_SECONDS], taken[NR_SECONDS], bound;
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
		double begin = wall_ms(), taken_before = (double)taken_ns() / 1e6;

		disk_ms = 0;
		second_run(db, i, path);
		whole[i] = wall_ms() - begin;
		disk[i] = disk_ms;
		taken[i] = (double)taken_ns() / 1e6 - taken_before;
	}
	unlink(path);
	bound = SECOND_MS * SLOWER + median(taken, "CPU time taken by other processes");
	if (median(disk, "time in fsync, part of the wall time") > SECOND_MS / 2) {
		print_message("# the disk is the limit: its time is added to the bound\n");
		bound += disk[NR_SECONDS / 2];
	}
	assert_true(median(whole, "merge + evict + save, wall time") < bound);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_a_second_with_a_save),
	};

	return cmocka_run_group_tests_name("procdb scale", tests, NULL, NULL);
}
