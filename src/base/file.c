/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* Maximum number of files to set aside for one path. After that, an operator must clean up. */
#define SET_ASIDE_MAX  100
/* Initial buffer size for the output of an iterator. The size doubles as needed. */
#define ITERATOR_FIRST (64UL << 10)

static int system_open(const char *path, int flags, mode_t mode)
{
	return open(path, flags, mode);
}

const struct file_ops file_ops_system = {
	.open = system_open,
	.write = write,
	.fsync = fsync,
	.close = close,
	.rename = rename,
	.unlink = unlink,
};

/* No offset for fill(): read() continues at the position of the descriptor. */
#define FROM_HERE (-1)

/*
 * All functions that read use this loop. It reads until the end or until the buffer is full.
 * *done counts the bytes in the buffer and is also correct after a failure.
 */
static int fill(int fd, off_t offset, char *buffer, size_t size, size_t *done)
{
	while (*done < size) {
		ssize_t n = offset == FROM_HERE ? read(fd, buffer + *done, size - *done)
						: pread(fd, buffer + *done, size - *done,
							offset + (off_t)*done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*done += (size_t)n;
	}
	return 0;
}

ssize_t file_read_fd(int fd, void *buffer, size_t size)
{
	size_t done = 0;
	int err = fill(fd, FROM_HERE, buffer, size, &done);

	return err < 0 ? err : (ssize_t)done;
}

ssize_t file_read_at(int fd, off_t offset, void *buffer, size_t size)
{
	size_t done = 0;
	int err = fill(fd, offset, buffer, size, &done);

	return err < 0 ? err : (ssize_t)done;
}

ssize_t file_read_text(const char *path, char *text, size_t size)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : file_read_fd(fd, text, size - 1);

	if (fd >= 0)
		text[n < 0 ? 0 : n] = '\0';
	return n;
}

int file_read_iterator(int fd, void **ret_data, size_t *ret_size)
{
	size_t size = 0, capacity = ITERATOR_FIRST;
	CLEANUP_FREE char *data = malloc(capacity);

	while (data) {
		int err = fill(fd, FROM_HERE, data, capacity, &size);
		char *larger;

		if (err == -EAGAIN)
			continue;
		if (err < 0)
			return err;
		if (size < capacity) {
			*ret_data = TAKE_PTR(data);
			*ret_size = size;
			return 0;
		}
		larger = realloc(data, capacity *= 2);
		if (!larger)
			return -ENOMEM;
		data = larger;
	}
	return -ENOMEM;
}

int file_read(const char *path, size_t max_size, void **ret_data, size_t *ret_size)
{
	/* Without O_NONBLOCK, open() would hang on a FIFO at this path. */
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	CLEANUP_FREE void *data = NULL;
	struct stat st;
	size_t room;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > max_size)
		return -EFBIG;

	/* One extra byte shows whether the file grew after fstat(). */
	room = (size_t)st.st_size + 1;
	data = malloc(room);
	if (!data)
		return -ENOMEM;
	n = file_read_fd(fd, data, room);
	if (n < 0)
		return (int)n;
	if ((size_t)n == room)
		return -EAGAIN;

	*ret_data = TAKE_PTR(data);
	*ret_size = (size_t)n;
	return 0;
}

int file_read_number(const char *path, uint64_t *ret)
{
	CLEANUP_FREE void *data = NULL;
	char text[32] = "";
	uint64_t value;
	size_t size;
	int err;

	/* sysfs always reports a size of one page. */
	err = file_read(path, 4096, &data, &size);
	if (err < 0)
		return err;
	memcpy(text, data, size < sizeof(text) - 1 ? size : sizeof(text) - 1);
	if (text[0] < '0' || text[0] > '9')
		return -ENODATA;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (errno)
		return -errno;
	*ret = value;
	return 0;
}

static int write_all(const struct file_ops *ops, int fd, const void *data, size_t size)
{
	const char *next = data;

	while (size > 0) {
		ssize_t n = ops->write(fd, next, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		next += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Always creates the file itself: O_EXCL refuses an existing file and follows no link. */
static int open_exclusive(const struct file_ops *ops, const char *path, mode_t mode)
{
	int fd = ops->open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	return fd < 0 ? -errno : fd;
}

/* Writes and syncs a file that must not exist yet; removes it on failure. */
static int write_new(const struct file_ops *ops, const char *path, const void *data, size_t size,
		     mode_t mode)
{
	int fd, r;

	fd = open_exclusive(ops, path, mode);
	if (fd == -EEXIST) {
		if (ops->unlink(path) < 0)
			return -errno;
		fd = open_exclusive(ops, path, mode);
	}
	if (fd < 0)
		return fd;

	r = write_all(ops, fd, data, size);
	if (r == 0 && ops->fsync(fd) < 0)
		r = -errno;
	if (ops->close(fd) < 0 && r == 0)
		r = -errno;
	if (r < 0)
		(void)ops->unlink(path);
	return r;
}

/* A rename is on disk only after an fsync() of its directory. */
static int sync_directory_of(const struct file_ops *ops, const char *path)
{
	const char *slash = strrchr(path, '/');
	CLEANUP_FREE char *directory = NULL;
	int fd, r = 0;

	if (!slash)
		directory = strdup(".");
	else if (slash == path)
		directory = strdup("/");
	else
		directory = strndup(path, (size_t)(slash - path));
	if (!directory)
		return -ENOMEM;

	fd = ops->open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (ops->fsync(fd) < 0)
		r = -errno;
	(void)ops->close(fd);
	return r;
}

int file_save(const struct file_ops *ops, const char *path, const void *data, size_t size,
	      mode_t mode)
{
	CLEANUP_FREE char *temporary = NULL;
	int r;

	if (asprintf(&temporary, "%s.new", path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	r = write_new(ops, temporary, data, size, mode);
	if (r < 0)
		return r;
	if (ops->rename(temporary, path) < 0) {
		r = -errno;
		(void)ops->unlink(temporary);
		return r;
	}
	return sync_directory_of(ops, path);
}

/* The empty placeholder reserves the name, so the rename overwrites no other file. */
static int rename_to_unused(const struct file_ops *ops, const char *from, const char *to)
{
	int fd, r;

	fd = open_exclusive(ops, to, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return fd;
	(void)ops->close(fd);
	if (ops->rename(from, to) < 0) {
		r = -errno;
		(void)ops->unlink(to);
		return r;
	}
	return sync_directory_of(ops, to);
}

int file_set_aside(const struct file_ops *ops, const char *path, char **ret_name)
{
	for (int i = 1; i <= SET_ASIDE_MAX; i++) {
		CLEANUP_FREE char *name = NULL;
		int r;

		if (asprintf(&name, "%s.bad-%d", path, i) < 0) {
			name = NULL;
			return -ENOMEM;
		}
		r = rename_to_unused(ops, path, name);
		if (r == -EEXIST)
			continue;
		if (r < 0)
			return r;
		*ret_name = TAKE_PTR(name);
		return 0;
	}
	return -EEXIST;
}

int file_beside_program(const char *relative, char *ret, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", ret, size);
	const char *slash;

	if (length < 0)
		return -errno;
	slash = memrchr(ret, '/', (size_t)length);
	if (!slash || (size_t)(slash - ret) + 1 + strlen(relative) >= size)
		return -ENAMETOOLONG;
	strcpy(ret + (slash - ret) + 1, relative);
	return 0;
}
