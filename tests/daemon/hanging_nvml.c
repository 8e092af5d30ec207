/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The NVML of tests/collect. It hangs while the file FAKE_KERNEL/hang exists. It stays loaded
 * after dlclose(), because its thread keeps running.
 */
#include <pthread.h>
#include <stdlib.h>

#include "collect/fake_nvml.c"

/* Only the second device reports its NUMA node. */
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
	*node = 3;
	return device->index == 1 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static void *watch(void *argument)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/hang", getenv("FAKE_KERNEL"));
	for (;;) {
		fake_nvml.hang_utilization = access(path, F_OK) == 0;
		usleep(10000);
	}
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	if (getenv("FAKE_KERNEL"))
		pthread_create(&thread, NULL, watch, NULL);
}
