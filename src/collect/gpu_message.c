/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_message.h"

#include <stdint.h>
#include <string.h>
#include "base/socket.h"
#include "base/time.h"

#define DEVICE_FIELDS  (GPU_HAS_RENDER_FILE * 2 - 1)
#define PROCESS_FIELDS (GPU_HAS_UTILISATION | GPU_HAS_MEMORY_USED)
#define NODE_MAX       1023
#define PERCENT_MAX    100
/* Requests between two attempts to open a source. */
#define RETRY_REQUESTS 16
/* The driver's clock can be ahead by a sample. */
#define AHEAD_NS       (10 * NSEC_PER_SEC)

/* `allowed` is NULL for all printable characters. */
static bool text_is_valid(const char *text, size_t size, const char *allowed)
{
	const char *end = memchr(text, '\0', size);

	if (!end)
		return false;
	for (; text < end; text++)
		if (*text < ' ' || *text > '~' || (allowed && !strchr(allowed, *text)))
			return false;
	return true;
}

static bool busy_is_valid(const struct gpu_busy_time *busy, u64 now_ns)
{
	return busy->counter < GPU_COUNTER_NR && busy->since_ns <= busy->at_ns &&
	       busy->at_ns <= now_ns + AHEAD_NS && busy->busy_ns <= busy->at_ns - busy->since_ns &&
	       busy->period_ns <= now_ns + AHEAD_NS;
}

/* Every number of bytes and of joules is possible, and is only shown. */
static bool device_is_valid(const struct gpu_sample *device, u64 now_ns)
{
	return !(device->valid & ~(u32)DEVICE_FIELDS) && device->index < GPU_MAX_DEVICES &&
	       device->numa_node >= -1 && device->numa_node <= NODE_MAX &&
	       device->utilisation <= PERCENT_MAX && device->active_ns <= device->active_at_ns &&
	       device->active_at_ns <= now_ns && busy_is_valid(&device->busy, now_ns) &&
	       text_is_valid(device->pci_address, sizeof(device->pci_address),
			     "0123456789abcdef:.") &&
	       text_is_valid(device->name, sizeof(device->name), NULL) &&
	       text_is_valid(device->uuid, sizeof(device->uuid), NULL);
}

/* Every number of a part is possible, and is only compared and shown. */
static bool slice_is_valid(const struct gpu_slice_sample *slice, u32 nr_devices)
{
	return slice->gpu < nr_devices && text_is_valid(slice->uuid, sizeof(slice->uuid), NULL);
}

static bool process_is_valid(const struct gpu_process_sample *process, u32 nr_devices, u64 now_ns)
{
	return !(process->valid & ~(u32)PROCESS_FIELDS) && process->gpu < nr_devices &&
	       process->pid <= INT32_MAX && process->utilisation <= PERCENT_MAX &&
	       process->is_listed <= 1 && process->at_ns <= now_ns;
}

bool gpu_reply_is_valid(const struct gpu_reply *reply, size_t size, u64 now_ns)
{
	const struct gpu_samples *samples = &reply->samples;

	if (size != sizeof(*reply) || samples->nr_devices > GPU_MAX_DEVICES ||
	    samples->nr_slices > GPU_MAX_SLICES || samples->nr_processes > GPU_MAX_PROCESSES ||
	    samples->nr_stalled)
		return false;
	for (u32 i = 0; i < samples->nr_devices; i++)
		if (!device_is_valid(&samples->devices[i], now_ns))
			return false;
	for (u32 i = 0; i < samples->nr_processes; i++)
		if (!process_is_valid(&samples->processes[i], samples->nr_devices, now_ns))
			return false;
	for (u32 i = 0; i < samples->nr_slices; i++)
		if (!slice_is_valid(&samples->slices[i], samples->nr_devices))
			return false;
	return true;
}

void gpu_serve(int socket, const struct gpu_source_ops *ops, const struct gpu_config *config)
{
	static struct gpu_request request; /* too large for a stack */
	static struct gpu_reply reply;
	void *source = NULL;
	bool is_open = ops->open(config, &source) == 0;

	while (socket_receive(socket, 0, &request, sizeof(request), NULL) == sizeof(request) &&
	       request.nr_pids <= GPU_MAX_PROCESSES) {
		memset(&reply, 0, sizeof(reply));
		reply.number = request.number;
		/* A driver can be loaded later. */
		if (!is_open && request.number % RETRY_REQUESTS == 0)
			is_open = ops->open(config, &source) == 0;
		if (is_open)
			(void)ops->sample(source, request.pids, request.nr_pids, time_now_ns(),
					  &reply.samples);
		if (socket_send(socket, 0, &reply, sizeof(reply), -1) < 0)
			break;
	}
}
