/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests devices.c with a fake sampler and a fake kernel that only record their calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "daemon/devices.h"
#include "daemon/sampler.h"

#define UNKNOWN	  255
#define NOT_TOLD  254
#define NR_GPUS	  3
#define KERNEL	  ((struct kernel *)told)
#define NR_PIDS	  (GPU_MAX_PROCESSES + 1)
#define FIRST_PID 1000

static struct {
	struct gpu_samples samples;
	bool fresh;
	pid_t pids[GPU_MAX_PROCESSES];
	size_t nr_pids;
	bool is_awaited;
	u32 nr_ticks;
} sampler;

static u32 nodes[NR_GPUS]; /* NUMA node of each GPU that was passed to the kernel */
static u32 told[NR_GPUS];  /* utilization of each GPU that was passed to the kernel */

int sampler_new(struct starter *starter, struct loop *loop, void (*on_sample)(void *ctx), void *ctx,
		struct sampler **ret)
{
	*ret = (struct sampler *)&sampler;
	return 0;
}

struct sampler *sampler_free(struct sampler *s)
{
	return NULL;
}

void sampler_set_pids(struct sampler *s, const pid_t *pids, size_t nr)
{
	memcpy(sampler.pids, pids, nr * sizeof(*pids));
	sampler.nr_pids = nr;
}

bool sampler_prepare(struct sampler *s, u64 now_ns)
{
	return !sampler.is_awaited;
}

void sampler_tick(struct sampler *s, u64 now_ns)
{
	sampler.nr_ticks++;
}

struct sampler_counts sampler_counts(const struct sampler *s)
{
	return (struct sampler_counts){ .nr_lost = 7 };
}

bool sampler_read(struct sampler *s, u64 now_ns, struct gpu_samples *ret)
{
	if (sampler.fresh)
		*ret = sampler.samples;
	return sampler.fresh;
}

static struct gpu_facts facts;
static struct gpu_numbers numbers;
static u32 nr_set;

void kernel_set_gpu_utilization(struct kernel *kernel, u32 gpu, u32 percent)
{
	told[gpu] = percent;
}

void kernel_set_gpu_node(struct kernel *kernel, u32 gpu, u32 node)
{
	nodes[gpu] = node;
}

void kernel_forget_gpu_utilization(struct kernel *kernel, u32 gpu)
{
	told[gpu] = UNKNOWN;
}

int kernel_read_gpu_facts(const struct kernel *kernel, const struct process_state *process,
			  struct gpu_facts *ret)
{
	*ret = facts;
	return process->task.pid == 9 ? -ESRCH : 0;
}

void kernel_set_gpu_numbers(struct kernel *kernel, const struct process_state *process,
			    const struct gpu_numbers *new)
{
	numbers = *new;
	nr_set++;
}

int kernel_gpu_numbers(const struct kernel *kernel, const struct process_state *process,
		       struct gpu_numbers *ret)
{
	*ret = numbers;
	return 0;
}

/* GPU 2 is busy, the utilization of GPU 1 is unknown, and GPU 0 does not exist. */
static int start_afresh(void **state)
{
	memset(&sampler, 0, sizeof(sampler));
	sampler.samples.nr_devices = 2;
	sampler.samples.devices[0] = (struct gpu_sample){ .index = 1, .utilisation = 7 };
	sampler.samples.devices[1] =
		(struct gpu_sample){ .index = 2,
				     .utilisation = 40,
				     .numa_node = 1,
				     .valid = GPU_HAS_UTILISATION | GPU_HAS_NUMA_NODE };
	for (u32 i = 0; i < NR_GPUS; i++)
		told[i] = nodes[i] = NOT_TOLD;
	memset(&facts, 0, sizeof(facts));
	memset(&numbers, 0, sizeof(numbers));
	nr_set = 0;
	return 0;
}

static void tick(struct devices *devices, struct kernel *kernel)
{
	static const struct snapshot empty;

	devices_tick(devices, kernel, &empty);
}

