/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_devices.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "base/macros.h"

/*
 * Only the files of a GPU itself. Monitoring tools also open the files with which a driver is
 * controlled (nvidiactl, nvidia-uvm), and desktop programs the primary nodes of DRM.
 */
static const struct gpu_device_range known[] = {
	{ 195, 0, 253, GPU_FILE_NVIDIA }, /* 254 and 255 control the driver */
	{ 226, 128, 191, GPU_FILE_RENDER },
};

/* Drivers whose major number the kernel assigns when they are loaded: their names. */
static const char *const dynamic[] = { "kfd" };

static void add(struct gpu_devices *devices, struct gpu_device_range range)
{
	if (devices->nr < GPU_DEVICE_RANGES_MAX)
		devices->ranges[devices->nr++] = range;
}

/* Block devices have their own numbers. They follow the character devices. */
static void add_dynamic(const char *proc, struct gpu_devices *devices)
{
	char path[PATH_MAX], line[128], name[64];
	unsigned int major;
	FILE *file;

	snprintf(path, sizeof(path), "%s/devices", proc);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && strncmp(line, "Block", 5) != 0)
		for (size_t i = 0; i < ARRAY_SIZE(dynamic); i++)
			if (sscanf(line, "%u %63s", &major, name) == 2 &&
			    strcmp(name, dynamic[i]) == 0)
				add(devices,
				    (struct gpu_device_range){ major, 0, 0, GPU_FILE_OTHER });
	if (file)
		fclose(file);
}

static bool add_file(const char *path, struct gpu_devices *devices)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
		return false;
	add(devices, (struct gpu_device_range){ major(st.st_rdev), minor(st.st_rdev),
						minor(st.st_rdev), GPU_FILE_OTHER });
	return true;
}

int gpu_devices_find(const char *proc, const char *files, struct gpu_devices *ret)
{
	struct gpu_devices devices = {};
	char path[PATH_MAX];
	int nr_missing = 0;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		add(&devices, known[i]);
	add_dynamic(proc, &devices);
	while (*files) {
		size_t length = strcspn(files, ",");

		snprintf(path, sizeof(path), "%.*s", (int)length, files);
		nr_missing += !add_file(path, &devices);
		files += length + (files[length] == ',');
	}
	*ret = devices;
	return nr_missing;
}
