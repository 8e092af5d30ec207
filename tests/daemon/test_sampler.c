/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests sampler.c with processes that sample, which the test plays. */
#include <string.h>
#include "fake_helper.h"

#include "base/time.h"
#include "collect/gpu_message.h"
#include "daemon/sampler.h"

static struct sampler *sampler;
static struct gpu_request request;
static struct gpu_reply reply;
static struct gpu_samples samples;
static u32 nr_samples;

static void on_sample(void *ctx)
{
	nr_samples++;
}

static int setup(void **state)
{
	nr_samples = 0;
	processes_reset();
	memset(&samples, 0, sizeof(samples));
	return sampler_new(NO_STARTER, NO_LOOP, on_sample, NULL, &sampler);
}

static int teardown(void **state)
{
	sampler_free(sampler);
	return 0;
}

static bool is_asked(enum program program)
{
	return processes[program].fd > 0 &&
	       process_receive(program, &request, sizeof(request)) == sizeof(request);
}

static void answer(enum program program, u64 number)
{
	memset(&reply, 0, sizeof(reply));
	reply.number = number;
	reply.samples.nr_devices = 1;
	reply.samples.devices[0].valid = GPU_HAS_UTILISATION;
	reply.samples.devices[0].utilisation = 40;
	process_send(program, &reply, sizeof(reply), -1);
}

static void test_samples(void **state)
{
	u64 now_ns = time_now_ns();

	assert_false(sampler_read(sampler, now_ns, &samples));
	sampler_tick(sampler, now_ns);
	assert_true(is_asked(PROGRAM_GPU));
	answer(PROGRAM_GPU, request.number);
	assert_int_equal(nr_samples, 1);
	assert_true(sampler_read(sampler, time_now_ns(), &samples));
	assert_int_equal(samples.nr_devices, 1);
	assert_int_equal(samples.devices[0].utilisation, 40);
	assert_int_equal(sampler_counts(sampler).nr_lost, 0);
	/* An old value is forgotten, and the GPU is not. */
	assert_true(sampler_read(sampler, time_now_ns() + SAMPLER_STALE_NS, &samples));
	assert_int_equal(samples.nr_devices, 1);
	assert_false(samples.devices[0].valid & GPU_HAS_UTILISATION);
	assert_int_equal(samples.nr_stalled, 1);
}

static void test_descriptors_are_read_only_of_processes_that_can_use_a_gpu(void **state)
{
	pid_t pids[] = { 7, 8 };

	sampler_tick(sampler, time_now_ns());
	assert_int_equal(processes[PROGRAM_FDINFO].nr_starts, 0);
	sampler_set_pids(sampler, pids, ARRAY_SIZE(pids));
	sampler_tick(sampler, time_now_ns());
	assert_true(is_asked(PROGRAM_FDINFO));
	assert_int_equal(request.nr_pids, 2);
	assert_int_equal(request.pids[1], 8);
}

/* The number of a GPU does not depend on which process answers first. */
static void test_gpus_of_the_vendors_library_come_first(void **state)
{
	sampler_set_pids(sampler, &(pid_t){ 7 }, 1);
	sampler_tick(sampler, time_now_ns());
	assert_true(is_asked(PROGRAM_FDINFO));
	answer(PROGRAM_FDINFO, request.number);
	assert_false(sampler_read(sampler, time_now_ns(), &samples));
	assert_true(is_asked(PROGRAM_GPU));
	answer(PROGRAM_GPU, request.number);
	assert_true(sampler_read(sampler, time_now_ns(), &samples));
	assert_int_equal(samples.nr_devices, 2);
	assert_int_equal(samples.devices[0].index, 0);
	assert_int_equal(samples.devices[1].index, 1);
}

static void test_a_wrong_answer_ends_the_process(void **state)
{
	sampler_tick(sampler, time_now_ns());
	assert_true(is_asked(PROGRAM_GPU));
	answer(PROGRAM_GPU, request.number + 1);
	assert_int_equal(processes[PROGRAM_GPU].nr_kills, 1);
	assert_int_equal(nr_samples, 0);
	sampler_tick(sampler, time_now_ns() + 10 * NSEC_PER_SEC);
	assert_int_equal(sampler_counts(sampler).nr_restarts, 1);
}

static void test_lost_samples_are_counted(void **state)
{
	u64 now_ns = time_now_ns();

	sampler_tick(sampler, now_ns);
	/* The first answer may take long. */
	sampler_tick(sampler, now_ns + NSEC_PER_SEC);
	assert_int_equal(sampler_counts(sampler).nr_lost, 0);
	assert_true(is_asked(PROGRAM_GPU));
	answer(PROGRAM_GPU, request.number);
	now_ns = time_now_ns();
	sampler_tick(sampler, now_ns);
	sampler_tick(sampler, now_ns + NSEC_PER_SEC);
	sampler_tick(sampler, now_ns + 2 * NSEC_PER_SEC);
	assert_int_equal(sampler_counts(sampler).nr_lost, 2);
	sampler_tick(sampler, now_ns + SAMPLER_STALE_NS);
	assert_int_equal(processes[PROGRAM_GPU].nr_kills, 1);
}

/* A snapshot waits for a sample, but not for a process that was too slow once. */
static void test_a_snapshot_waits_a_little(void **state)
{
	u64 now_ns;

	sampler_tick(sampler, time_now_ns());
	assert_true(sampler_prepare(sampler, time_now_ns()));
	assert_true(is_asked(PROGRAM_GPU));
	answer(PROGRAM_GPU, request.number);
	now_ns = time_now_ns() + SAMPLER_RECENT_NS;
	assert_false(sampler_prepare(sampler, now_ns));
	assert_true(is_asked(PROGRAM_GPU));
	assert_false(sampler_prepare(sampler, now_ns + SAMPLER_REFRESH_NS - 1));
	assert_true(sampler_prepare(sampler, now_ns + SAMPLER_REFRESH_NS));
	assert_true(sampler_prepare(sampler, now_ns + SAMPLER_REFRESH_NS + 1));
	answer(PROGRAM_GPU, request.number);
	assert_false(sampler_prepare(sampler, time_now_ns() + SAMPLER_RECENT_NS));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_samples),
		TEST(test_descriptors_are_read_only_of_processes_that_can_use_a_gpu),
		TEST(test_gpus_of_the_vendors_library_come_first),
		TEST(test_a_wrong_answer_ends_the_process),
		TEST(test_lost_samples_are_counted),
		TEST(test_a_snapshot_waits_a_little),
	};

	return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
