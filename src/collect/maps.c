/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include "base/cleanup.h"

/* Space for several lines of maximum length: a path and about 80 bytes before it. */
#define BUFFER_BYTES 32768
/* Larger than the maps file of any process. */
#define READ_MAX     (1UL << 28)

static const char deleted[] = " (deleted)";

struct cursor {
	const char *at, *end;
};

static bool take_char(struct cursor *cursor, char wanted)
{
	if (cursor->at == cursor->end || *cursor->at != wanted)
		return false;
	cursor->at++;
	return true;
}

static bool take_number(struct cursor *cursor, u32 base, u64 *ret)
{
	const char *first = cursor->at;
	u64 value = 0;

	for (; cursor->at < cursor->end; cursor->at++) {
		char c = *cursor->at;
		u32 digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : 16;

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(value, (u64)base, &value) ||
		    __builtin_add_overflow(value, (u64)digit, &value))
			return false;
	}
	*ret = value;
	return cursor->at > first;
}

int maps_parse_line(const char *line, size_t length, struct mapping *ret)
{
	struct cursor cursor = { line, line + length };
	u64 start, end, offset, major, minor, inode;
	const char *permissions;
	size_t size;

	if (!take_number(&cursor, 16, &start) || !take_char(&cursor, '-') ||
	    !take_number(&cursor, 16, &end) || !take_char(&cursor, ' '))
		return -EINVAL;
	permissions = cursor.at;
	if (cursor.end - cursor.at < 5)
		return -EINVAL;
	cursor.at += 4;
	if (!take_char(&cursor, ' ') || !take_number(&cursor, 16, &offset) ||
	    !take_char(&cursor, ' ') || !take_number(&cursor, 16, &major) ||
	    !take_char(&cursor, ':') || !take_number(&cursor, 16, &minor) ||
	    !take_char(&cursor, ' ') || !take_number(&cursor, 10, &inode) || major > UINT_MAX ||
	    minor > UINT_MAX || start >= end)
		return -EINVAL;
	while (take_char(&cursor, ' '))
		;
	size = (size_t)(cursor.end - cursor.at);
	if (!inode || !size || *cursor.at != '/')
		return -ENOENT;
	if (size > strlen(deleted) &&
	    !memcmp(cursor.end - strlen(deleted), deleted, strlen(deleted)))
		size -= strlen(deleted);
	if (size >= sizeof(ret->path) || memchr(cursor.at, '\0', size))
		return -EINVAL;

	ret->start = start;
	ret->end = end;
	ret->major = (u32)major;
	ret->minor = (u32)minor;
	ret->inode = inode;
	ret->offset = offset;
	ret->is_code = permissions[2] == 'x';
	ret->is_writable = permissions[1] == 'w';
	memcpy(ret->path, cursor.at, size);
	ret->path[size] = '\0';
	return 0;
}

/* Handles each complete line. Returns the bytes used, or the negative result of `fn`. */
static ssize_t take_lines(const char *buffer, size_t size, maps_fn fn, void *ctx)
{
	struct mapping mapping;
	size_t used = 0;
	const char *end;

	while ((end = memchr(buffer + used, '\n', size - used))) {
		const char *line = buffer + used;
		int err = maps_parse_line(line, (size_t)(end - line), &mapping);

		if (!err)
			err = fn(ctx, &mapping);
		else
			err = 0;
		if (err < 0)
			return err;
		used = (size_t)(end - buffer) + 1;
	}
	return (ssize_t)used;
}

static int read_lines(int fd, char *buffer, maps_fn fn, void *ctx)
{
	size_t have = 0;

	for (size_t total = 0; total < READ_MAX;) {
		ssize_t n = read(fd, buffer + have, BUFFER_BYTES - have), used;

		if (n < 0 && errno == EINTR)
			continue;
		/* A process that exits during the read has no mappings left. */
		if (n < 0)
			return errno == ESRCH ? 0 : -errno;
		if (n == 0)
			return 0;
		total += (size_t)n;
		have += (size_t)n;
		used = take_lines(buffer, have, fn, ctx);
		if (used < 0)
			return (int)used;
		have -= (size_t)used;
		memmove(buffer, buffer + used, have);
		/* The kernel writes no line of this length; discard it. */
		if (have == BUFFER_BYTES)
			have = 0;
	}
	return -EFBIG;
}

int maps_read(const char *proc, pid_t pid, maps_fn fn, void *ctx)
{
	CLEANUP_FREE char *buffer = NULL;
	char path[PATH_MAX];
	CLEANUP_FD int fd = -EBADF;

	snprintf(path, sizeof(path), "%s/%d/maps", proc, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	buffer = malloc(BUFFER_BYTES);
	if (!buffer)
		return -ENOMEM;
	return read_lines(fd, buffer, fn, ctx);
}
