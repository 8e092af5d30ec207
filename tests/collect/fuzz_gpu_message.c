/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Checks arbitrary bytes as a reply of a process that samples GPUs. zerneld uses an accepted reply
 * like its own data: the reply is merged with another one, and every text is read to its end.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "collect/gpu_merge.h"
#include "collect/gpu_message.h"

#define NOW (1000 * NSEC_PER_SEC)

static void check(const struct gpu_samples *samples)
{
	REQUIRE(samples->nr_devices <= GPU_MAX_DEVICES);
	REQUIRE(samples->nr_processes <= GPU_MAX_PROCESSES);
	for (u32 i = 0; i < samples->nr_devices; i++) {
		const struct gpu_sample *device = &samples->devices[i];

		REQUIRE(device->index < GPU_MAX_DEVICES && device->utilisation <= 100);
		REQUIRE(strlen(device->name) < sizeof(device->name));
		REQUIRE(strlen(device->uuid) < sizeof(device->uuid));
		REQUIRE(!strpbrk(device->name, "\n\x1b") && !strpbrk(device->uuid, "\n\x1b"));
		REQUIRE(!strchr(device->pci_address, '/'));
		REQUIRE(device->busy.counter < GPU_COUNTER_NR);
	}
	for (u32 i = 0; i < samples->nr_processes; i++)
		REQUIRE(samples->processes[i].gpu < samples->nr_devices);
	REQUIRE(samples->nr_slices <= GPU_MAX_SLICES);
	for (u32 i = 0; i < samples->nr_slices; i++) {
		REQUIRE(samples->slices[i].gpu < samples->nr_devices);
		REQUIRE(strlen(samples->slices[i].uuid) < sizeof(samples->slices[i].uuid));
	}
}

/* The input is the begin of a reply, whose rest is zero, and its size: replies are large. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpu_reply reply;
	static struct gpu_samples merged;
	static struct gpu_merge merge;

	if (size > sizeof(reply))
		return 0;
	memset(&reply, 0, sizeof(reply));
	memcpy(&reply, data, size);
	REQUIRE(size == sizeof(reply) || !gpu_reply_is_valid(&reply, size, NOW));
	if (!gpu_reply_is_valid(&reply, sizeof(reply), NOW))
		return 0;
	check(&reply.samples);
	memset(&merged, 0, sizeof(merged));
	memset(&merge, 0, sizeof(merge));
	for (u32 source = 0; source < GPU_SOURCE_NR; source++)
		gpu_merge_add(&merge, source, &reply.samples, &merged);
	check(&merged);
	return 0;
}
