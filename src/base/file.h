/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The system calls that a save uses, with the signatures and errno of libc. Tests pass
 * their own functions to make a call fail, to shorten a write or to exit at any call. All
 * other callers pass &file_ops_system.
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
 * function starts at the position of the descriptor. The second one starts at `offset` and
 * does not change the position.
 */
ssize_t file_read_fd(int fd, void *buffer, size_t size);
ssize_t file_read_at(int fd, off_t offset, void *buffer, size_t size);

/*
 * Reads the beginning of a small file, for example in /proc, as zero-terminated text. Returns
 * the length without the zero. Text that does not fit is truncated.
 */
ssize_t file_read_text(const char *path, char *text, size_t size);

/*
 * Reads the whole output of a BPF iterator; the caller frees *ret_data. The kernel returns
 * EAGAIN when it skipped many objects without a record. Then this function reads again.
 */
int file_read_iterator(int fd, void **ret_data, size_t *ret_size);

/*
 * Reads a whole regular file of at most `max_size` bytes; the caller frees
 * *ret_data. Returns -EFBIG for a larger file and -EINVAL if it is not a regular file.
 */
int file_read(const char *path, size_t max_size, void **ret_data, size_t *ret_size);

/*
 * Reads the decimal number at the beginning of a small file, for example in sysfs. Returns -ENODATA
 * if the file does not begin with a number.
 */
int file_read_number(const char *path, uint64_t *ret);

/*
 * Replaces the content of `path`. After a crash or power loss at any instant, the file has
 * either the complete old or the complete new content. Only one process at a time may save
 * a path, because the temporary file next to it has a fixed name. A temporary file that a
 * killed save left behind is replaced.
 */
int file_save(const struct file_ops *ops, const char *path, const void *data, size_t size,
	      mode_t mode);

/*
 * The path of a file relative to the directory of this program: programs find each other in a build
 * tree and below any prefix.
 */
int file_beside_program(const char *relative, char *ret, size_t size);

/*
 * Renames an unusable file to PATH.bad-<n>, with the first free n, so that no save overwrites
 * it. The caller frees *ret_name and reports it.
 */
int file_set_aside(const struct file_ops *ops, const char *path, char **ret_name);
