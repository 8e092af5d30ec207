/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares the duration of collectives and of waits for other ranks, as the BPF programs
 * measure them, with times that are taken before and after the calls, and with times that
 * are taken inside of them. The duration is between the two, whatever else the machine does.
 * Tests that need to see threads sleep only run if ZERNEL_IN_GUEST is set.
 */
#include "signals/native.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/collectives.h"
#include "signals/collectives.h"

#define BUCKET	  1.1892071150027210667 /* 2^(1/4), the factor between two bucket bounds */
#define NR_ROUNDS 20
#define NR_FEW	  8
#define NR_MANY	  500
#define NR_LOCKS  4000
#define TYPE_F32  7

static const char *collectives_lib;

/* The state of this process at the end. */
struct seen {
	struct process_state state;
	struct hist all_reduce, barrier, rank_wait, sync_wait;
};

struct probes {
	struct kernel *kernel;
	struct library libraries[3];
};

static struct probes probes_attach(void)
{
	static const enum runtime runtimes[] = { RUNTIME_NCCL, RUNTIME_CUDA, RUNTIME_MPI };
	struct probes probes = { .kernel = native_kernel() };

	for (u32 i = 0; i < ARRAY_SIZE(runtimes); i++) {
		probes.libraries[i] = native_library(collectives_lib, runtimes[i], -1);
		probes.libraries[i].slot = i;
		assert_int_equal(kernel_attach_library(probes.kernel, &probes.libraries[i]), 0);
	}
	return probes;
}

static void read_hist(struct kernel *kernel, const struct process_state *state, u32 kind,
		      struct hist *ret)
{
	if (kernel_read_hist(kernel, state, kind, ret) < 0)
		*ret = (struct hist){};
}

static struct seen probes_detach(struct probes *probes)
{
	struct seen seen = { .state = native_state(probes->kernel, getpid()) };
	u32 all_reduce = DETAIL_ALL_REDUCE - COLLECTIVE_FIRST;
	u32 barrier = DETAIL_BARRIER - COLLECTIVE_FIRST;

	read_hist(probes->kernel, &seen.state, HIST_COLLECTIVE + all_reduce, &seen.all_reduce);
	read_hist(probes->kernel, &seen.state, HIST_COLLECTIVE + barrier, &seen.barrier);
	read_hist(probes->kernel, &seen.state, HIST_RANK_WAIT, &seen.rank_wait);
	read_hist(probes->kernel, &seen.state, HIST_SYNC_WAIT, &seen.sync_wait);
	assert_int_equal(kernel_drops(probes->kernel).nr_samples, 0);
	assert_int_equal(kernel_drops(probes->kernel).nr_frames, 0);
	probes->kernel = kernel_free(probes->kernel);
	return seen;
}

/* The times that the caller knows. */
struct known {
	u64 inner[NR_MANY], outer[NR_MANY];
};

/*
 * The error must be within a bucket, and within `slack` permille of the calls: a stored call can
 * represent that part of all calls.
 */
static void compare(const char *what, const struct hist *hist, struct known *known, u32 nr,
		    u32 slack)
{
	assert_int_equal(hist->count, nr);
	for (u32 permille = 10; permille <= 990; permille += 490) {
		double told = (double)hist_quantile(hist, permille);
		u32 below = permille > slack ? permille - slack : 0;
		double least = (double)native_quantile(known->inner, nr, below);
		double most = (double)native_quantile(known->outer, nr, permille + slack);

		print_message("# %s: p%u of %u: BPF programs %.0f us, at least %.0f us, at most "
			      "%.0f us\n",
			      what, permille / 10, nr, told / 1e3, least / 1e3, most / 1e3);
		assert_true(told >= least / BUCKET && told <= most * BUCKET);
	}
}

/* Makes calls `gap_ns` apart, then a sync that ends them. Their times begin at `first`. */
static void reduce(struct known *known, u32 first, u32 nr, u64 gap_ns, u64 sync_ns)
{
	u64 *inner = &known->inner[first], *outer = &known->outer[first], done;

	for (u32 i = 0; i < nr; i++) {
		outer[i] = time_now_ns();
		assert_int_equal(ncclAllReduce(0, NULL, 100 + i, TYPE_F32), 0);
		inner[i] = inside_since_ns;
		while (time_now_ns() < outer[i] + gap_ns)
			;
	}
	cudaStreamSynchronize(sync_ns);
	done = time_now_ns();
	for (u32 i = 0; i < nr; i++) {
		inner[i] = inside_until_ns - inner[i];
		outer[i] = done - outer[i];
	}
}

static void test_every_collective_is_timed(void **state)
{
	static struct known known;
	struct probes probes = probes_attach();
	u32 nr = 0, op = DETAIL_ALL_REDUCE - COLLECTIVE_FIRST;
	u64 bytes = 0;
	struct seen seen;

	for (u32 round = 0; round < NR_ROUNDS; round++) {
		reduce(&known, nr, NR_FEW, NSEC_PER_MSEC, 3 * NSEC_PER_MSEC);
		for (u32 i = 0; i < NR_FEW; i++, nr++)
			bytes += (100 + i) * sizeof(float);
		/* A failed call is not counted. */
		assert_int_not_equal(ncclAllReduce(0, NULL, 0, TYPE_F32), 0);
	}
	seen = probes_detach(&probes);
	assert_int_equal(seen.state.nr_collectives[op], nr);
	assert_int_equal(seen.state.collective_bytes[op], bytes);
	compare("8 per sync", &seen.all_reduce, &known, nr, 0);
	/* Each sync covers collectives, so it may wait for ranks during its whole time. */
	assert_int_equal(seen.sync_wait.count, NR_ROUNDS);
	assert_int_equal(seen.rank_wait.count, NR_ROUNDS);
	assert_int_equal(seen.rank_wait.sum, seen.sync_wait.sum);
}

