/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the maximum load: 8 ranks on 4 devices, 64 loaders, 10,000 launches per second. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"
#include "support/timing.h"
#include "vgpu/include/vgpu_cudart.h"
#include "vgpu/include/vgpu_nccl.h"

#define NR_RANKS    8
#define NR_LOADERS  8 /* per rank */
#define NR_STEPS    50
#define STEP_NS	    (20 * MS)
#define NR_LAUNCHES 25 /* per step and rank: 8 x 25 / 20 ms = 10,000 per second */

static ncclUniqueId id;
static u64 *took_ns;

static void step_wait(u64 start_ns, u64 step)
{
	s64 left = (s64)(start_ns + step * STEP_NS - truth_now_ns());

	if (left > 0)
		usleep((useconds_t)(left / 1000));
}

/* Copies a batch to the device in every step, on its own stream. */
static void *loader(void *arg)
{
	u64 start = truth_now_ns();
	int device = *(int *)arg;
	cudaStream_t stream;
	void *batch;
	char host[4096];

	CHECK(!cudaSetDevice(device) && !cudaMalloc(&batch, sizeof(host)));
	CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (u64 i = 0; i < NR_STEPS; i++) {
		CHECK(!cudaMemcpyAsync(batch, host, sizeof(host), cudaMemcpyHostToDevice, stream));
		step_wait(start, i + 1);
	}
	CHECK(!cudaStreamSynchronize(stream) && !cudaFree(batch));
	return NULL;
}

static void rank_run(int rank)
{
	pthread_t loaders[NR_LOADERS];
	int device = rank % 4;
	ncclComm_t comm;
	u64 start, ns = 100000;
	void *args[] = { &ns };

	CHECK(!cudaSetDevice(device));
	CHECK(!cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CHECK(!ncclCommInitRank(&comm, NR_RANKS, id, rank));
	start = truth_now_ns();
	for (int i = 0; i < NR_LOADERS; i++)
		CHECK(!pthread_create(&loaders[i], NULL, loader, &device));
	for (u64 step = 0; step < NR_STEPS; step++) {
		for (int i = 0; i < NR_LAUNCHES; i++)
			CHECK(!cudaLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 },
						(dim3){ 1, 1, 1 }, args, 0, NULL));
		CHECK(!ncclAllReduce(NULL, NULL, 1000, ncclFloat32, ncclSum, comm, NULL));
		CHECK(!cudaStreamSynchronize(NULL));
		step_wait(start, step + 1);
	}
	took_ns[rank] = truth_now_ns() - start;
	for (int i = 0; i < NR_LOADERS; i++)
		CHECK(!pthread_join(loaders[i], NULL));
	CHECK(!ncclCommDestroy(comm));
}

/* CPU time of all children that ended. */
static u64 children_cpu_ns(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return (u64)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (u64)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NSEC_PER_USEC;
}

static void test_load(void **state)
{
	u64 longest = 0, cpu;

	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	children_run(rank_run, NR_RANKS);
	cpu = children_cpu_ns();
	for (int i = 0; i < NR_RANKS; i++)
		longest = took_ns[i] > longest ? took_ns[i] : longest;
	print_message("# %d launches by %d ranks in %.2f s: %.0f per second, %.2f s of CPU time\n",
		      NR_RANKS * NR_STEPS * NR_LAUNCHES, NR_RANKS, (double)longest / 1e9,
		      NR_RANKS * NR_STEPS * NR_LAUNCHES * 1e9 / (double)longest, (double)cpu / 1e9);
	assert_true(longest >= NR_STEPS * STEP_NS * 9 / 10);
	timing_assert(cpu <= 10 * NR_STEPS * STEP_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),
	};

	harness_start("4", "1e9");
	took_ns = mmap(NULL, NR_RANKS * sizeof(*took_ns), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (took_ns == MAP_FAILED)
		return 1;
	return harness_end(cmocka_run_group_tests_name("vgpu load", tests, NULL, NULL));
}
