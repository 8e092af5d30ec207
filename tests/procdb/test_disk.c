/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The campaign `disk`: random orders of observations, saves and restarts, on a disk that is full,
 * read-only or broken at any call of a save, with a clock that is set by up to ten years. Learning
 * goes on, and the file always has the complete content of the last save that succeeded.
 * `test_disk ORDERS` runs more than the 1,000 orders of CI.
 */
#include "base/macros.h"
#include "procdb/support.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define NR_ORDERS  1000
#define NR_STEPS   40
#define CAPACITY   256
#define NR_KEYS	   600 /* more than the database has room for */
#define TEN_YEARS  (3652U * 24 * 3600)
#define SIZE_LIMIT (1UL << 20)
#define CALLS_MAX  12 /* of a save; a later fault does not strike */
#define WRITE_MAX  4096

static u32 nr_orders = NR_ORDERS;

/* The call that fails. Static because the signatures of libc have no context. */
static struct {
	int at, error, nr_done;
} fault;

static bool fails(void)
{
	if (++fault.nr_done != fault.at)
		return false;
	errno = fault.error;
	return true;
}

static int disk_open(const char *path, int flags, mode_t mode)
{
	return fails() ? -1 : file_ops_system.open(path, flags, mode);
}

/* A full disk takes a part of the data first. */
static ssize_t disk_write(int fd, const void *data, size_t size)
{
	size = size < WRITE_MAX ? size : WRITE_MAX;
	if (!fails())
		return file_ops_system.write(fd, data, size);
	if (fault.error == ENOSPC && size > 1)
		(void)!file_ops_system.write(fd, data, size / 2);
	errno = fault.error;
	return -1;
}

/* The test cannot lose power, so nothing has to reach the disk. */
static int disk_fsync(int fd)
{
	return fails() ? -1 : 0;
}

static int disk_close(int fd)
{
	bool failed = fails();
	int err = file_ops_system.close(fd);

	if (failed)
		errno = fault.error;
	return failed ? -1 : err;
}

static int disk_rename(const char *from, const char *to)
{
	return fails() ? -1 : file_ops_system.rename(from, to);
}

static int disk_unlink(const char *path)
{
	return fails() ? -1 : file_ops_system.unlink(path);
}

static const struct file_ops disk = { disk_open,  disk_write,  disk_fsync,
				      disk_close, disk_rename, disk_unlink };

struct order {
	u64 random;
	u64 now_s;
	char *path;
	struct procdb *db;
	u8 *saved; /* content of the file; NULL: it does not exist */
	size_t saved_size;
	u64 nr_saves, nr_failed;
};

static u32 chance(struct order *order, u32 below)
{
	return (u32)(random_next(&order->random) >> 32) % below;
}

static int no_prediction(void *userdata, const struct procdb_key *key,
			 const struct procdb_record *prediction)
{
	return 0;
}

static void observe(struct order *order)
{
	struct procdb_record seen = record_of(chance(order, 3), 1000000, 1000);

	for (u32 i = 0; i < 20; i++) {
		struct procdb_key key = key_numbered(chance(order, NR_KEYS));

		assert_int_equal(procdb_merge(order->db, &key, 0, &seen, order->now_s), 0);
	}
	assert_int_equal(procdb_tick(order->db, order->now_s, no_prediction, NULL), 0);
	assert_true(procdb_summarize(order->db).nr_profiles > 0);
}

static void set_clock(struct order *order)
{
	u64 step = chance(order, TEN_YEARS);

	if (chance(order, 2))
		order->now_s += step;
	else
		order->now_s -= step < order->now_s ? step : order->now_s;
	assert_int_equal(procdb_tick(order->db, order->now_s, no_prediction, NULL), 0);
}

/* The file has exactly the content that it should have, and that is a sound database. */
static void check_file(struct order *order)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	struct procdb_report report;
	CLEANUP_FREE void *data = NULL;
	size_t size;
	int err = file_read(order->path, SIZE_LIMIT, &data, &size);

	if (!order->saved) {
		assert_int_equal(err, -ENOENT);
		return;
	}
	assert_int_equal(err, 0);
	assert_int_equal(size, order->saved_size);
	assert_memory_equal(data, order->saved, size);
	config.capacity = CAPACITY;
	CLEANUP_DB struct procdb *loaded = db_make(config);
	assert_int_equal(procdb_decode(loaded, data, size, order->now_s, &report), 0);
}

static void save(struct order *order, bool with_fault)
{
	static const int errors[] = { ENOSPC, EROFS, EIO, EDQUOT };
	size_t size = procdb_encoded_size(order->db);
	u8 *data = malloc(size);
	int err;

	assert_non_null(data);
	assert_int_equal(procdb_encode(order->db, data, size, &size), 0);
	fault.nr_done = 0;
	fault.at = with_fault ? 1 + (int)chance(order, CALLS_MAX) : 0;
	fault.error = errors[chance(order, ARRAY_SIZE(errors))];
	err = file_save(&disk, order->path, data, size, S_IRUSR | S_IWUSR);
	order->nr_saves++;
	order->nr_failed += err < 0;
	if (err < 0) {
		CLEANUP_FREE void *found = NULL;
		size_t found_size;

		assert_true(with_fault);
		/* An error after the rename: the new content may already be there. */
		if (file_read(order->path, SIZE_LIMIT, &found, &found_size) < 0 ||
		    found_size != size || memcmp(found, data, size) != 0) {
			free(data);
			return;
		}
	}
	free(order->saved);
	order->saved = data;
	order->saved_size = size;
}

/* zerneld restarts: what is in the file is what it knows. */
static void restart(struct order *order)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	struct procdb_report report;

	config.capacity = CAPACITY;
	procdb_free(order->db);
	order->db = db_make(config);
	if (order->saved)
		assert_int_equal(procdb_decode(order->db, order->saved, order->saved_size,
					       order->now_s, &report),
				 0);
}

static void order_run(struct order *order)
{
	restart(order);
	for (u32 i = 0; i < NR_STEPS; i++) {
		switch (chance(order, 8)) {
		case 0: set_clock(order); break;
		case 1: restart(order); break;
		case 2:
		case 3:
		case 4: save(order, chance(order, 4)); break;
		default: observe(order);
		}
		check_file(order);
	}
	/* The disk works again. */
	observe(order);
	save(order, false);
	check_file(order);
}

static void test_random_orders(void **state)
{
	char folder[] = "/tmp/disk.XXXXXX", path[64];
	u64 nr_saves = 0, nr_failed = 0;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/procdb", folder);
	for (u32 i = 0; i < nr_orders; i++) {
		struct order order = { .random = i + 1, .now_s = EPOCH_S, .path = path };

		order_run(&order);
		nr_saves += order.nr_saves;
		nr_failed += order.nr_failed;
		free(order.saved);
		procdb_free(order.db);
		unlink(path);
	}
	print_message("# %u orders of %u steps: %llu saves, %llu of them failed\n", nr_orders,
		      NR_STEPS, nr_saves, nr_failed);
	assert_true(nr_failed > nr_saves / 10);
	/* The unlink of a save may have failed. */
	snprintf(path, sizeof(path), "%s/procdb.new", folder);
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_orders),
	};

	if (argc > 1)
		nr_orders = (u32)atoi(argv[1]);
	return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
