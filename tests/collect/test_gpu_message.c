/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests that zerneld accepts no impossible sample of a process that samples GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "collect/gpu_message.h"

#define NOW_NS (1000 * NSEC_PER_SEC)

static struct gpu_reply reply;

static int start_afresh(void **state)
{
	struct gpu_sample *device = &reply.samples.devices[1];

	memset(&reply, 0, sizeof(reply));
	reply.samples.nr_devices = 2;
	reply.samples.nr_processes = 1;
	reply.samples.devices[0].numa_node = -1;
	*device = (struct gpu_sample){
		.valid = GPU_HAS_BUSY_TIME | GPU_HAS_NAME | GPU_IDENTITY | GPU_HAS_ACTIVE,
		.index = 1,
		.utilisation = 100,
		.numa_node = 3,
		.memory_used_bytes = UINT64_MAX,
		.active_ns = NOW_NS - 1,
		.active_at_ns = NOW_NS,
		.busy = { .busy_ns = 5, .since_ns = 10, .at_ns = 15, .counter = GPU_COUNTER_GPM },
		.pci_address = "0000:3b:00.0",
		.name = "A GPU (80 GB)",
		.uuid = "GPU-1234",
	};
	reply.samples.processes[0] = (struct gpu_process_sample){
		.valid = GPU_HAS_UTILISATION, .pid = 7, .gpu = 1, .utilisation = 100
	};
	reply.samples.nr_slices = 1;
	reply.samples.slices[0] = (struct gpu_slice_sample){ .gpu = 1, .uuid = "MIG-1234" };
	return 0;
}

static bool is_valid(void)
{
	return gpu_reply_is_valid(&reply, sizeof(reply), NOW_NS);
}

static void test_possible(void **state)
{
	assert_true(is_valid());
	memset(&reply, 0, sizeof(reply));
	assert_true(is_valid());
}

static void test_size(void **state)
{
	assert_false(gpu_reply_is_valid(&reply, sizeof(reply) - 1, NOW_NS));
	assert_false(gpu_reply_is_valid(&reply, 0, NOW_NS));
}

/* Sets one number to an impossible value. */
#define REJECTS(member, value)                                                                     \
	do {                                                                                       \
		start_afresh(NULL);                                                                \
		reply.samples.member = (value);                                                    \
		if (is_valid())                                                                    \
			fail_msg("%s = %s is accepted", #member, #value);                          \
	} while (0)

static void test_numbers(void **state)
{
	REJECTS(nr_devices, GPU_MAX_DEVICES + 1);
	REJECTS(nr_devices, UINT32_MAX);
	REJECTS(nr_devices, 1); /* the process uses the second one */
	REJECTS(nr_processes, GPU_MAX_PROCESSES + 1);
	REJECTS(nr_stalled, 1);
	REJECTS(devices[1].valid, GPU_HAS_RENDER_FILE << 1);
	REJECTS(devices[1].index, GPU_MAX_DEVICES);
	REJECTS(devices[1].numa_node, -2);
	REJECTS(devices[1].numa_node, 1024);
	REJECTS(devices[1].utilisation, 101);
	REJECTS(devices[1].active_ns, NOW_NS + 1);
	REJECTS(devices[1].active_at_ns, NOW_NS + 1);
	REJECTS(devices[1].busy.counter, GPU_COUNTER_NR);
	REJECTS(devices[1].busy.busy_ns, 6);
	REJECTS(devices[1].busy.since_ns, 16);
	REJECTS(devices[1].busy.at_ns, NOW_NS + 11 * NSEC_PER_SEC);
	REJECTS(devices[1].busy.period_ns, NOW_NS + 11 * NSEC_PER_SEC);
	REJECTS(processes[0].valid, GPU_HAS_NAME);
	REJECTS(processes[0].gpu, 2);
	REJECTS(processes[0].pid, 1U << 31);
	REJECTS(processes[0].utilisation, 101);
	REJECTS(processes[0].is_listed, 2);
	REJECTS(processes[0].at_ns, NOW_NS + 1);
	REJECTS(nr_slices, GPU_MAX_SLICES + 1);
	REJECTS(slices[0].gpu, 2);
	REJECTS(slices[0].uuid[0], '\n');
}

static void test_texts(void **state)
{
	struct gpu_sample *device = &reply.samples.devices[1];

	memset(device->name, 'a', sizeof(device->name));
	assert_false(is_valid());
	start_afresh(NULL);
	memset(device->uuid, 'a', sizeof(device->uuid));
	assert_false(is_valid());
	start_afresh(NULL);
	strcpy(device->name, "a\nb");
	assert_false(is_valid());
	strcpy(device->name, "a\x80");
	assert_false(is_valid());
	start_afresh(NULL);
	strcpy(device->pci_address, "../../etc");
	assert_false(is_valid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_possible, start_afresh),
		cmocka_unit_test_setup(test_size, start_afresh),
		cmocka_unit_test_setup(test_numbers, start_afresh),
		cmocka_unit_test_setup(test_texts, start_afresh),
	};

	return cmocka_run_group_tests_name("gpu messages", tests, NULL, NULL);
}
