/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_fdinfo_clients.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/cleanup.h"

/* A process can open a GPU as often as it likes, so no tenant may have all of them. */
#define MAX_CLIENTS 1024

struct engine {
	char name[FDINFO_NAME_LEN];
	u64 capacity;
};

/* The use of a GPU, or by a process, since the last sample. */
struct use {
	bool measured;
	u64 busy_ns[FDINFO_ENGINES];
};

/* A GPU that was seen once stays in the table, so that its index does not change. */
struct device {
	char key[FDINFO_NAME_LEN]; /* the PCI address, or the driver when there is no address */
	u32 nr_engines;
	struct engine engines[FDINFO_ENGINES];
	struct gpu_sample identity;
	struct use use;
	bool incomplete; /* the use of some client since the last sample is not known */
	struct gpu_busy_time busy;
};

/* The maximum of each counter of an engine, because counters of some drivers decrease at times. */
struct counters {
	u32 valid;
	u64 value[FDINFO_FIELDS];
};

struct client {
	u32 device;
	u32 pid;
	struct tenant tenant; /* the first one that had it */
	u64 id;
	u64 seen; /* number of the sample in which it was last seen */
	bool has_before;
	bool has_resident;
	u64 resident_bytes;
	struct counters before[FDINFO_ENGINES];
	struct counters now[FDINFO_ENGINES];
};

struct process {
	u32 pid;
	u32 device;
	bool has_resident;
	u64 resident_bytes;
	struct use use;
};

struct drm_clients {
	const char *sysfs;
	u64 nr_samples;
	u64 now_ns;
	u64 interval_ns;
	u32 nr_dropped;
	u32 nr_devices;
	u32 nr_clients;
	u32 nr_processes;
	struct device devices[GPU_MAX_DEVICES];
	struct client clients[MAX_CLIENTS];
	struct process processes[GPU_MAX_PROCESSES];
};

int drm_clients_new(const char *sysfs, struct drm_clients **ret)
{
	struct drm_clients *clients = calloc(1, sizeof(*clients));

	if (!clients)
		return -ENOMEM;
	clients->sysfs = sysfs;
	*ret = clients;
	return 0;
}

struct drm_clients *drm_clients_free(struct drm_clients *clients)
{
	free(clients);
	return NULL;
}

void drm_clients_begin(struct drm_clients *clients, u64 now_ns)
{
	bool later = clients->nr_samples++ && now_ns > clients->now_ns;

	clients->interval_ns = later ? now_ns - clients->now_ns : 0;
	clients->now_ns = now_ns;
	clients->nr_dropped = 0;
	clients->nr_processes = 0;
	for (u32 i = 0; i < clients->nr_devices; i++) {
		clients->devices[i].use = (struct use){};
		clients->devices[i].incomplete = false;
	}
}

static struct device *device_by_key(struct drm_clients *clients, const char *key)
{
	struct device *device;

	for (u32 i = 0; i < clients->nr_devices; i++)
		if (!strcmp(clients->devices[i].key, key))
			return &clients->devices[i];
	if (clients->nr_devices == GPU_MAX_DEVICES)
		return NULL;
	device = &clients->devices[clients->nr_devices++];
	*device = (struct device){ .identity = { .numa_node = -1 } };
	snprintf(device->key, sizeof(device->key), "%s", key);
	return device;
}

static void set_address(const struct drm_clients *clients, struct device *device)
{
	if (!(device->identity.valid & GPU_HAS_PCI_ADDRESS))
		gpu_sample_set_address(&device->identity, clients->sysfs, device->key);
}

static struct device *device_of(struct drm_clients *clients, const struct fdinfo *info)
{
	bool is_pci = info->valid & FDINFO_HAS(FDINFO_PDEV);
	struct device *device = device_by_key(clients, is_pci ? info->pdev : info->driver);

	if (!device)
		return NULL;
	memcpy(device->identity.name, info->driver, sizeof(info->driver));
	device->identity.valid |= GPU_HAS_NAME;
	if (is_pci)
		set_address(clients, device);
	return device;
}

int drm_clients_device(struct drm_clients *clients, const char *address,
		       const struct gpu_sample *identity)
{
	struct device *device = device_by_key(clients, address);
	struct gpu_sample *known;

	if (!device)
		return -ENOSPC;
	known = &device->identity;
	set_address(clients, device);
	if (identity->valid & GPU_HAS_UUID)
		memcpy(known->uuid, identity->uuid, sizeof(known->uuid));
	if (identity->valid & GPU_HAS_RENDER_FILE)
		known->render_file = identity->render_file;
	known->valid |= identity->valid & (GPU_HAS_UUID | GPU_HAS_RENDER_FILE);
	return (int)(device - clients->devices);
}

