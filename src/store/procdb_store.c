/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/procdb_store.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include "base/cleanup.h"
#include "base/file.h"

/* The file shows which programs users run, so only its owner may read it. */
#define FILE_MODE (S_IRUSR | S_IWUSR)

int procdb_store_lock(const char *path, int *ret_fd)
{
	CLEANUP_FREE char *name = NULL;
	CLEANUP_FD int fd = -EBADF;

	if (asprintf(&name, "%s.lock", path) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int procdb_store_load(struct procdb *db, const char *path, u64 now_s,
		      struct procdb_report *ret_report)
{
	CLEANUP_FREE void *data = NULL;
	size_t size;
	int err = file_read(path, PROCDB_FILE_SIZE_MAX, &data, &size);

	if (err < 0)
		return err;
	return procdb_decode(db, data, size, now_s, ret_report);
}

int procdb_store_save(const struct procdb *db, const char *path)
{
	size_t size = procdb_encoded_size(db);
	CLEANUP_FREE void *data = malloc(size);
	int err;

	if (!data)
		return -ENOMEM;
	err = procdb_encode(db, data, size, &size);
	if (err < 0)
		return err;
	return file_save(&file_ops_system, path, data, size, FILE_MODE);
}

int procdb_store_save_v2(const struct procdb *db, const char *path, size_t *ret_nr)
{
	CLEANUP_FREE void *data = NULL;
	size_t size;
	int err = procdb_encode_v2(db, &data, &size, ret_nr);

	if (err < 0)
		return err;
	return file_save(&file_ops_system, path, data, size, FILE_MODE);
}
