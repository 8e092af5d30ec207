/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading. A killed writer can leave holes (slots that were claimed but never
 * published), so every slot is read. Ranges that are holes in the file system are
 * skipped, because a log file has room for far more records than it gets.
 */
#include "truth/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_RECORDS 4096

static int record_cmp(const void *left, const void *right)
{
	const struct truth_record *l = left, *r = right;

	if (l->start_ns != r->start_ns)
		return l->start_ns < r->start_ns ? -1 : 1;
	if (l->end_ns != r->end_ns)
		return l->end_ns < r->end_ns ? -1 : 1;
	return (int)l->kind - (int)r->kind;
}

/* Reads up to `bytes`; fewer mean the end of the file. */
static ssize_t read_full(int fd, void *buf, size_t bytes, off_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(fd, (char *)buf + done, bytes - done, offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int file_append(struct truth_file *file, u64 *room, const struct truth_record *rec)
{
	if (file->nr_records == *room) {
		u64 more = *room ? *room * 2 : 1024;
		struct truth_record *records = realloc(file->records, more * sizeof(*records));

		if (!records)
			return -ENOMEM;
		file->records = records;
		*room = more;
	}
	file->records[file->nr_records++] = *rec;
	return 0;
}

/* Returns the first slot at or after `slot` that may contain data, or `end`. */
static u64 skip_hole(int fd, u64 slot, u64 end)
{
	off_t at = (off_t)(sizeof(struct truth_header) + slot * sizeof(struct truth_record));
	off_t data = lseek(fd, at, SEEK_DATA);
	u64 next;

	if (data < 0)
		return errno == ENXIO ? end : slot;
	if (data <= at)
		return slot;
	next = ((u64)data - sizeof(struct truth_header)) / sizeof(struct truth_record);
	return next < end ? next : end;
}

static int read_records(int fd, struct truth_file *file)
{
	struct truth_record *chunk;
	u64 room = 0, slot = 0, nr_slots = file->header.capacity;
	int r = 0;

	chunk = malloc(CHUNK_RECORDS * sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	while (r == 0 && (slot = skip_hole(fd, slot, nr_slots)) < nr_slots) {
		u64 want = nr_slots - slot < CHUNK_RECORDS ? nr_slots - slot : CHUNK_RECORDS;
		ssize_t n = read_full(
			fd, chunk, want * sizeof(*chunk),
			(off_t)(sizeof(file->header) + slot * sizeof(struct truth_record)));
		u64 got = n < 0 ? 0 : (u64)n / sizeof(*chunk);

		if (n < 0)
			r = (int)n;
		for (u64 i = 0; i < got && r == 0; i++)
			if (chunk[i].kind != TRUTH_NONE)
				r = file_append(file, &room, &chunk[i]);
		slot += got;
		if (got < want)
			break;
	}
	free(chunk);
	return r;
}

static int header_check(const struct truth_header *header, ssize_t bytes)
{
	if (bytes < 0)
		return (int)bytes;
	if ((size_t)bytes < sizeof(*header) ||
	    memcmp(header->magic, TRUTH_MAGIC, sizeof(header->magic)) != 0)
		return -EBADMSG;
	if (header->version != TRUTH_VERSION || header->record_size != sizeof(struct truth_record))
		return -EPROTONOSUPPORT;
	return 0;
}

int truth_read(const char *path, struct truth_file *ret)
{
	struct truth_file file = {};
	off_t size;
	int r, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	r = header_check(&file.header, read_full(fd, &file.header, sizeof(file.header), 0));
	size = lseek(fd, 0, SEEK_END);
	if (r == 0) {
		file.header.writer[sizeof(file.header.writer) - 1] = '\0';
		file.cut = size < (off_t)(sizeof(file.header) +
					  file.header.capacity * sizeof(struct truth_record));
		r = read_records(fd, &file);
	}
	close(fd);
	if (r < 0) {
		truth_file_done(&file);
		return r;
	}
	if (file.nr_records)
		qsort(file.records, file.nr_records, sizeof(*file.records), record_cmp);
	*ret = file;
	return 0;
}

void truth_file_done(struct truth_file *file)
{
	free(file->records);
	file->records = NULL;
	file->nr_records = 0;
}
