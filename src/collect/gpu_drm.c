/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_drm.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/file.h"

#define VENDOR_NVIDIA  "0x10de"
#define QUEUES_MAX     1024
#define PROPERTIES_LEN 4096
#define PATH_LEN       (PATH_MAX + NAME_MAX + 16)

/* The next name that does not begin with a dot, or NULL. */
static const char *next_name(DIR *dir)
{
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			return entry->d_name;
	return NULL;
}

static bool find_render_file(const char *devices, const char *address, u32 *ret)
{
	CLEANUP_DIR DIR *dir = NULL;
	char path[PATH_LEN];
	const char *name;

	snprintf(path, sizeof(path), "%s/%s/drm", devices, address);
	dir = opendir(path);
	while ((name = next_name(dir)))
		if (sscanf(name, "renderD%u", ret) == 1)
			return true;
	return false;
}

static bool is_nvidia(const char *devices, const char *address)
{
	char path[PATH_LEN], text[16];

	snprintf(path, sizeof(path), "%s/%s/vendor", devices, address);
	return file_read_text(path, text, sizeof(text)) > 0 &&
	       strncmp(text, VENDOR_NVIDIA, strlen(VENDOR_NVIDIA)) == 0;
}

static int compare(const void *a, const void *b)
{
	const struct drm_gpu *x = a, *y = b;
	u64 left = 0, right = 0;

	gpu_pci_parse(x->address, sizeof(x->address), &left);
	gpu_pci_parse(y->address, sizeof(y->address), &right);
	return (left > right) - (left < right);
}

u32 drm_gpus_list(const char *sysfs, struct drm_gpu ret[GPU_MAX_DEVICES])
{
	CLEANUP_DIR DIR *dir = NULL;
	char devices[PATH_MAX];
	const char *name;
	u32 nr = 0;

	snprintf(devices, sizeof(devices), "%s/bus/pci/devices", sysfs);
	dir = opendir(devices);
	while (nr < GPU_MAX_DEVICES && (name = next_name(dir))) {
		u64 pci;

		if (strlen(name) >= GPU_ADDRESS_LEN || !gpu_pci_parse(name, strlen(name), &pci) ||
		    is_nvidia(devices, name) ||
		    !find_render_file(devices, name, &ret[nr].render_file))
			continue;
		snprintf(ret[nr].address, sizeof(ret[nr].address), "%s", name);
		nr++;
	}
	qsort(ret, nr, sizeof(*ret), compare);
	return nr;
}

/* The value of a line "NAME VALUE", or 0. */
static u64 property(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			return strtoull(line + length, NULL, 10);
		if (!*line)
			break;
	}
	return 0;
}

/* The location has the bus and the device; the bits above tell the parts of a GPU apart. */
static void set_address(const char *properties, struct kfd_gpu *gpu)
{
	u32 location = (u32)property(properties, "location_id");

	snprintf(gpu->address, sizeof(gpu->address), "%04x:%02x:%02x.%x",
		 (u32)property(properties, "domain"), location >> 8 & 0xff, location >> 3 & 0x1f,
		 location & 7);
}

u32 kfd_gpus_list(const char *sysfs, struct kfd_gpu ret[GPU_MAX_DEVICES])
{
	CLEANUP_DIR DIR *dir = NULL;
	char nodes[PATH_MAX], path[PATH_LEN], text[PROPERTIES_LEN];
	const char *name;
	u32 nr = 0;

	snprintf(nodes, sizeof(nodes), "%s/class/kfd/kfd/topology/nodes", sysfs);
	dir = opendir(nodes);
	while (nr < GPU_MAX_DEVICES && (name = next_name(dir))) {
		uint64_t gpu_id;

		snprintf(path, sizeof(path), "%s/%s/gpu_id", nodes, name);
		/* A node that is a CPU has the number 0. */
		if (file_read_number(path, &gpu_id) < 0 || !gpu_id || gpu_id > UINT32_MAX)
			continue;
		snprintf(path, sizeof(path), "%s/%s/properties", nodes, name);
		if (file_read_text(path, text, sizeof(text)) <= 0)
			continue;
		ret[nr].gpu_id = (u32)gpu_id;
		ret[nr].unique_id = property(text, "unique_id");
		set_address(text, &ret[nr++]);
	}
	return nr;
}

bool kfd_queues_list(const char *sysfs, u32 pid, void (*fn)(void *ctx, u32 gpu_id), void *ctx)
{
	CLEANUP_DIR DIR *dir = NULL;
	char queues[PATH_MAX], path[PATH_LEN];
	const char *name;
	u32 nr = 0;

	snprintf(queues, sizeof(queues), "%s/class/kfd/kfd/proc/%u/queues", sysfs, pid);
	dir = opendir(queues);
	while ((name = next_name(dir))) {
		uint64_t gpu_id;

		if (nr++ == QUEUES_MAX)
			return false;
		snprintf(path, sizeof(path), "%s/%s/gpuid", queues, name);
		if (file_read_number(path, &gpu_id) == 0 && gpu_id <= UINT32_MAX)
			fn(ctx, (u32)gpu_id);
	}
	return true;
}