static struct client *client_of(struct drm_clients *clients, const struct tenant *tenant,
				u32 device, u64 id)
{
	struct tenant_count count = {};
	struct client *client;

	for (u32 i = 0; i < clients->nr_clients; i++) {
		client = &clients->clients[i];
		if (client->id == id && client->device == device)
			return client;
		tenant_count(&count, tenant, &client->tenant, 1);
	}
	if (clients->nr_clients == MAX_CLIENTS || !tenant_has_room(&count, 1, MAX_CLIENTS))
		return NULL;
	client = &clients->clients[clients->nr_clients++];
	*client = (struct client){ .device = device, .tenant = *tenant, .id = id };
	return client;
}

static struct engine *engine_of(struct device *device, const char *name)
{
	struct engine *engine;

	for (u32 i = 0; i < device->nr_engines; i++)
		if (!strcmp(device->engines[i].name, name))
			return &device->engines[i];
	if (device->nr_engines == FDINFO_ENGINES)
		return NULL;
	engine = &device->engines[device->nr_engines++];
	*engine = (struct engine){ .capacity = 1 };
	memcpy(engine->name, name, sizeof(engine->name));
	return engine;
}

static void take_engine(struct drm_clients *clients, struct device *device, struct client *client,
			const struct fdinfo_item *item)
{
	struct engine *engine = engine_of(device, item->name);
	struct counters *now;

	if (!engine) {
		clients->nr_dropped++;
		return;
	}
	if (item->valid & FDINFO_HAS(FDINFO_CAPACITY) && item->value[FDINFO_CAPACITY])
		engine->capacity = item->value[FDINFO_CAPACITY];
	now = &client->now[engine - device->engines];
	now->valid |= item->valid;
	for (u32 f = 0; f < FDINFO_FIELDS; f++)
		if (item->value[f] > now->value[f])
			now->value[f] = item->value[f];
}

void drm_clients_add(struct drm_clients *clients, u32 pid, const struct tenant *tenant,
		     const struct fdinfo *info)
{
	struct device *device = NULL;
	struct client *client = NULL;

	clients->nr_dropped += info->nr_left_out;
	/* Without an id, a client could be counted twice. */
	if (info->valid & FDINFO_HAS(FDINFO_CLIENT_ID))
		device = device_of(clients, info);
	if (device)
		client = client_of(clients, tenant, (u32)(device - clients->devices),
				   info->client_id);
	if (!client) {
		clients->nr_dropped++;
		return;
	}
	if (client->seen != clients->nr_samples)
		client->pid = pid;
	client->seen = clients->nr_samples;
	client->has_resident = !fdinfo_resident(info, &client->resident_bytes);
	for (u32 i = 0; i < info->nr_engines; i++)
		take_engine(clients, device, client, &info->engines[i]);
}

static u64 scale(u64 value, u64 by, u64 of)
{
	unsigned __int128 scaled = (unsigned __int128)value * by / of;

	return scaled > ~0ULL ? ~0ULL : (u64)scaled;
}

/*
 * Busy time since the last sample. -ENODATA: the driver does not report it. Busy cycles are
 * converted with their share of the total cycles in the interval.
 */
static int busy_since(const struct counters *before, const struct counters *now, u64 interval_ns,
		      u64 *ret)
{
	u64 cycles = now->value[FDINFO_CYCLES] - before->value[FDINFO_CYCLES];
	u64 total = now->value[FDINFO_TOTAL_CYCLES] - before->value[FDINFO_TOTAL_CYCLES];

	if (now->valid & FDINFO_HAS(FDINFO_BUSY_NS))
		*ret = now->value[FDINFO_BUSY_NS] - before->value[FDINFO_BUSY_NS];
	else if (before->valid & now->valid & FDINFO_HAS(FDINFO_TOTAL_CYCLES) && total)
		*ret = scale(cycles, interval_ns, total);
	else
		return -ENODATA;
	return 0;
}

static struct process *process_of(struct drm_clients *clients, const struct client *client)
{
	struct process *process;

	for (u32 i = 0; i < clients->nr_processes; i++) {
		process = &clients->processes[i];
		if (process->pid == client->pid && process->device == client->device)
			return process;
	}
	if (clients->nr_processes == GPU_MAX_PROCESSES) {
		clients->nr_dropped++;
		return NULL;
	}
	process = &clients->processes[clients->nr_processes++];
	*process = (struct process){ .pid = client->pid, .device = client->device };
	return process;
}

