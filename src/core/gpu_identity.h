/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which GPU of the machine a device of a process is. A process numbers the devices that it sees,
 * and a container or a variable of its environment decides what it sees: device 0 of a container
 * can be GPU 2 of the machine. So the number and the environment are never used. In this order:
 *
 * 1. What the runtime of the process returned to it: a UUID or a PCI address.
 * 2. The driver's list of the processes on each GPU, if the process uses one device.
 * 3. The device files that the process has opened, if it uses one device and has opened one file.
 *
 * Otherwise the GPU is unknown. It is also unknown if the runtime names a GPU that this machine
 * does not have, contradicts itself, or contradicts the driver: a process can replace its
 * runtime, and the driver's list can be older than the process's last call.
 */
#include <stdbool.h>
#include <stddef.h>
#include "abi/signals.h"
#include "core/gpu_device.h"

#define GPU_NODE_DEVICES 64
#define GPU_NODE_SLICES	 128
#define GPU_PLACES_MAX	 32
#define GPU_NO_INSTANCE	 (~0U)

struct gpu_uuid {
	u8 bytes[GPU_CLAIM_BYTES];
};

/* A part of a GPU (MIG). */
struct gpu_node_slice {
	u32 gpu; /* number of the GPU */
	u32 gpu_instance;
	u32 compute_instance;
	struct gpu_uuid uuid;
};

struct gpu_node_device {
	u32 gpu; /* number of the GPU */
	bool has_uuid;
	bool has_pci;
	struct gpu_uuid uuid;
	u64 pci;
	u64 files[GPU_FILE_NR]; /* the bit of its device file of each kind, or 0 */
};

/* All GPUs of the machine. */
struct gpu_node {
	u32 nr_devices;
	u32 nr_slices;
	struct gpu_node_device devices[GPU_NODE_DEVICES];
	struct gpu_node_slice slices[GPU_NODE_SLICES];
};

/* A GPU, or a part of one, that the driver lists a process on. */
struct gpu_place {
	u32 gpu;
	u32 gpu_instance; /* GPU_NO_INSTANCE: the whole GPU, or unknown */
	u32 compute_instance;
};

/* All that is known about the devices of a process. */
struct gpu_facts {
	struct gpu_claims claims;
	struct gpu_opened opened;
	u32 holds; /* a bit for each device with memory of the process, so the driver knows it */
	u32 nr_places; /* more than GPU_PLACES_MAX: they are not all known */
	struct gpu_place places[GPU_PLACES_MAX];
};

/*
 * "GPU-" or "MIG-" and a UUID, or, for AMD, "GPU-" and 16 digits, whose text is the UUID in HIP.
 * Returns false for any other text.
 */
bool gpu_uuid_parse(const char *text, struct gpu_uuid *ret);

/* "0000:3b:00.0"; the domain can have eight digits. The text may end at `size`. */
bool gpu_pci_parse(const char *text, size_t size, u64 *ret);

/* A place that does not fit means that the places are unknown, as gpu_facts_lose_places() says. */
void gpu_facts_add_place(struct gpu_facts *facts, const struct gpu_place *place);
void gpu_facts_lose_places(struct gpu_facts *facts);

void gpu_identify(const struct gpu_node *node, const struct gpu_facts *facts,
		  struct gpu_numbers *ret);
