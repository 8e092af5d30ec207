/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A job blocks until the test lets it end, so no test depends on time. */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/worker.h"

#define NR_MAX	       4
#define CLEANUP_WORKER CLEANUP(worker_free_cleanup)

struct gate {
	sem_t begun, may_end;
};

static const int jobs[NR_MAX + 1] = { 10, 11, 12, 13, 14 };

static int blocking(void *ctx, const void *job)
{
	struct gate *gate = ctx;

	sem_post(&gate->begun);
	sem_wait(&gate->may_end);
	return -*(const int *)job;
}

static void gate_open(struct gate *gate)
{
	sem_init(&gate->begun, 0, 0);
	sem_init(&gate->may_end, 0, 0);
}

static bool is_readable(struct worker *worker)
{
	struct pollfd fd = { .fd = worker_fd(worker), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/* A worker whose first job blocks at the gate, and whose second job waits. */
static struct worker *blocked_worker(struct gate *gate)
{
	struct worker *worker = NULL;

	gate_open(gate);
	assert_int_equal(worker_new(NR_MAX, blocking, gate, &worker), 0);
	assert_int_equal(worker_push(worker, &jobs[0]), 0);
	assert_int_equal(worker_start(worker), 0);
	sem_wait(&gate->begun);
	assert_int_equal(worker_push(worker, &jobs[1]), 0);
	return worker;
}

static void test_caller_goes_on_while_a_job_blocks(void **state)
{
	struct gate gate;
	CLEANUP_WORKER struct worker *worker = blocked_worker(&gate);
	const void *job = NULL;
	int result = 0;

	assert_false(is_readable(worker));
	assert_false(worker_pop(worker, &job, &result));
	sem_post(&gate.may_end);
	sem_post(&gate.may_end);
	worker_wait(worker);
	for (int i = 0; i < 2; i++) {
		assert_true(is_readable(worker));
		assert_true(worker_pop(worker, &job, &result));
		assert_ptr_equal(job, &jobs[i]);
		assert_int_equal(result, -jobs[i]);
	}
	assert_false(worker_pop(worker, &job, &result));
	assert_false(is_readable(worker));
}

static void test_number_of_jobs_is_bounded(void **state)
{
	CLEANUP_WORKER struct worker *worker = NULL;
	const void *job = NULL;
	struct gate gate;
	int result = 0;

	gate_open(&gate);
	assert_int_equal(worker_new(NR_MAX, blocking, &gate, &worker), 0);
	for (int i = 0; i < NR_MAX; i++)
		assert_int_equal(worker_push(worker, &jobs[i]), 0);
	assert_int_equal(worker_push(worker, &jobs[NR_MAX]), -ENOSPC);
	assert_int_equal(worker_start(worker), 0);
	for (int i = 0; i < NR_MAX; i++)
		sem_post(&gate.may_end);
	worker_wait(worker);
	/* A result occupies its place until it is read. */
	assert_int_equal(worker_push(worker, &jobs[NR_MAX]), -ENOSPC);
	assert_true(worker_pop(worker, &job, &result));
	assert_int_equal(worker_push(worker, &jobs[NR_MAX]), 0);
	sem_post(&gate.may_end);
	worker_wait(worker);
	for (int i = 1; i <= NR_MAX; i++) {
		assert_true(worker_pop(worker, &job, &result));
		assert_ptr_equal(job, &jobs[i]);
	}
}

static void test_stop_waits_with_a_bound(void **state)
{
	struct gate gate;
	CLEANUP_WORKER struct worker *worker = blocked_worker(&gate);
	const void *job = NULL;
	int result = 0;

	assert_int_equal(worker_stop(worker, 0), -ETIMEDOUT);
	sem_post(&gate.may_end);
	assert_int_equal(worker_stop(worker, 60 * NSEC_PER_SEC), 0);
	/* The second job has not begun, and does not begin any more. */
	assert_int_equal(sem_trywait(&gate.begun), -1);
	assert_true(worker_pop(worker, &job, &result));
	assert_false(worker_pop(worker, &job, &result));
}

static void test_never_started(void **state)
{
	CLEANUP_WORKER struct worker *worker = NULL;

	assert_int_equal(worker_new(NR_MAX, blocking, NULL, &worker), 0);
	assert_int_equal(worker_push(worker, &jobs[0]), 0);
	assert_int_equal(worker_stop(worker, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caller_goes_on_while_a_job_blocks),
		cmocka_unit_test(test_number_of_jobs_is_bounded),
		cmocka_unit_test(test_stop_waits_with_a_bound),
		cmocka_unit_test(test_never_started),
	};

	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
