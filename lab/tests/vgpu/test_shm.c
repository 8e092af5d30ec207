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

/* What a process, or all of them, did between two moments. */
static struct shm_fold fold_of(u32 device, u32 proc, u64 from, u64 to)
{
	struct shm_fold fold = { .until_ns = from };

	shm_fold_extend(shm, device, proc, to, &fold);
	return fold;
}

static u64 kernel_ns(u32 device, u32 proc, u64 from, u64 to)
{
	return fold_of(device, proc, from, to).kernel_ns;
}

/* At the begin of a sample period, so that the spans are in one period. */
static void test_union_of_spans(void **state)
{
	const u64 period = truth_now_ns() / SHM_PERIOD_NS + 1, t = period * SHM_PERIOD_NS;
	u64 cursor[2] = {}, head;
	struct shm_fold fold;

	shm_span_add(shm, 0, 0, SHM_SPAN_COMPUTE, 60, t, t + 100, &cursor[0]);
	shm_span_add(shm, 0, 1, SHM_SPAN_COMPUTE, 60, t + 50, t + 150, &cursor[1]);
	shm_span_add(shm, 0, 0, SHM_SPAN_COPY, 0, t + 140, t + 240, &(u64){ 0 });
	assert_int_equal(kernel_ns(0, SHM_ANY_PROC, t, t + 1000), 150);
	assert_int_equal(kernel_ns(0, SHM_ANY_PROC, t + 20, t + 120), 100);
	assert_int_equal(kernel_ns(0, 1, t, t + 1000), 100);
	fold = fold_of(0, SHM_ANY_PROC, t, t + 1000);
	/* 60 % each, and all of the multiprocessors where both run. */
	assert_int_equal(fold.sm_ns, 100 * 60 / 100 + 50);
	assert_int_equal(shm_period_of(&fold, period).kernel_ns, 150);
	assert_int_equal(shm_period_of(&fold, period).any_ns, 240);
	assert_int_equal(shm_period_of(&fold, period + 1).any_ns, 0);
	/* Back to back is one span; after a gap a new one. */
	head = shm->devices[0].head;
	shm_span_add(shm, 0, 0, SHM_SPAN_COMPUTE, 60, t + 100, t + 160, &cursor[0]);
	assert_int_equal(shm->devices[0].head, head);
	shm_span_add(shm, 0, 0, SHM_SPAN_COMPUTE, 60, t + 300, t + 310, &cursor[0]);
	assert_int_equal(shm->devices[0].head, head + 1);
	assert_int_equal(kernel_ns(0, SHM_ANY_PROC, t, t + 1000), 170);
	assert_int_equal(kernel_ns(1, SHM_ANY_PROC, t, t + 1000), 0);
	shm_span_add(shm, 0, 0, SHM_SPAN_COLLECTIVE, 10, t + 305, t + 400, &(u64){ 0 });
	assert_int_equal(kernel_ns(0, SHM_ANY_PROC, t, t + 1000), 260);
}

/* Work over the border of two periods counts in both, as much as it was in each. */
static void test_periods(void **state)
{
	const u64 period = truth_now_ns() / SHM_PERIOD_NS + 10, t = period * SHM_PERIOD_NS;
	struct shm_fold fold;

	shm_span_add(shm, 0, 0, SHM_SPAN_COMPUTE, 100, t - 300, t + 700, &(u64){ 0 });
	fold = fold_of(0, SHM_ANY_PROC, t - SHM_PERIOD_NS, t + SHM_PERIOD_NS);
	assert_int_equal(shm_period_of(&fold, period - 1).kernel_ns, 300);
	assert_int_equal(shm_period_of(&fold, period).kernel_ns, 700);
	assert_int_equal(fold.kernel_ns, 1000);
}

/* The totals are updated four times for each turn of the ring, and by each reader. */
#define MAX_FOLDS (3 * 4 + 2)

/* More spans than the ring holds: the totals still have them all. */
static void test_total_outlives_the_ring(void **state)
{
	u64 cursor = 0, nr = 3 * SHM_SPANS, last = truth_now_ns(), periods_ns = 0;
	struct shm_fold before, after;

	shm_lock(shm);
	shm_fold_read(shm, 1, last, &before);
	shm_unlock(shm);
	for (u64 i = 0; i < nr; i++) {
		while (truth_now_ns() < last + 200)
			;
		last = truth_now_ns();
		shm_span_add(shm, 1, 0, SHM_SPAN_COMPUTE, 70, last, last + 100, &cursor);
	}
	usleep(1000);
	shm_lock(shm);
	shm_fold_read(shm, 1, truth_now_ns(), &after);
	shm_unlock(shm);
	for (u32 i = 0; i < SHM_PERIODS; i++)
		periods_ns += shm_period_of(&after, last / SHM_PERIOD_NS - i).kernel_ns;
	assert_int_equal(shm->devices[1].head, nr);
	assert_int_equal(after.kernel_ns - before.kernel_ns, nr * 100);
	/* A total that ends inside of a span rounds the share of that span twice. */
	assert_in_range(after.sm_ns - before.sm_ns, nr * 70 - MAX_FOLDS, nr * 70);
	assert_int_equal(periods_ns, nr * 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock_of_a_dead_process_is_released),
		cmocka_unit_test(test_live_process_keeps_its_slot),
		cmocka_unit_test(test_union_of_spans),
		cmocka_unit_test(test_periods),
		cmocka_unit_test(test_total_outlives_the_ring),
	};

	harness_start("2", "1e9");
	if (shm_attach(&shm) < 0)
		return 1;
	return harness_end(cmocka_run_group_tests_name("vgpu shm", tests, NULL, NULL));
}
