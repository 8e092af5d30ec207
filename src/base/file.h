/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The system calls a save is made of, with the signatures and errno of libc.
 * Tests put their own in to fail, to cut a write short or to die at any of
 * them; everyone else passes &file_ops_system.
 */
struct file_ops {
	int (*open)(const char *path, int flags, mode_t mode);
	ssize_t (*write)(int fd, const void *data, size_t size);
	int (*fsync)(int fd);
	int (*close)(int fd);
	int (*rename)(const char *from, const char *to);
	int (*unlink)(const char *path);
};

extern const struct file_ops file_ops_system;

/*
 * Read until the end or until the buffer is full, and return the number of bytes. The first
 * goes on from where the descriptor is, the second starts at `offset` and does not move it.
 */
ssize_t file_read_fd(int fd, void *buffer, size_t size);
ssize_t file_read_at(int fd, off_t offset, void *buffer, size_t size);

/*
 * The beginning of a small file, as in /proc, as text with a terminating zero that does not
 * count. What does not fit is cut.
 */
ssize_t file_read_text(const char *path, char *text, size_t size);

/*
 * All that a BPF iterator tells, whatever its size; the caller frees *ret_data. A kernel that
 * passed many objects over without a record says EAGAIN, and is asked again.
 */
int file_read_iterator(int fd, void **ret_data, size_t *ret_size);

/*
 * Reads a whole regular file of at most `max_size` bytes; the caller frees
 * *ret_data. -EFBIG when it is larger, -EINVAL when it is not a regular file.
 */
int file_read(const char *path, size_t max_size, void **ret_data, size_t *ret_size);

/* The decimal number that a small file, as in sysfs, begins with; -ENODATA when there is none. */
int file_read_number(const char *path, uint64_t *ret);

/*
 * Replaces the content of `path` so that a crash or power loss at any instant
 * leaves the old or the new content, whole. One process at a time may save a
 * given path: the temporary file next to it has a fixed name, and one that a
 * killed save left behind is replaced.
 */
int file_save(const struct file_ops *ops, const char *path, const void *data, size_t size,
	      mode_t mode);

/*
 * Renames a file that cannot be used to PATH.bad-<n>, with the first free n, so
 * that nobody overwrites it. The caller frees *ret_name and reports it.
 */
int file_set_aside(const struct file_ops *ops, const char *path, char **ret_name);