static void the_kernel_gets_the_utilization(void **state)
{
	CLEANUP(devices_free_cleanup) struct devices *devices = NULL;

	assert_int_equal(devices_new(NULL, NULL, NULL, NULL, &devices), 0);
	sampler.fresh = true;
	tick(devices, NULL);
	assert_int_equal(told[2], NOT_TOLD);
	assert_int_equal(devices_samples(devices)->nr_devices, 2);
	tick(devices, KERNEL);
	assert_int_equal(told[0], NOT_TOLD);
	assert_int_equal(told[1], UNKNOWN);
	assert_int_equal(told[2], 40);
	assert_int_equal(nodes[1], NOT_TOLD);
	assert_int_equal(nodes[2], 1);
}

static void the_kernel_forgets_the_utilization_while_the_driver_is_silent(void **state)
{
	CLEANUP(devices_free_cleanup) struct devices *devices = NULL;

	assert_int_equal(devices_new(NULL, NULL, NULL, NULL, &devices), 0);
	sampler.fresh = true;
	tick(devices, KERNEL);
	sampler.fresh = false;
	tick(devices, KERNEL);
	assert_false(devices_answer(devices));
	assert_int_equal(told[2], UNKNOWN);
	assert_int_equal(devices_samples(devices)->nr_devices, 2);
	sampler.fresh = true;
	tick(devices, KERNEL);
	assert_true(devices_answer(devices));
	assert_int_equal(told[2], 40);
	sampler.samples.nr_stalled = 1;
	tick(devices, KERNEL);
	assert_false(devices_answer(devices));
	assert_int_equal(told[2], UNKNOWN);
}

static void a_snapshot_gets_samples_of_its_own_time(void **state)
{
	CLEANUP(devices_free_cleanup) struct devices *devices = NULL;

	assert_int_equal(devices_new(NULL, NULL, NULL, NULL, &devices), 0);
	sampler.fresh = true;
	tick(devices, NULL);
	assert_int_equal(sampler.nr_ticks, 1);
	sampler.is_awaited = true;
	assert_false(devices_prepare(devices));
	sampler.is_awaited = false;
	sampler.samples.devices[1].utilisation = 90;
	assert_true(devices_prepare(devices));
	devices_update(devices);
	assert_int_equal(devices_samples(devices)->devices[1].utilisation, 90);
}

static void silence_before_the_first_answer_is_not_reported(void **state)
{
	CLEANUP(devices_free_cleanup) struct devices *devices = NULL;

	assert_int_equal(devices_new(NULL, NULL, NULL, NULL, &devices), 0);
	tick(devices, KERNEL);
	assert_true(devices_answer(devices));
	assert_int_equal(devices_samples(devices)->nr_devices, 0);
}

static void the_sampler_gets_the_processes_of_the_last_snapshot(void **state)
{
	static struct snapshot_process processes[NR_PIDS];
	struct snapshot last = { .processes = processes, .nr_processes = 2 };
	CLEANUP(devices_free_cleanup) struct devices *devices = NULL;

	for (u32 i = 0; i < NR_PIDS; i++)
		processes[i].pid = FIRST_PID + i;
	assert_int_equal(devices_new(NULL, NULL, NULL, NULL, &devices), 0);
	devices_tick(devices, NULL, &last);
	assert_int_equal(sampler.nr_pids, 2);
	assert_int_equal(sampler.pids[1], FIRST_PID + 1);
	last.nr_processes = NR_PIDS;
	devices_tick(devices, NULL, &last);
	assert_int_equal(sampler.nr_pids, GPU_MAX_PROCESSES);
	assert_int_equal(sampler.pids[GPU_MAX_PROCESSES - 1], FIRST_PID + GPU_MAX_PROCESSES - 1);
}