static void use_add(struct use *use, u32 engine, u64 busy_ns)
{
	use->measured = true;
	if (__builtin_add_overflow(use->busy_ns[engine], busy_ns, &use->busy_ns[engine]))
		use->busy_ns[engine] = ~0ULL;
}

/* Adds the use of a client to its GPU and its process. */
static void charge(struct drm_clients *clients, struct client *client)
{
	struct device *device = &clients->devices[client->device];
	struct process *process = process_of(clients, client);

	for (u32 i = 0; client->has_before && clients->interval_ns && i < device->nr_engines; i++) {
		u64 busy_ns;

		if (busy_since(&client->before[i], &client->now[i], clients->interval_ns,
			       &busy_ns) < 0)
			continue;
		use_add(&device->use, i, busy_ns);
		if (process)
			use_add(&process->use, i, busy_ns);
	}
	device->incomplete |= !client->has_before;
	memcpy(client->before, client->now, sizeof(client->before));
	client->has_before = true;
	if (!process || !client->has_resident)
		return;
	process->has_resident = true;
	if (__builtin_add_overflow(process->resident_bytes, client->resident_bytes,
				   &process->resident_bytes))
		process->resident_bytes = ~0ULL;
}

/* The use of the busiest engine: a GPU with an idle copy engine can still be fully used. */
static u64 busiest(const struct drm_clients *clients, const struct device *device,
		   const struct use *use, u64 whole)
{
	u64 highest = 0;

	for (u32 i = 0; i < device->nr_engines; i++) {
		u64 room = scale(device->engines[i].capacity, clients->interval_ns, 1);
		u64 part = scale(use->busy_ns[i], whole, room);

		highest = part > highest ? part : highest;
	}
	return highest > whole ? whole : highest;
}

static u32 percent(const struct drm_clients *clients, const struct device *device,
		   const struct use *use)
{
	u64 halves = busiest(clients, device, use, 200);

	return (u32)(halves / 2 + halves % 2);
}

/* Adds the interval to the sum. Where the use of a client is not known, the sum starts again. */
static void sum_busy(const struct drm_clients *clients, struct device *device)
{
	struct gpu_busy_time *busy = &device->busy;

	if (!device->use.measured || device->incomplete) {
		*busy = (struct gpu_busy_time){
			.since_ns = clients->now_ns,
			.counter = GPU_COUNTER_ENGINE,
		};
		return;
	}
	busy->busy_ns += busiest(clients, device, &device->use, clients->interval_ns);
	busy->at_ns = clients->now_ns;
	busy->period_ns = clients->interval_ns;
}

static void report_devices(struct drm_clients *clients, struct gpu_samples *samples)
{
	for (u32 i = 0; i < clients->nr_devices; i++) {
		struct device *device = &clients->devices[i];
		struct gpu_sample *sample = gpu_samples_add_device(samples);

		sum_busy(clients, device);
		if (!sample)
			continue;
		*sample = device->identity;
		sample->index = i;
		if (!device->use.measured)
			continue;
		sample->utilisation = percent(clients, device, &device->use);
		sample->valid |= GPU_HAS_UTILISATION;
		if (!device->busy.at_ns)
			continue;
		sample->busy = device->busy;
		sample->valid |= GPU_HAS_BUSY_TIME;
	}
}

static void report_processes(const struct drm_clients *clients, struct gpu_samples *samples)
{
	for (u32 i = 0; i < clients->nr_processes; i++) {
		const struct process *process = &clients->processes[i];
		struct gpu_process_sample *sample = gpu_samples_add_process(samples);

		if (!sample)
			continue;
		sample->pid = process->pid;
		sample->gpu = process->device;
		if (process->has_resident) {
			sample->memory_used_bytes = process->resident_bytes;
			sample->valid |= GPU_HAS_MEMORY_USED;
		}
		if (process->use.measured) {
			sample->utilisation =
				percent(clients, &clients->devices[process->device], &process->use);
			sample->valid |= GPU_HAS_UTILISATION;
		}
	}
}

void drm_clients_end(struct drm_clients *clients, struct gpu_samples *samples)
{
	for (u32 i = 0; i < clients->nr_clients;) {
		struct client *client = &clients->clients[i];

		if (client->seen == clients->nr_samples) {
			charge(clients, client);
			i++;
		} else {
			clients->devices[client->device].incomplete = true;
			*client = clients->clients[--clients->nr_clients];
		}
	}
	report_devices(clients, samples);
	report_processes(clients, samples);
	samples->nr_dropped += clients->nr_dropped;
}
