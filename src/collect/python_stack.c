/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/python_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/python_scan.h"

/* Reads of the stack of a thread that runs. */
#define TRIES 8

struct reader {
	int fd; /* the memory of the process */
	struct python_memory memory;
	struct python_scan python;
	u32 native_id; /* the thread ID that the process itself knows */
};

static long read_memory(void *ctx, void *to, u32 size, u64 from)
{
	const struct reader *reader = ctx;

	return file_read_at(reader->fd, (off_t)from, to, size) == (ssize_t)size ? 0 : -EFAULT;
}

static int read_part(void *ctx, const struct python_frame *frame, u32 part, struct python_code *ret)
{
	const struct reader *reader = ctx;

	return python_code_read(&reader->memory, &reader->python.offsets, frame->code, part, ret)
		       ? 0
		       : -EFAULT;
}

/* The user, if the process has the rights of no other one, and the innermost thread ID. */
static int read_status(const char *proc, pid_t tid, u32 *ret_uid, u32 *ret_native_id)
{
	char path[PATH_MAX], text[4096];
	const char *ids, *end;
	u32 real, effective, saved;

	snprintf(path, sizeof(path), "%s/%d/status", proc, tid);
	if (file_read_text(path, text, sizeof(text)) <= 0)
		return -ESRCH;
	ids = strstr(text, "\nUid:");
	if (!ids || sscanf(ids, "\nUid: %u %u %u", &real, &effective, &saved) != 3)
		return -EBADMSG;
	if (real != effective || real != saved)
		return -EACCES;
	ids = strstr(text, "\nNSpid:");
	end = ids ? strchr(ids + 1, '\n') : NULL;
	if (!end)
		return -EBADMSG;
	/* The last number of the line. */
	while (end > ids && end[-1] != '\t' && end[-1] != ' ')
		end--;
	*ret_native_id = (u32)strtoul(end, NULL, 10);
	*ret_uid = real;
	return 0;
}

/*
 * The kernel gives the files of a process to root if its user may not read its memory, for example
 * because it had the rights of another user.
 */
static int open_memory(const char *proc, pid_t tid, u32 uid)
{
	char path[PATH_MAX];
	CLEANUP_FD int fd = -EBADF;
	struct stat st;

	snprintf(path, sizeof(path), "%s/%d/mem", proc, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == uid ? TAKE_FD(fd) : -EACCES;
}

/* A call that is still open has not moved. The innermost one may have gone on to another line. */
static bool is_same(const struct python_stack *a, const struct python_stack *b)
{
	bool same = a->nr == b->nr && a->is_cut == b->is_cut;

	for (u32 i = 0; same && i < a->nr; i++)
		same = a->frames[i].code == b->frames[i].code &&
		       a->frames[i].lines == b->frames[i].lines &&
		       (i == 0 || a->frames[i].instruction == b->frames[i].instruction);
	return same;
}

static int read_stack(struct reader *reader, struct python_stack *ret)
{
	return python_stack_read(&reader->memory, &reader->python.offsets, reader->python.runtime,
				 reader->native_id, ret);
}

/* The thread runs on meanwhile: only what is the same before and after counts. */
static int read_places(struct reader *reader, struct python_stack stacks[2],
		       struct python_stack_scan *ret)
{
	for (u32 try = 0; try < TRIES; try++) {
		int err = read_stack(reader, &stacks[0]);

		if (err < 0)
			return err;
		for (u32 i = 0; i < stacks[0].nr; i++)
			if (python_place(read_part, reader, &stacks[0].frames[i], &ret->places[i]) <
			    0)
				ret->places[i] = (struct python_place){};
		if (read_stack(reader, &stacks[1]) < 0 || !is_same(&stacks[0], &stacks[1]))
			continue;
		ret->nr = stacks[0].nr;
		ret->is_cut = stacks[0].is_cut;
		return 0;
	}
	return -EAGAIN;
}

int python_stack_scan(const char *proc, pid_t tid, struct python_stack_scan *ret)
{
	struct reader reader = { .memory = { read_memory, &reader } };
	CLEANUP_FREE struct python_stack *stacks = calloc(2, sizeof(*stacks));
	CLEANUP_FD int fd = -EBADF;
	int err;

	if (!stacks)
		return -ENOMEM;
	err = read_status(proc, tid, &ret->uid, &reader.native_id);
	if (err == 0)
		err = python_scan(proc, tid, &(struct python_cost){}, &reader.python);
	if (err < 0)
		return err;
	if (!python_scan_is_valid(&reader.python))
		return -EINVAL;
	fd = open_memory(proc, tid, ret->uid);
	if (fd < 0)
		return fd;
	reader.fd = fd;
	return read_places(&reader, stacks, ret);
}
