/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the discovery tests: files, child processes that map libraries, and a record of
 * attachments.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "collect/library.h"

#define FILE_BYTES_MAX (64UL << 20)

#define CLEANUP_SET CLEANUP(library_set_free_cleanup)

/* Records the calls of struct library_ops. */
struct recorder {
	u32 nr_torch;
	int nr_attached, nr_detached;
	int fail_with;	      /* result of the next attach, if not 0 */
	int later;	      /* 0, or LIBRARY_LATER: the test calls library_set_done() */
	struct stat attached; /* the last attached file */
	struct library last;
	int nr_extra_here;		      /* libraries whose extra calls are attached */
	int nr_collective, nr_not_collective; /* number of calls of collective() */
	bool holds_gpu;			      /* result of holds_gpu() */
	int nr_looks;			      /* number of calls of holds_gpu() */
	u32 nr_fds;			      /* result of nr_fds() */
};

static inline int record_attach(void *ctx, const struct library *library)
{
	struct recorder *recorder = ctx;

	if (recorder->fail_with)
		return recorder->fail_with;
	/* The path must lead to the file while attach() runs. */
	assert_int_equal(stat(library->path, &recorder->attached), 0);
	recorder->last = *library;
	recorder->nr_attached++;
	recorder->nr_extra_here += library->has_extra;
	return recorder->later;
}

static inline int record_detach(void *ctx, const struct library *library)
{
	struct recorder *recorder = ctx;

	recorder->nr_detached++;
	return recorder->later;
}

/* The libraries without users were unused for long enough. */
static inline void drop_unused(struct library_set *set)
{
	library_set_drop_unused(set, 1);
	library_set_drop_unused(set, 1 + LIBRARY_KEEP_NS);
}

static inline int record_extra(void *ctx, const struct library *library)
{
	struct recorder *recorder = ctx;
	struct stat st;

	assert_int_equal(stat(library->path, &st), 0);
	if (recorder->fail_with)
		return recorder->fail_with;
	recorder->nr_extra_here += library->has_extra ? 1 : -1;
	return recorder->later;
}

static inline void record_collective(void *ctx, int pidfd, bool is_mapped)
{
	struct recorder *recorder = ctx;

	recorder->nr_collective += is_mapped;
	recorder->nr_not_collective += !is_mapped;
}

static inline bool record_holds_gpu(void *ctx, pid_t pid, int pidfd)
{
	struct recorder *recorder = ctx;

	recorder->nr_looks++;
	return recorder->holds_gpu;
}

static inline u32 record_fds(void *ctx, const struct library_probes *probes)
{
	const struct recorder *recorder = ctx;

	return recorder->nr_fds;
}

static const struct library_ops recorder_ops = { .attach = record_attach,
						 .detach = record_detach,
						 .nr_fds = record_fds,
						 .set_extra = record_extra,
						 .collective = record_collective,
						 .holds_gpu = record_holds_gpu };

/* Writes new content to a file; an existing file keeps its inode. */
static inline void copy_file(const char *from, const char *to)
{
	CLEANUP_FD int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	CLEANUP_FREE void *data = NULL;
	size_t size = 0;

	assert_true(fd >= 0);
	assert_int_equal(file_read(from, FILE_BYTES_MAX, &data, &size), 0);
	assert_int_equal(write(fd, data, size), size);
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A running fixture, with its input and its output. */
struct child {
	pid_t pid;
	FILE *to, *from;
};

static inline struct child child_start(const char *program)
{
	int in[2], out[2];
	struct child child;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child.pid = fork();
	if (child.pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl(program, program, NULL);
		_exit(127);
	}
	assert_true(child.pid > 0);
	close(in[0]);
	close(out[1]);
	child.to = fdopen(in[1], "w");
	child.from = fdopen(out[0], "r");
	return child;
}

/* Sends a command and copies the answer. Returns the start time of the command. */
static inline long long child_ask(struct child *child, char *answer, size_t size,
				  const char *format, ...)
{
	char line[2048];
	long long time_ns = 0;
	va_list arguments;
	int used = 0;

	va_start(arguments, format);
	vfprintf(child->to, format, arguments);
	va_end(arguments);
	fputc('\n', child->to);
	fflush(child->to);
	assert_non_null(fgets(line, sizeof(line), child->from));
	line[strcspn(line, "\n")] = '\0';
	assert_int_equal(sscanf(line, "%lld %n", &time_ns, &used), 1);
	snprintf(answer, size, "%s", line + used);
	return time_ns;
}

#define child_do(child, ...)                                                                       \
	do {                                                                                       \
		char child_answer[256];                                                            \
		child_ask(child, child_answer, sizeof(child_answer), __VA_ARGS__);                 \
		assert_string_equal(child_answer, "ok");                                           \
	} while (0)

static inline void child_end(struct child *child)
{
	fclose(child->to);
	fclose(child->from);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}
