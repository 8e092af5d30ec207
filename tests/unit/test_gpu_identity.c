/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/gpu_identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define WHOLE	  GPU_NO_INSTANCE, GPU_NO_INSTANCE
#define UUID_0	  "GPU-00000000-0000-0000-0000-00000000000a"
#define UUID_2	  "GPU-22222222-2222-2222-2222-222222222222"
#define UUID_ELSE "GPU-99999999-9999-9999-9999-999999999999"
#define UUID_MIG  "MIG-33333333-3333-3333-3333-333333333301"
#define UUID_PART "MIG-33333333-3333-3333-3333-333333333302"
#define UUID_3	  "GPU-33333333-3333-3333-3333-333333333300"

static struct gpu_node node;
static struct gpu_facts facts;
static struct gpu_numbers numbers;

static void add_device(u32 gpu, const char *uuid, const char *pci, u32 nvidia)
{
	struct gpu_node_device *device = &node.devices[node.nr_devices++];

	device->gpu = gpu;
	device->has_uuid = gpu_uuid_parse(uuid, &device->uuid);
	device->has_pci = gpu_pci_parse(pci, strlen(pci), &device->pci);
	device->files[GPU_FILE_NVIDIA] = 1ULL << nvidia;
	assert_true(device->has_uuid && device->has_pci);
}

static void add_slice(const char *uuid, u32 gpu_instance)
{
	struct gpu_node_slice *slice = &node.slices[node.nr_slices++];

	slice->gpu = 3;
	slice->gpu_instance = gpu_instance;
	assert_true(gpu_uuid_parse(uuid, &slice->uuid));
}

/* GPU 3 is divided. The device files have other numbers than the GPUs. */
static int setup(void **state)
{
	memset(&node, 0, sizeof(node));
	memset(&facts, 0, sizeof(facts));
	add_device(0, UUID_0, "0000:10:00.0", 2);
	add_device(2, UUID_2, "0000:3b:00.0", 0);
	add_device(3, UUID_3, "0001:3b:00.0", 1);
	add_slice(UUID_MIG, 7);
	add_slice(UUID_PART, 8);
	return 0;
}

static void tell_bytes(u32 device, u32 claim, const void *bytes, size_t size)
{
	memset(facts.claims.value[device][claim], 0, GPU_CLAIM_BYTES);
	memcpy(facts.claims.value[device][claim], bytes, size);
	facts.claims.told |= GPU_CLAIM_BIT(device, claim);
}

static void tell(u32 device, u32 claim, const char *text)
{
	struct gpu_uuid uuid;

	if (claim == GPU_CLAIM_PCI) {
		tell_bytes(device, claim, text, strnlen(text, GPU_CLAIM_BYTES));
		return;
	}
	assert_true(gpu_uuid_parse(text, &uuid));
	tell_bytes(device, claim, &uuid, sizeof(uuid));
}

static void list(u32 gpu, u32 gpu_instance, u32 compute_instance)
{
	gpu_facts_add_place(&facts, &(struct gpu_place){ gpu, gpu_instance, compute_instance });
}

static void check(u32 device, u32 basis, s32 gpu, s32 gpu_instance)
{
	gpu_identify(&node, &facts, &numbers);
	assert_int_equal(numbers.basis[device], basis);
	assert_int_equal((s32)numbers.of[device] - 1, gpu);
	assert_int_equal((s32)numbers.gpu_instance[device] - 1, gpu_instance);
}

static void check_unknown(u32 device)
{
	check(device, GPU_BASIS_NONE, -1, -1);
}

