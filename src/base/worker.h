/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One thread that makes the blocking calls of an event loop, in the order of worker_push(). The
 * loop keeps all state. It must not change what a job points to until worker_pop() returns the
 * job.
 */
#include <stdbool.h>
#include "abi/types.h"
#include "base/macros.h"

struct worker;

/* Runs in the thread. The result is passed on by worker_pop(). */
typedef int (*worker_fn)(void *ctx, const void *job);

/* `nr_max` is the maximum number of jobs between worker_push() and worker_pop(). */
int worker_new(u32 nr_max, worker_fn run, void *ctx, struct worker **ret);
/* Waits for the running job. Jobs that have not begun are dropped. */
struct worker *worker_free(struct worker *worker);
DEFINE_CLEANUP(struct worker, worker_free);

/*
 * Starts the thread, unless it has been started. Separate from worker_new(), because a thread
 * keeps the capabilities that its creator drops later.
 */
int worker_start(struct worker *worker);
/* No more jobs begin. -ETIMEDOUT: a job is still running; the worker must not be freed. */
int worker_stop(struct worker *worker, u64 timeout_ns);

/* -ENOSPC: there are `nr_max` jobs. */
int worker_push(struct worker *worker, const void *job);
/* Returns the next job that has ended, or false. */
bool worker_pop(struct worker *worker, const void **ret_job, int *ret_result);
/* Readable when worker_pop() has a job to return. */
int worker_fd(const struct worker *worker);
/* Waits until all jobs have ended. The thread must have been started and not stopped. */
void worker_wait(struct worker *worker);
