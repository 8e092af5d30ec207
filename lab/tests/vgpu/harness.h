/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the virtual GPU's tests: a private set of devices per executable,
 * and children in which a check that fails is an exit status, not a jump.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/types.h>

#include "truth/truth.h"

#define MS NSEC_PER_MSEC

/* Fresh devices for this process and its children; the directory goes in the end. */
void harness_start(const char *devices, const char *memory_bytes);
int harness_end(int result);
const char *harness_truth_dir(void);

/*
 * What the device did, from the log the virtual GPU keeps of a process. Its times
 * do not depend on how busy the machine is, or when we come to ask.
 */
void harness_log(pid_t pid, struct truth_file *ret);
struct work {
	u64 entered_ns, returned_ns; /* of the call that queued it */
	u64 start_ns, end_ns;
};
/* What this process queued on a stream since then: `nr` pieces, in order. */
void work_read(u64 since_ns, const void *stream, struct work *ret, u32 nr);
/* Begins when the device is ready, or when it is told to, if that is later. */
void work_check(const struct work *work, u64 ready_ns, u64 duration_ns);
/* How long a device worked for a process in that time. */
u64 work_busy_ns(pid_t pid, u32 device, u64 from_ns, u64 to_ns);

u64 cpu_ns(void); /* of this process */
void sleep_ms(unsigned int ms);

/* Inside a child: says which check failed and gives up. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			child_fail(__FILE__, __LINE__, #cond);                                     \
	} while (0)
_Noreturn void child_fail(const char *file, int line, const char *what);

typedef void (*child_fn)(int index);
pid_t child_start(child_fn fn, int index);
void child_join(pid_t pid);			 /* fails the test unless it ended well */
void children_run(child_fn fn, unsigned int nr); /* all at once, index from 0 */