static void test_texts(void **state)
{
	struct gpu_uuid uuid;
	u64 pci, other;

	assert_true(gpu_uuid_parse("GPU-7667707500000001", &uuid));
	assert_memory_equal(&uuid, "7667707500000001", sizeof(uuid));
	assert_true(gpu_uuid_parse("GPU-0123ABcd-0000-0000-0000-0000000000ff", &uuid));
	assert_memory_equal(&uuid, "\x01\x23\xab\xcd\0\0\0\0\0\0\0\0\0\0\0\xff", sizeof(uuid));
	assert_false(gpu_uuid_parse("0123abcd-0000-0000-0000-0000000000ff", &uuid));
	assert_false(gpu_uuid_parse("GPU-0123abcd-0000-0000-0000-0000000000f", &uuid));
	assert_false(gpu_uuid_parse("GPU-0123abcd00000-0000-0000-0000000000ff", &uuid));
	assert_false(gpu_uuid_parse("GPU-XX", &uuid));
	assert_false(gpu_uuid_parse("GPU-766770750000000g", &uuid));
	assert_false(gpu_uuid_parse("", &uuid));
	assert_true(gpu_pci_parse("0000:3B:00.0", 16, &pci));
	assert_true(gpu_pci_parse("00000000:3b:00.0", 16, &other));
	assert_int_equal(pci, other);
	assert_true(gpu_pci_parse("0001:3b:00.0", 12, &other));
	assert_int_not_equal(pci, other);
	assert_false(gpu_pci_parse("0000:3b:00.0x", 16, &pci));
	assert_false(gpu_pci_parse("0000:3b:00.", 16, &pci));
	assert_false(gpu_pci_parse("0000:3b:000.0", 16, &pci));
	assert_false(gpu_pci_parse("0000:3b:00", 10, &pci));
	assert_false(gpu_pci_parse("", 16, &pci));
	assert_false(gpu_pci_parse("", 0, &pci));
}

/* Device 0 of a container is GPU 2 of the machine. */
static void test_the_runtime_tells(void **state)
{
	facts.claims.used = 1 << 0;
	tell(0, GPU_CLAIM_PROPERTIES, UUID_2);
	check(0, GPU_BASIS_RUNTIME, 2, -1);
	tell(1, GPU_CLAIM_PCI, "0000:10:00.0");
	check(1, GPU_BASIS_RUNTIME, 0, -1);
	check_unknown(2);
}

static void test_a_gpu_that_the_machine_does_not_have_is_unknown(void **state)
{
	facts.claims.used = 1 << 0;
	tell(0, GPU_CLAIM_UUID, UUID_ELSE);
	check_unknown(0);
	/* Not even the driver's list is used then. */
	list(2, WHOLE);
	check_unknown(0);
	tell(0, GPU_CLAIM_UUID, UUID_2);
	tell(0, GPU_CLAIM_PCI, "0000:ff:00.0");
	check_unknown(0);
}

static void test_contradictions_of_the_runtime_are_unknown(void **state)
{
	tell(0, GPU_CLAIM_UUID, UUID_2);
	tell(0, GPU_CLAIM_PCI, "0000:10:00.0");
	check_unknown(0);
	tell(0, GPU_CLAIM_PCI, "0000:3b:00.0");
	check(0, GPU_BASIS_RUNTIME, 2, -1);
	facts.claims.mixed = 1 << 0;
	check_unknown(0);
	tell(1, GPU_CLAIM_PROPERTIES, UUID_MIG);
	tell(1, GPU_CLAIM_UUID_PART, UUID_PART);
	check_unknown(1);
}

static void test_a_runtime_without_uuids(void **state)
{
	facts.claims.used = 1 << 0;
	tell_bytes(0, GPU_CLAIM_PROPERTIES, "XX", 2);
	tell_bytes(0, GPU_CLAIM_UUID, "", 0);
	check_unknown(0);
	list(2, WHOLE);
	check(0, GPU_BASIS_DRIVER, 2, -1);
}

static void test_the_driver_lists_the_process(void **state)
{
	facts.claims.used = 1 << 5;
	list(2, WHOLE);
	check(5, GPU_BASIS_DRIVER, 2, -1);
	check_unknown(0);
	list(2, WHOLE);
	check(5, GPU_BASIS_DRIVER, 2, -1);
	/* Which of them is it? */
	list(0, WHOLE);
	check_unknown(5);
}

static void test_lists_do_not_order_several_devices(void **state)
{
	facts.claims.used = 1 << 0 | 1 << 1;
	list(2, WHOLE);
	check_unknown(0);
	check_unknown(1);
}

static void test_the_runtime_and_the_driver_disagree(void **state)
{
	facts.claims.used = 1 << 0;
	facts.holds = 1 << 0;
	tell(0, GPU_CLAIM_PROPERTIES, UUID_2);
	list(0, WHOLE);
	check(0, GPU_BASIS_CONFLICT, -1, -1);
	/* The process has a context on GPU 0, too. */
	list(2, WHOLE);
	check(0, GPU_BASIS_RUNTIME, 2, -1);
}

