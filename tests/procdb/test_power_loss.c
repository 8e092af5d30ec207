/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Tests a save on a model of a disk that guarantees only what fsync() requests. Unsynced data
 * of a file is lost. Any number of the unsynced changes of a directory reaches the disk, in
 * order. The power fails after every operation. The disk must then contain the old or the new
 * content. The campaign `power`, `test_power_loss REPLAYS`, does that with databases and the disk
 * that the failure left, again and again: blocks of unsynced data are new, empty or garbage.
 */
#include "procdb/support.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file.h"

enum { NR_NODES = 8, NR_NAMES = 2, NR_STATES = 32, NODE_FD = 100, DIRECTORY_FD = 200 };
enum { NODE_BYTES = 8192, BLOCK_BYTES = 512, NR_PROFILES = 60, SAVE_CALLS_MAX = 24 };

static const char *const names[NR_NAMES] = { "/db/procdb", "/db/procdb.new" };

/* The node of each name plus 1, or 0 if the file does not exist. */
struct directory {
	int node[NR_NAMES];
};

static struct disk {
	struct {
		char data[NODE_BYTES];
		size_t size;
		bool synced;
	} node[NR_NODES];
	int nr_nodes;
	struct directory states[NR_STATES]; /* since the last sync of the directory */
	int nr_states;
	int nr_left;			  /* operations until the power fails */
	size_t write_max;		  /* bytes of one write */
	bool fsync_file, fsync_directory; /* false: the call does nothing */
} disk;

static const char content_old[] = "the old content", content_new[] = "the new one";

static bool powered(void)
{
	errno = EIO;
	return disk.nr_left-- > 0;
}

static struct directory *directory_now(void)
{
	return &disk.states[disk.nr_states - 1];
}

static struct directory *directory_change(void)
{
	assert_true(disk.nr_states < NR_STATES);
	disk.states[disk.nr_states] = disk.states[disk.nr_states - 1];
	return &disk.states[disk.nr_states++];
}

static int name_of(const char *path)
{
	for (int i = 0; i < NR_NAMES; i++)
		if (strcmp(path, names[i]) == 0)
			return i;
	fail_msg("the save uses an unexpected name: %s", path);
	return -1;
}

static int disk_open(const char *path, int flags, mode_t mode)
{
	int name;

	if (!powered())
		return -1;
	if (flags & O_DIRECTORY) {
		assert_string_equal(path, "/db");
		return DIRECTORY_FD;
	}
	name = name_of(path);
	assert_int_equal(flags & (O_CREAT | O_EXCL), O_CREAT | O_EXCL);
	if (directory_now()->node[name]) {
		errno = EEXIST;
		return -1;
	}
	assert_true(disk.nr_nodes < NR_NODES);
	directory_change()->node[name] = ++disk.nr_nodes;
	return NODE_FD + disk.nr_nodes;
}

static ssize_t disk_write(int fd, const void *data, size_t size)
{
	__typeof__(disk.node[0]) *node = &disk.node[fd - NODE_FD - 1];

	if (!powered())
		return -1;
	size = size < disk.write_max ? size : disk.write_max;
	assert_true(node->size + size <= NODE_BYTES);
	memcpy(node->data + node->size, data, size);
	node->size += size;
	node->synced = false;
	return (ssize_t)size;
}

static int disk_fsync(int fd)
{
	if (!powered())
		return -1;
	if (fd == DIRECTORY_FD) {
		if (disk.fsync_directory) {
			disk.states[0] = *directory_now();
			disk.nr_states = 1;
		}
	} else if (disk.fsync_file) {
		disk.node[fd - NODE_FD - 1].synced = true;
	}
	return 0;
}

static int disk_close(int fd)
{
	return powered() ? 0 : -1;
}

static int disk_rename(const char *from, const char *to)
{
	struct directory *d;

	if (!powered())
		return -1;
	d = directory_change();
	d->node[name_of(to)] = d->node[name_of(from)];
	d->node[name_of(from)] = 0;
	return 0;
}

static int disk_unlink(const char *path)
{
	if (!powered())
		return -1;
	directory_change()->node[name_of(path)] = 0;
	return 0;
}

static const struct file_ops disk_ops = {
	.open = disk_open,
	.write = disk_write,
	.fsync = disk_fsync,
	.close = disk_close,
	.rename = disk_rename,
	.unlink = disk_unlink,
};

/* Starts with the old content on disk, and optionally the temporary file of a killed save. */
static void disk_reset(bool leftover, bool fsync_file, bool fsync_directory)
{
	disk = (struct disk){ .nr_nodes = 1,
			      .nr_states = 1,
			      .write_max = 4,
			      .fsync_file = fsync_file,
			      .fsync_directory = fsync_directory };
	disk.node[0].size = sizeof(content_old);
	disk.node[0].synced = true;
	memcpy(disk.node[0].data, content_old, sizeof(content_old));
	disk.states[0].node[0] = 1;
	if (leftover)
		disk.states[0].node[1] = ++disk.nr_nodes;
}

static bool node_holds(int node, const char *content, size_t size)
{
	return node > 0 && disk.node[node - 1].synced && disk.node[node - 1].size == size &&
	       memcmp(disk.node[node - 1].data, content, size) == 0;
}

/* Checks that every possible disk state after the power loss has the old or new content. */
static bool disk_is_safe(bool saved)
{
	for (int i = 0; i < disk.nr_states; i++) {
		int node = disk.states[i].node[0];

		if (node_holds(node, content_new, sizeof(content_new)))
			continue;
		if (saved || !node_holds(node, content_old, sizeof(content_old)))
			return false;
	}
	return true;
}