static void list_on_gpu_2(u32 pid, u64 at_ns)
{
	sampler.samples.nr_processes = 1;
	sampler.samples.processes[0] =
		(struct gpu_process_sample){ .pid = pid,
					     .gpu = 2,
					     .is_listed = 1,
					     .at_ns = at_ns,
					     .gpu_instance = GPU_NO_INSTANCE,
					     .compute_instance = GPU_NO_INSTANCE };
	sampler.fresh = true;
}

/* The process has existed for 100 ns, at a time of 1000 in one clock and of 5000 in the other. */
static void identify(struct devices *devices, u32 pid)
{
	struct process_state process = { .start_ns = 4900, .task = { .pid = pid, .has_gpu = 1 } };
	struct kernel_snapshot all = { .processes = &process, .nr_processes = 1 };

	devices_update(devices);
	devices_identify(devices, NULL, &all, 1000, 5000);
}

static void the_driver_tells_the_gpu_of_a_process(void **state)
{
	CLEANUP(devices_free_cleanup) struct devices *devices = NULL;

	assert_int_equal(devices_new(NULL, NULL, NULL, NULL, &devices), 0);
	facts.claims.used = 1 << 0;
	/* The list is older than the process. */
	list_on_gpu_2(7, 899);
	identify(devices, 7);
	assert_int_equal(nr_set, 1);
	assert_int_equal(numbers.of[0], 0);
	list_on_gpu_2(7, 900);
	identify(devices, 7);
	assert_int_equal(numbers.of[0], 3);
	assert_int_equal(numbers.basis[0], GPU_BASIS_DRIVER);
	/* Another process, and one that has ended. */
	identify(devices, 8);
	assert_int_equal(numbers.of[0], 0);
	identify(devices, 9);
	assert_int_equal(nr_set, 3);
	assert_int_equal(devices_nr_conflicts(devices), 0);
}

static void conflicts_are_counted_once(void **state)
{
	static const struct gpu_uuid uuid = { "0123456789abcdef" };
	CLEANUP(devices_free_cleanup) struct devices *devices = NULL;

	assert_int_equal(devices_new(NULL, NULL, NULL, NULL, &devices), 0);
	sampler.samples.devices[0].valid = GPU_HAS_UUID;
	strcpy(sampler.samples.devices[0].uuid, "GPU-0123456789abcdef");
	facts.claims.used = facts.holds = 1 << 0;
	facts.claims.told = GPU_CLAIM_BIT(0, GPU_CLAIM_UUID);
	memcpy(facts.claims.value[0][GPU_CLAIM_UUID], &uuid, sizeof(uuid));
	list_on_gpu_2(7, 900);
	for (u32 i = 0; i < 3; i++)
		identify(devices, 7);
	assert_int_equal(numbers.of[0], 0);
	assert_int_equal(numbers.basis[0], GPU_BASIS_CONFLICT);
	assert_int_equal(devices_nr_conflicts(devices), 1);
	sampler.samples.nr_processes = 0;
	identify(devices, 7);
	assert_int_equal(numbers.of[0], 2);
	list_on_gpu_2(7, 900);
	identify(devices, 7);
	assert_int_equal(devices_nr_conflicts(devices), 2);
}

int main(void)
{
	const struct CMUnitTest devices[] = {
		cmocka_unit_test_setup(the_driver_tells_the_gpu_of_a_process, start_afresh),
		cmocka_unit_test_setup(conflicts_are_counted_once, start_afresh),
		cmocka_unit_test_setup(the_kernel_gets_the_utilization, start_afresh),
		cmocka_unit_test_setup(
			the_kernel_forgets_the_utilization_while_the_driver_is_silent,
			start_afresh),
		cmocka_unit_test_setup(a_snapshot_gets_samples_of_its_own_time, start_afresh),
		cmocka_unit_test_setup(silence_before_the_first_answer_is_not_reported,
				       start_afresh),
		cmocka_unit_test_setup(the_sampler_gets_the_processes_of_the_last_snapshot,
				       start_afresh),
	};

	return cmocka_run_group_tests(devices, NULL, NULL);
}