/* More collectives than the list can store: the count is exact, the error is bounded. */
static void test_many_collectives_are_all_counted(void **state)
{
	static struct known known;
	struct probes probes = probes_attach();
	struct seen seen;

	_Static_assert(NR_MANY > COLLECTIVES_KEPT, "some stored calls represent several calls");
	reduce(&known, 0, NR_MANY, 100 * NSEC_PER_USEC, NSEC_PER_MSEC);
	seen = probes_detach(&probes);
	compare("500 per sync", &seen.all_reduce, &known, NR_MANY, 125);
	assert_int_equal(seen.rank_wait.count, 1);
}

static void test_blocking_collective_waits_for_ranks(void **state)
{
	static struct known known;
	struct probes probes = probes_attach();
	struct seen seen;

	for (u32 i = 0; i < NR_ROUNDS; i++) {
		known.outer[i] = time_now_ns();
		MPI_Barrier((1 + i) * NSEC_PER_MSEC / 2);
		known.outer[i] = time_now_ns() - known.outer[i];
		known.inner[i] = inside_until_ns - inside_since_ns;
	}
	seen = probes_detach(&probes);
	compare("barriers", &seen.barrier, &known, NR_ROUNDS, 0);
	compare("waits for ranks", &seen.rank_wait, &known, NR_ROUNDS, 0);
	assert_int_equal(seen.sync_wait.count, 0);
}

static void test_syncs_without_collectives_wait_for_no_rank(void **state)
{
	struct probes probes = probes_attach();
	struct seen seen;

	for (u32 i = 0; i < NR_ROUNDS; i++)
		cudaStreamSynchronize(NSEC_PER_MSEC);
	seen = probes_detach(&probes);
	assert_int_equal(seen.sync_wait.count, NR_ROUNDS);
	assert_int_equal(seen.rank_wait.count, 0);
}

static void test_single_rank_waits_for_no_rank(void **state)
{
	struct probes probes = probes_attach();
	struct seen seen;
	int size;

	assert_int_equal(MPI_Comm_size(1, &size), 0);
	MPI_Barrier(NSEC_PER_MSEC);
	ncclAllReduce(0, NULL, 100, TYPE_F32);
	cudaStreamSynchronize(NSEC_PER_MSEC);
	seen = probes_detach(&probes);
	assert_int_equal(seen.state.nr_ranks, 1);
	assert_int_equal(seen.barrier.count + seen.all_reduce.count, 2);
	assert_int_equal(seen.rank_wait.count, 0);
}

/* Also watches sleeps, which needs programs at every context switch of the machine. */
static struct probes probes_attach_in_guest(void)
{
	struct probes probes;

	if (!getenv("ZERNEL_IN_GUEST")) {
		print_message("# skipped: watches every context switch of the machine, so it only "
			      "runs in a guest\n");
		skip();
	}
	probes = probes_attach();
	assert_int_equal(kernel_attach_threads(probes.kernel), 0);
	return probes;
}

static void test_sleep_inside_a_collective_is_a_wait_for_ranks(void **state)
{
	struct probes probes = probes_attach_in_guest();
	struct seen seen;

	for (u32 i = 0; i < NR_ROUNDS; i++) {
		ncclAllReduce(20 * NSEC_PER_MSEC, NULL, 100, TYPE_F32);
		ncclAllReduce(0, NULL, 100, TYPE_F32);
	}
	seen = probes_detach(&probes);
	print_message("# %llu waits of %.2f ms\n", seen.rank_wait.count,
		      (double)hist_mean(&seen.rank_wait) / 1e6);
	assert_int_equal(seen.rank_wait.count, NR_ROUNDS);
	assert_true(hist_mean(&seen.rank_wait) >= 20 * NSEC_PER_MSEC);
}

/*
 * A lock that another thread of the process passes on. It does so all the time, because a wakeup
 * can come at the moment at which the thread that waits leaves its CPU.
 */
static u32 lock;
static atomic_bool is_done;

static void *pass_on(void *unused)
{
	while (!is_done)
		collectives_wake(&lock);
	return NULL;
}

static void test_lock_inside_a_collective_is_no_wait_for_ranks(void **state)
{
	struct probes probes = probes_attach_in_guest();
	pthread_t other;
	struct seen seen;

	assert_int_equal(pthread_create(&other, NULL, pass_on, NULL), 0);
	for (u32 i = 0; i < NR_LOCKS; i++)
		ncclAllReduce(100 * NSEC_PER_SEC, &lock, 100, TYPE_F32);
	is_done = true;
	assert_int_equal(pthread_join(other, NULL), 0);
	seen = probes_detach(&probes);
	assert_int_equal(seen.state.nr_collectives[DETAIL_ALL_REDUCE - COLLECTIVE_FIRST], NR_LOCKS);
	assert_int_equal(seen.rank_wait.count, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_collective_is_timed),
		cmocka_unit_test(test_many_collectives_are_all_counted),
		cmocka_unit_test(test_blocking_collective_waits_for_ranks),
		cmocka_unit_test(test_syncs_without_collectives_wait_for_no_rank),
		cmocka_unit_test(test_single_rank_waits_for_no_rank),
		cmocka_unit_test(test_sleep_inside_a_collective_is_a_wait_for_ranks),
		cmocka_unit_test(test_lock_inside_a_collective_is_no_wait_for_ranks),
	};

	if (argc != 2)
		return 2;
	collectives_lib = argv[1];
	return cmocka_run_group_tests_name("collectives", tests, NULL, NULL);
}
