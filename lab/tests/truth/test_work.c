/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the common code of the workloads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "support/timing.h"
#include "work/ring.h"
#include "work/burn.h"
#include "work/did.h"
#include "work/phases.h"
#include "work/process.h"

static void test_burn_is_cpu_time(void **state)
{
	const struct burn burn = burn_calibrate();
	static const u64 sizes_ns[] = { 5000, 100000, 3000000 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes_ns); i++) {
		u64 start = thread_cpu_ns(), spent;

		burn_ns(&burn, sizes_ns[i]);
		spent = thread_cpu_ns() - start;
		assert_true(spent >= sizes_ns[i]);
		timing_assert(spent <= 2 * sizes_ns[i] + 200000);
	}
}

static void test_random_depends_on_seed_and_index_only(void **state)
{
	u64 sum = 0;

	for (u64 i = 0; i < 10000; i++) {
		u64 value = random_around(1000, 1, i);

		assert_in_range(value, 800, 1200);
		assert_int_equal(value, random_around(1000, 1, i));
		sum += value;
	}
	assert_in_range(sum / 10000, 990, 1010);
	assert_int_not_equal(random_at(1, 2), random_at(2, 2));
	assert_int_not_equal(random_at(1, 2), random_at(1, 3));
}

static void test_phases_have_no_gaps_and_bursts_end(void **state)
{
	static const struct {
		enum phase phase;
		u64 at_ms, end_ms;
	} expected[] = {
		{ PHASE_GPU_COMPUTE, 0, 10 },  { PHASE_OPTIMIZER, 10, 14 },
		{ PHASE_GPU_COMPUTE, 14, 20 }, { PHASE_OPTIMIZER, 20, 25 },
		{ PHASE_UNKNOWN, 25, 30 },     { PHASE_DATA_LOADING, 30, 40 },
	};
	char dir[] = "/tmp/work-test-XXXXXX", path[64];
	struct phases phases;
	struct truth *truth;
	struct truth_file file;
	u64 t0, nr = ARRAY_SIZE(expected);

	assert_non_null(mkdtemp(dir));
	assert_int_equal(truth_open(dir, "t", 100, &truth), 0);
	phases_begin(&phases, truth, PHASE_GPU_COMPUTE);
	t0 = phases.born_ns;
	phases_set(&phases, PHASE_OPTIMIZER, t0 + 10 * NSEC_PER_MSEC);
	phases_set(&phases, PHASE_GPU_COMPUTE, t0 + 14 * NSEC_PER_MSEC);
	phases_set(&phases, PHASE_GPU_COMPUTE, t0 + 15 * NSEC_PER_MSEC);
	phases_set(&phases, PHASE_OPTIMIZER, t0 + 20 * NSEC_PER_MSEC);
	phases_set(&phases, PHASE_DATA_LOADING, t0 + 30 * NSEC_PER_MSEC);
	phases_end(&phases, TRUTH_ROLE_LAUNCHER, t0 + 40 * NSEC_PER_MSEC);
	truth_free(truth);
	snprintf(path, sizeof(path), "%s/t.%d.truth", dir, getpid());
	assert_int_equal(truth_read(path, &file), 0);
	unlink(path);
	rmdir(dir);
	assert_int_equal(file.nr_records, nr + 1);
	for (u64 i = 0, j = 0; i < file.nr_records; i++) {
		const struct truth_record *rec = &file.records[i];

		if (rec->kind == TRUTH_THREAD) {
			assert_int_equal(rec->start_ns, t0);
			assert_int_equal(rec->end_ns, t0 + 40 * NSEC_PER_MSEC);
			continue;
		}
		assert_int_equal(rec->sub, expected[j].phase);
		assert_int_equal(rec->start_ns, t0 + expected[j].at_ms * NSEC_PER_MSEC);
		assert_int_equal(rec->end_ns, t0 + expected[j].end_ms * NSEC_PER_MSEC);
		j++;
	}
	truth_file_done(&file);
}

