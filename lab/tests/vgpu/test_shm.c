/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the shared file: locks of dead processes, the union of spans, totals beyond the ring. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "vgpu/shm.h"

static struct shm *shm;

static void die_with_the_lock(int device)
{
	u32 proc;

	CHECK(shm_join(shm, &proc) == 0);
	CHECK(shm_charge(shm, proc, (u32)device, 700000000) == 0);
	shm_lock(shm);
	raise(SIGKILL);
}

static void test_lock_of_a_dead_process_is_released(void **state)
{
	pid_t pid = child_start(die_with_the_lock, 1);
	u32 proc;
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* Would hang here until the alarm if the dead process still held the lock. */
	assert_int_equal(shm_join(shm, &proc), 0);
	assert_int_equal(shm_charge(shm, proc, 1, 1000000000), 0);
	assert_int_equal(shm_charge(shm, proc, 1, 1), -ENOMEM);
	shm_leave(shm, proc);
	shm_lock(shm);
	assert_int_equal(shm_memory_used(shm, 1), 0);
	shm_unlock(shm);
}

/* A live process keeps its slot when other processes reap. */
static void test_live_process_keeps_its_slot(void **state)
{
	u32 a, b;

	assert_int_equal(shm_join(shm, &a), 0);
	assert_int_equal(shm_charge(shm, a, 0, 1000), 0);
	assert_int_equal(shm_join(shm, &b), 0);
	assert_int_not_equal(a, b);
	shm_lock(shm);
	shm_reap(shm);
	assert_int_equal(shm_memory_used(shm, 0), 1000);
	shm_unlock(shm);
	shm_leave(shm, a);
	shm_leave(shm, b);
}

static void test_union_of_spans(void **state)
{
	const u64 t = truth_now_ns();
	u64 cursor[2] = {};

	shm_span_add(shm, 0, 0, SHM_SPAN_COMPUTE, t, t + 100, &cursor[0]);
	shm_span_add(shm, 0, 1, SHM_SPAN_COMPUTE, t + 50, t + 150, &cursor[1]);
	shm_span_add(shm, 0, 0, SHM_SPAN_COPY, t + 140, t + 240, &(u64){ 0 });
	assert_int_equal(shm_busy_ns(shm, 0, SHM_ANY_PROC, SHM_SPAN_COMPUTE, t, t + 1000), 150);
	assert_int_equal(shm_busy_ns(shm, 0, SHM_ANY_PROC, SHM_SPAN_COMPUTE, t + 20, t + 120), 100);
	assert_int_equal(shm_busy_ns(shm, 0, 1, SHM_SPAN_COMPUTE, t, t + 1000), 100);
	assert_int_equal(
		shm_busy_ns(shm, 0, SHM_ANY_PROC, SHM_SPAN_COMPUTE | SHM_SPAN_COPY, t, t + 1000),
		240);
	/* Consecutive work is one span; after a gap, a new span starts. */
	u64 head = shm->devices[0].head;

	shm_span_add(shm, 0, 0, SHM_SPAN_COMPUTE, t + 100, t + 160, &cursor[0]);
	assert_int_equal(shm->devices[0].head, head);
	shm_span_add(shm, 0, 0, SHM_SPAN_COMPUTE, t + 300, t + 310, &cursor[0]);
	assert_int_equal(shm->devices[0].head, head + 1);
	assert_int_equal(shm_busy_ns(shm, 0, SHM_ANY_PROC, SHM_SPAN_COMPUTE, t, t + 1000), 170);
	assert_int_equal(shm_busy_ns(shm, 1, SHM_ANY_PROC, SHM_SPAN_COMPUTE, t, t + 1000), 0);
	shm_span_add(shm, 0, 0, SHM_SPAN_COLLECTIVE, t + 305, t + 400, &(u64){ 0 });
	assert_int_equal(shm_busy_ns(shm, 0, SHM_ANY_PROC, SHM_SPAN_COMPUTE, t, t + 1000), 170);
	assert_int_equal(shm_busy_ns(shm, 0, SHM_ANY_PROC, SHM_SPAN_KERNELS, t, t + 1000), 260);
}

/* With more spans than the ring can store, the total still includes all of them. */
static void test_total_includes_spans_beyond_the_ring(void **state)
{
	u64 cursor = 0, before, after, nr = 3 * SHM_SPANS, last = truth_now_ns();

	shm_lock(shm);
	before = shm_busy_total_ns(shm, 1, last);
	shm_unlock(shm);
	for (u64 i = 0; i < nr; i++) {
		while (truth_now_ns() < last + 200)
			;
		last = truth_now_ns();
		shm_span_add(shm, 1, 0, SHM_SPAN_COMPUTE, last, last + 100, &cursor);
	}
	usleep(1000);
	shm_lock(shm);
	after = shm_busy_total_ns(shm, 1, truth_now_ns());
	shm_unlock(shm);
	assert_int_equal(shm->devices[1].head, nr);
	assert_int_equal(after - before, nr * 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock_of_a_dead_process_is_released),
		cmocka_unit_test(test_live_process_keeps_its_slot),
		cmocka_unit_test(test_union_of_spans),
		cmocka_unit_test(test_total_includes_spans_beyond_the_ring),
	};

	harness_start("2", "1e9");
	if (shm_attach(&shm) < 0)
		return 1;
	return harness_end(cmocka_run_group_tests_name("vgpu shm", tests, NULL, NULL));
}