/* A device without memory need not have a context, and the driver lists only contexts. */
static void test_a_device_without_memory_cannot_disagree(void **state)
{
	tell(1, GPU_CLAIM_PROPERTIES, UUID_2);
	list(0, WHOLE);
	check(1, GPU_BASIS_RUNTIME, 2, -1);
}

static void test_parts(void **state)
{
	facts.claims.used = 1 << 0;
	list(3, 8, 0);
	check(0, GPU_BASIS_DRIVER, 3, 8);
	tell(0, GPU_CLAIM_UUID, UUID_3);
	check(0, GPU_BASIS_RUNTIME, 3, 8);
	tell(0, GPU_CLAIM_UUID_PART, UUID_PART);
	check(0, GPU_BASIS_RUNTIME, 3, 8);
	facts.holds = 1 << 0;
	tell(0, GPU_CLAIM_UUID_PART, UUID_MIG);
	check(0, GPU_BASIS_CONFLICT, -1, -1);
	facts.nr_places = 0;
	check(0, GPU_BASIS_RUNTIME, 3, 7);
}

/* The list of the whole GPU and that of the part are about the same place. */
static void test_a_list_without_parts(void **state)
{
	facts.claims.used = 1 << 0;
	list(3, WHOLE);
	list(3, 8, 0);
	check(0, GPU_BASIS_DRIVER, 3, 8);
	facts.nr_places = 0;
	list(3, 8, 0);
	list(3, WHOLE);
	check(0, GPU_BASIS_DRIVER, 3, 8);
	list(3, 7, 0);
	check_unknown(0);
}

static void test_device_files(void **state)
{
	facts.claims.used = 1 << 0;
	facts.opened.files[GPU_FILE_OTHER] = 1;
	check_unknown(0);
	facts.opened.files[GPU_FILE_NVIDIA] = 1 << 0;
	check(0, GPU_BASIS_FILE, 2, -1);
	/* The list is better than the file. */
	list(0, WHOLE);
	check(0, GPU_BASIS_DRIVER, 0, -1);
	facts.nr_places = 0;
	facts.opened.files[GPU_FILE_NVIDIA] = 1 << 0 | 1 << 1;
	check_unknown(0);
	facts.opened.files[GPU_FILE_NVIDIA] = 1 << 7;
	check_unknown(0);
	facts.opened.files[GPU_FILE_NVIDIA] = 1 << 0;
	facts.opened.files[GPU_FILE_RENDER] = 1 << 0;
	check_unknown(0);
	facts.opened.files[GPU_FILE_RENDER] = 0;
	facts.claims.used = 1 << 0 | 1 << 1;
	check_unknown(0);
}

static void test_lost_places(void **state)
{
	facts.claims.used = 1 << 0;
	facts.holds = 1 << 0;
	facts.opened.files[GPU_FILE_NVIDIA] = 1 << 0;
	for (u32 i = 0; i <= GPU_PLACES_MAX; i++)
		list(3, i, 0);
	check_unknown(0);
	tell(0, GPU_CLAIM_UUID, UUID_0);
	check(0, GPU_BASIS_RUNTIME, 0, -1);
}

static void test_a_gpu_without_a_number_for_bpf_is_unknown(void **state)
{
	node.devices[0].gpu = GPU_MAX;
	tell(0, GPU_CLAIM_UUID, UUID_0);
	check_unknown(0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		TEST(test_texts),
		TEST(test_the_runtime_tells),
		TEST(test_a_gpu_that_the_machine_does_not_have_is_unknown),
		TEST(test_contradictions_of_the_runtime_are_unknown),
		TEST(test_a_runtime_without_uuids),
		TEST(test_the_driver_lists_the_process),
		TEST(test_lists_do_not_order_several_devices),
		TEST(test_the_runtime_and_the_driver_disagree),
		TEST(test_a_device_without_memory_cannot_disagree),
		TEST(test_parts),
		TEST(test_a_list_without_parts),
		TEST(test_device_files),
		TEST(test_lost_places),
		TEST(test_a_gpu_without_a_number_for_bpf_is_unknown),
	};

	return cmocka_run_group_tests_name("gpu_identity", tests, NULL, NULL);
}
