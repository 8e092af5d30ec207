/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the tests that run on the machine's own kernel. They only attach to their own
 * libraries and processes, and never to the scheduler.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "collect/kernel_internal.h"

/*
 * These tests never attach the scheduler, whose programs take two fifths of the time of a load: in
 * an emulated guest, many seconds for each test.
 */
u32 __real_features_missing(const struct btf *btf);
u32 __wrap_features_missing(const struct btf *btf);

u32 __wrap_features_missing(const struct btf *btf)
{
	return __real_features_missing(btf) | 1U << FEATURE_SCHEDULER;
}

static inline void native_log(const char *text)
{
	print_message("# %s\n", text);
}

/* Loads the BPF programs; skips the test if the kernel does not allow that. */
static inline struct kernel *native_kernel(void)
{
	struct kernel *kernel = NULL;
	int err = kernel_new(native_log, &kernel);

	if (err == -EPERM || err == -EACCES) {
		print_message("# skipped: cannot load BPF programs: %s\n", strerror(-err));
		skip();
	}
	assert_int_equal(err, 0);
	return kernel;
}

/* Returns a library to attach to: all calls of the runtime in the file, or only `call`. */
static inline struct library native_library(const char *path, enum runtime runtime, int call)
{
	struct library library = { .runtime = runtime, .has_extra = true, .fd = -1 };
	struct library_probes all;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	library.fd = fd;
	snprintf(library.name, sizeof(library.name), "%s", path);
	snprintf(library.path, sizeof(library.path), "/proc/self/fd/%d", fd);
	assert_int_equal(library_resolve(fd, runtime, false, &all, &(u64){ 0 }), 0);
	for (u32 i = 0; i < all.nr; i++)
		if (call < 0 || all.probe[i].call == (u32)call)
			library.probes.probe[library.probes.nr++] = all.probe[i];
	assert_true(library.probes.nr > 0);
	return library;
}

/* Returns the state that the BPF programs have of the process. */
static inline struct process_state native_state(struct kernel *kernel, pid_t pid)
{
	struct process_state state = {};
	struct kernel_snapshot snapshot;

	assert_int_equal(kernel_snapshot_read(kernel, &snapshot), 0);
	for (u32 i = 0; i < snapshot.nr_processes; i++)
		if (snapshot.processes[i].task.pid == (u32)pid)
			state = snapshot.processes[i];
	kernel_snapshot_done(&snapshot);
	return state;
}

static inline int native_compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/* Sorts the values and returns the quantile. */
static inline u64 native_quantile(u64 *values, u32 nr, u32 permille)
{
	qsort(values, nr, sizeof(*values), native_compare);
	return values[(u64)nr * permille / 1000 < nr ? (u64)nr * permille / 1000 : nr - 1];
}