/* Cuts the power after 0, 1, 2, ... operations and counts the unsafe results. */
static int count_losses(bool leftover, bool fsync_file, bool fsync_directory)
{
	bool saved = false;
	int nr_losses = 0;

	for (int nr = 0; !saved; nr++) {
		assert_true(nr < 100);
		disk_reset(leftover, fsync_file, fsync_directory);
		disk.nr_left = nr;
		saved = file_save(&disk_ops, names[0], content_new, sizeof(content_new), 0600) == 0;
		/* The last operation is the close() of the directory, which may fail. */
		nr_losses += !disk_is_safe(saved);
	}
	return nr_losses;
}

static void test_power_loss_at_every_operation(void **state)
{
	assert_int_equal(count_losses(false, true, true), 0);
	assert_int_equal(count_losses(true, true, true), 0);
}

/* The model must detect a missing sync. Otherwise, the test above proves nothing. */
static void test_the_model_notices_missing_syncs(void **state)
{
	assert_true(count_losses(false, false, true) > 0);
	assert_true(count_losses(false, true, false) > 0);
}

struct content {
	u8 data[NODE_BYTES];
	size_t size;
};

static u64 nr_replays = 1000, nr_cut; /* replays, and those whose save did not end */

static u32 chance(u64 *seed, u32 below)
{
	return (u32)(random_next(seed) >> 32) % below;
}

static void make_content(u64 *seed, struct content *ret)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	struct procdb_record seen = record_of(1, 1000000 + chance(seed, 1000), 1000);
	u32 nr = 1 + chance(seed, NR_PROFILES);

	config.capacity = NR_PROFILES;
	CLEANUP_DB struct procdb *db = db_make(config);
	for (u32 i = 0; i < nr; i++) {
		struct procdb_key key = key_numbered(chance(seed, 1000));

		assert_int_equal(procdb_merge(db, &key, 0, &seen, EPOCH_S), 0);
	}
	assert_int_equal(procdb_encode(db, ret->data, sizeof(ret->data), &ret->size), 0);
}

/* Whatever a file system may leave of data that was not synced. */
static void damage(u64 *seed, int node)
{
	for (size_t at = 0; at < disk.node[node].size; at += BLOCK_BYTES)
		switch (chance(seed, 3)) {
		case 0: memset(&disk.node[node].data[at], 0, BLOCK_BYTES); break;
		case 1: memset(&disk.node[node].data[at], (int)chance(seed, 256), BLOCK_BYTES);
		}
	disk.node[node].size = chance(seed, (u32)disk.node[node].size + 1);
	disk.node[node].synced = true;
}

/* The power fails: one of the possible states of the directory is on the disk from now on. */
static void lose_power(u64 *seed)
{
	static struct disk after;
	struct directory left = disk.states[chance(seed, (u32)disk.nr_states)];

	after = (struct disk){ .nr_states = 1,
			       .write_max = disk.write_max,
			       .fsync_file = disk.fsync_file,
			       .fsync_directory = disk.fsync_directory };
	for (int i = 0; i < NR_NAMES; i++) {
		int node = left.node[i] - 1;

		if (node < 0)
			continue;
		if (!disk.node[node].synced)
			damage(seed, node);
		after.node[after.nr_nodes] = disk.node[node];
		after.states[0].node[i] = ++after.nr_nodes;
	}
	disk = after;
}

static bool disk_has(const struct content *content)
{
	return node_holds(disk.states[0].node[0], (const char *)content->data, content->size);
}

/* zerneld starts: what is on the disk must be a sound database. */
static bool is_sound(void)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	struct procdb_report report;
	int node = disk.states[0].node[0] - 1;

	config.capacity = NR_PROFILES;
	CLEANUP_DB struct procdb *db = db_make(config);
	return node >= 0 &&
	       procdb_decode(db, disk.node[node].data, disk.node[node].size, EPOCH_S, &report) == 0;
}

/* Saves until the power fails, each time on the disk that the last failure left. */
static u64 count_bad_replays(u64 nr, bool fsync_file, bool fsync_directory)
{
	static struct content old, fresh;
	u64 seed = 1, nr_bad = 0;

	disk_reset(false, fsync_file, fsync_directory);
	make_content(&seed, &old);
	memcpy(disk.node[0].data, old.data, old.size);
	disk.node[0].size = old.size;
	for (u64 i = 0; i < nr; i++) {
		bool is_saved;

		make_content(&seed, &fresh);
		disk.write_max = 1 + chance(&seed, NODE_BYTES);
		disk.nr_left = (int)chance(&seed, SAVE_CALLS_MAX);
		is_saved = file_save(&disk_ops, names[0], fresh.data, fresh.size, 0600) == 0;
		nr_cut += !is_saved;
		lose_power(&seed);
		nr_bad += !is_sound() || !(disk_has(&fresh) || (!is_saved && disk_has(&old)));
		if (!disk_has(&old))
			old = fresh;
		if (!is_sound())
			return nr_bad;
	}
	return nr_bad;
}

static void test_random_replays(void **state)
{
	assert_int_equal(count_bad_replays(nr_replays, true, true), 0);
	print_message("# %llu replays, %llu of them during a save: the old or the new content\n",
		      nr_replays, nr_cut);
	assert_true(nr_cut > nr_replays / 4);
}

static void test_random_replays_notice_missing_syncs(void **state)
{
	assert_true(count_bad_replays(nr_replays, false, true) > 0);
	assert_true(count_bad_replays(nr_replays, true, false) > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_loss_at_every_operation),
		cmocka_unit_test(test_the_model_notices_missing_syncs),
		cmocka_unit_test(test_random_replays),
		cmocka_unit_test(test_random_replays_notice_missing_syncs),
	};

	if (argc > 1)
		nr_replays = strtoull(argv[1], NULL, 10);

	return cmocka_run_group_tests_name("power loss", tests, NULL, NULL);
}