/* Sleep is neither CPU time nor delay, and every span begins where the previous one ended. */
static void test_activities_tile(void **state)
{
	static const enum truth_did expected[] = { TRUTH_DID_COMPUTE, TRUTH_DID_DATA,
						   TRUTH_DID_COMPUTE };
	const struct burn burn = burn_calibrate();
	char dir[] = "/tmp/work-test-XXXXXX", path[64];
	struct truth *truth;
	struct truth_file file;
	struct did did;
	u64 nr = 0, at;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(truth_open(dir, "t", 100, &truth), 0);
	did_begin(&did, truth, TRUTH_DID_COMPUTE);
	at = did.born_ns;
	did_set(&did, TRUTH_DID_COMPUTE, 0); /* no change, no record */
	did_set(&did, TRUTH_DID_DATA, 7);
	usleep(20000);
	did_set(&did, TRUTH_DID_COMPUTE, 0);
	burn_ns(&burn, 5 * NSEC_PER_MSEC);
	did_end(&did, TRUTH_ROLE_LAUNCHER);
	truth_free(truth);
	snprintf(path, sizeof(path), "%s/t.%d.truth", dir, getpid());
	assert_int_equal(truth_read(path, &file), 0);
	unlink(path);
	rmdir(dir);
	for (u64 i = 0; i < file.nr_records; i++) {
		const struct truth_record *rec = &file.records[i];

		if (rec->kind != TRUTH_DID)
			continue;
		assert_int_equal(rec->sub, expected[nr]);
		assert_int_equal(rec->start_ns, at);
		assert_int_equal(rec->c, rec->sub == TRUTH_DID_DATA ? 7 : 0);
		if (rec->sub == TRUTH_DID_DATA)
			assert_true(rec->end_ns - rec->start_ns - rec->a - rec->b >=
				    15 * NSEC_PER_MSEC);
		at = rec->end_ns;
		nr++;
		if (nr == ARRAY_SIZE(expected))
			assert_true(rec->a >= 5 * NSEC_PER_MSEC);
	}
	assert_int_equal(nr, ARRAY_SIZE(expected));
	truth_file_done(&file);
}

#define SLOTS	4
#define MAKERS	2
#define BATCHES 5000

struct maker {
	struct ring *ring;
	u64 *made; /* by slot: its current batch */
	u64 first;
};

/* Works like a loader; ends when the ring is stopped. */
static void maker_run(const struct maker *maker)
{
	for (u64 batch = maker->first;; batch += MAKERS) {
		while (!ring_has_room(maker->ring, batch)) {
			if (ring_stopped(maker->ring))
				return;
			ring_wait_room(maker->ring, batch);
		}
		maker->made[batch % SLOTS] = batch;
		ring_put(maker->ring, batch);
	}
}

static void *maker_thread(void *arg)
{
	maker_run(arg);
	return NULL;
}

static void take_all(struct ring *ring, const u64 *made)
{
	for (u64 batch = 0; batch < BATCHES; batch++) {
		while (!ring_has_batch(ring, batch))
			ring_wait_batch(ring, batch, NSEC_PER_SEC);
		assert_int_equal(made[batch % SLOTS], batch);
		ring_take(ring, batch);
	}
	ring_stop(ring);
}

static void test_ring_between_threads(void **state)
{
	struct ring *ring = ring_new(SLOTS);
	struct maker makers[MAKERS];
	pthread_t threads[MAKERS];
	u64 made[SLOTS];

	for (u64 i = 0; i < MAKERS; i++) {
		makers[i] = (struct maker){ ring, made, i };
		assert_int_equal(pthread_create(&threads[i], NULL, maker_thread, &makers[i]), 0);
	}
	take_all(ring, made);
	for (u64 i = 0; i < MAKERS; i++)
		pthread_join(threads[i], NULL);
	assert_null(ring_free(ring));
}

static void test_ring_between_processes(void **state)
{
	struct ring *ring = ring_new(SLOTS);
	u64 *made = shared_alloc(SLOTS * sizeof(*made));
	pid_t pids[MAKERS];

	for (u64 i = 0; i < MAKERS; i++) {
		pids[i] = fork_tied();
		if (pids[i] == 0) {
			maker_run(&(struct maker){ ring, made, i });
			_exit(0);
		}
		assert_true(pids[i] > 0);
	}
	take_all(ring, made);
	for (u64 i = 0; i < MAKERS; i++)
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	ring_free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burn_is_cpu_time),
		cmocka_unit_test(test_random_depends_on_seed_and_index_only),
		cmocka_unit_test(test_phases_have_no_gaps_and_bursts_end),
		cmocka_unit_test(test_activities_tile),
		cmocka_unit_test(test_ring_between_threads),
		cmocka_unit_test(test_ring_between_processes),
	};

	return cmocka_run_group_tests_name("work", tests, NULL, NULL);
}
