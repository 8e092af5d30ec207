/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the tests of the virtual GPU: each executable has its own devices, and in a
 * child a failed check sets the exit status instead of a longjmp.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/types.h>

#include "truth/truth.h"

#define MS NSEC_PER_MSEC

/* Creates devices for this process and its children; harness_end() removes the directory. */
void harness_start(const char *devices, const char *memory_bytes);
int harness_end(int result);
const char *harness_truth_dir(void);

/*
 * Reads the log of the virtual GPU for a process. Its times do not depend on the load of
 * the machine or on the time of the read.
 */
void harness_log(pid_t pid, struct truth_file *ret);
struct work {
	u64 entered_ns, returned_ns; /* the call that queued it */
	u64 start_ns, end_ns;
};
/* Reads the work that this process queued on a stream since then: `nr` pieces, in order. */
void work_read(u64 since_ns, const void *stream, struct work *ret, u32 nr);
/* Checks that the work starts as soon as the device is ready and the call has queued it. */
void work_check(const struct work *work, u64 ready_ns, u64 duration_ns);
/* Returns how long a device was busy for a process in that time. */
u64 work_busy_ns(pid_t pid, u32 device, u64 from_ns, u64 to_ns);

u64 cpu_ns(void); /* of this process */
void sleep_ms(unsigned int ms);

/* Inside a child: prints the failed check and exits. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			child_fail(__FILE__, __LINE__, #cond);                                     \
	} while (0)
_Noreturn void child_fail(const char *file, int line, const char *what);

typedef void (*child_fn)(int index);
pid_t child_start(child_fn fn, int index);
void child_join(pid_t pid);			 /* fails the test if its exit status is not 0 */
void children_run(child_fn fn, unsigned int nr); /* all in parallel, index from 0 */
