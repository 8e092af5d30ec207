/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the truth log of a run with all kinds of work: each launch has exactly one busy span. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "harness.h"
#include "vgpu/include/vgpu_cudart.h"
#include "vgpu/include/vgpu_nccl.h"

#define NR_KERNELS 500
#define BYTES	   4096

static ncclUniqueId id;

static void rank_run(int rank)
{
	cudaStream_t stream;
	ncclComm_t comm;
	void *device, *host;
	char text[BYTES];

	CHECK(!cudaSetDevice(rank));
	CHECK(!ncclCommInitRank(&comm, 2, id, rank));
	CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(!cudaMalloc(&device, BYTES) && !cudaMallocHost(&host, BYTES));
	for (u64 i = 0; i < NR_KERNELS; i++) {
		u64 ns = 1000 + i;
		void *args[] = { &ns };

		CHECK(!cudaLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 },
					(dim3){ 1, 1, 1 }, args, 0, i % 2 ? stream : NULL));
		if (i % 10 == 0)
			CHECK(!ncclAllReduce(NULL, NULL, 100, ncclFloat32, ncclSum, comm, stream));
		if (i % 50 == 0)
			CHECK(!cudaMemcpy(device, text, BYTES, cudaMemcpyHostToDevice));
		if (i % 100 == 0)
			CHECK(!cudaMemsetAsync(device, 0, BYTES, stream));
	}
	/* A failed call is not logged. */
	CHECK(cudaMemsetAsync(device, 0, BYTES + 1, stream) == cudaErrorInvalidValue);
	CHECK(cudaMalloc(&host, 1ULL << 40) == cudaErrorMemoryAllocation);
	CHECK(!cudaStreamSynchronize(stream) && !cudaDeviceSynchronize());
	CHECK(!cudaFree(device));
	CHECK(!ncclCommDestroy(comm));
}

static pid_t pids[2];

static u64 count(const struct truth_file *file, enum truth_kind kind, int sub)
{
	u64 nr = 0;

	for (u64 i = 0; i < file->nr_records; i++)
		nr += file->records[i].kind == kind && (sub < 0 || file->records[i].sub == sub);
	return nr;
}

static int setup_run(void **state)
{
	if (ncclGetUniqueId(&id))
		return -1;
	for (int i = 0; i < 2; i++)
		pids[i] = child_start(rank_run, i);
	for (int i = 0; i < 2; i++)
		child_join(pids[i]);
	return 0;
}

static void test_numbers(void **state)
{
	struct truth_file file;

	for (int rank = 0; rank < 2; rank++) {
		harness_log(pids[rank], &file);
		assert_int_equal(count(&file, TRUTH_BUSY, TRUTH_WORK_KERNEL), NR_KERNELS);
		assert_int_equal(count(&file, TRUTH_BUSY, TRUTH_WORK_COLLECTIVE), NR_KERNELS / 10);
		assert_int_equal(count(&file, TRUTH_BUSY, TRUTH_WORK_COPY), NR_KERNELS / 50);
		assert_int_equal(count(&file, TRUTH_BUSY, TRUTH_WORK_MEMSET), NR_KERNELS / 100);
		assert_int_equal(count(&file, TRUTH_COLLECTIVE, -1), NR_KERNELS / 10);
		assert_int_equal(count(&file, TRUTH_SYNC, -1), 2);
		assert_int_equal(count(&file, TRUTH_ALLOC, -1), 2);
		assert_int_equal(count(&file, TRUTH_FREE, -1), 1);
		assert_int_equal(count(&file, TRUTH_THREAD, TRUTH_ROLE_COLLECTIVE_HELPER), 1);
		truth_file_done(&file);
	}
}

static void test_each_launch_is_busy_once(void **state)
{
	struct truth_file file;

	harness_log(pids[0], &file);
	u64 nr = count(&file, TRUTH_LAUNCH, -1);
	const struct truth_record **launch = calloc(nr + 1, sizeof(*launch));
	u64 nr_busy = 0, last_kernel = 0;

	assert_non_null(launch);
	for (u64 i = 0; i < file.nr_records; i++) {
		const struct truth_record *r = &file.records[i];

		if (r->kind != TRUTH_LAUNCH)
			continue;
		/* Sequence numbers count up from 1 without gaps and duplicates. */
		assert_in_range(r->c, 1, nr);
		assert_null(launch[r->c]);
		launch[r->c] = r;
	}
	for (u64 i = 0; i < file.nr_records; i++) {
		const struct truth_record *r = &file.records[i], *l;

		if (r->kind != TRUTH_BUSY)
			continue;
		assert_in_range(r->c, 1, nr);
		l = launch[r->c];
		assert_non_null(l);
		assert_int_equal(l->sub, r->sub);
		assert_int_equal(l->a, r->a);
		assert_int_equal(l->b, r->b);
		/* The device cannot start before the launch. */
		assert_true(r->start_ns >= l->start_ns);
		if (r->sub == TRUTH_WORK_KERNEL) {
			assert_in_range(r->end_ns - r->start_ns, 1000, 1000 + NR_KERNELS);
			last_kernel = r->end_ns > last_kernel ? r->end_ns : last_kernel;
		}
		launch[r->c] = NULL;
		nr_busy++;
	}
	assert_int_equal(nr_busy, nr);
	assert_true(last_kernel > 0);
	free(launch);
	truth_file_done(&file);
}

/* Work of one stream never overlaps. */
static void test_streams_are_in_order(void **state)
{
	struct truth_file file;
	u64 end[2] = {}, streams[2] = {}, nr = 0;

	harness_log(pids[1], &file);
	for (u64 i = 0; i < file.nr_records; i++) {
		const struct truth_record *r = &file.records[i];
		int s;

		if (r->kind != TRUTH_BUSY)
			continue;
		s = r->b != 0;
		if (!streams[s])
			streams[s] = r->b;
		assert_int_equal(r->b, streams[s]);
		assert_int_equal(r->a, 1);
		assert_true(r->start_ns >= end[s]);
		end[s] = r->end_ns;
		nr++;
	}
	assert_true(nr > NR_KERNELS);
	truth_file_done(&file);
}

/* Both ranks log the same end: the last arrival plus 400 bytes divided by the bandwidth. */
static void test_collectives_agree(void **state)
{
	struct truth_file a, b;
	u64 j = 0, compared = 0;

	harness_log(pids[0], &a);
	harness_log(pids[1], &b);
	for (u64 i = 0; i < a.nr_records; i++) {
		const struct truth_record *x = &a.records[i], *y;

		if (x->kind != TRUTH_COLLECTIVE)
			continue;
		while (b.records[j].kind != TRUTH_COLLECTIVE)
			j++;
		y = &b.records[j++];
		assert_int_equal(x->end_ns, y->end_ns);
		assert_int_equal(x->c, y->c);
		assert_int_equal(x->b, 400);
		assert_int_equal(x->a, 0 | 2ULL << 32);
		assert_int_equal(y->a, 1 | 2ULL << 32);
		assert_true(x->end_ns >= x->start_ns + 400 && y->end_ns >= y->start_ns + 400);
		compared++;
	}
	assert_int_equal(compared, NR_KERNELS / 10);
	truth_file_done(&a);
	truth_file_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_each_launch_is_busy_once),
		cmocka_unit_test(test_streams_are_in_order),
		cmocka_unit_test(test_collectives_agree),
	};

	harness_start("2", "1e9");
	return harness_end(cmocka_run_group_tests_name("vgpu log", tests, setup_run, NULL));
}
