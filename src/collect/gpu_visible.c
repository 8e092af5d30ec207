/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_visible.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"

/* The variables that a runtime reads, in the order in which they apply. */
static const char *const variables[RUNTIME_NR][2] = {
	[RUNTIME_CUDA_DRIVER] = { "CUDA_VISIBLE_DEVICES=" },
	[RUNTIME_CUDA] = { "CUDA_VISIBLE_DEVICES=" },
	[RUNTIME_HIP] = { "ROCR_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=" },
};

struct gpu_numbers gpu_visible_all(void)
{
	struct gpu_numbers numbers;

	for (u32 i = 0; i < GPU_MAX; i++)
		numbers.of[i] = (u8)(i + 1);
	return numbers;
}

static bool is_uuid(const char *entry)
{
	return strncmp(entry, "GPU-", 4) == 0 || strncmp(entry, "MIG-", 4) == 0;
}

/* Like in the runtimes, the list ends at the first entry that is not a device. */
struct gpu_numbers gpu_visible_by(const struct gpu_numbers *numbers, const char *list)
{
	struct gpu_numbers visible = {};

	for (u32 i = 0; i < GPU_MAX; i++) {
		size_t length = strcspn(list, ",");
		char *end;
		unsigned long index = strtoul(list, &end, 10);

		if (!is_uuid(list)) {
			if (*list < '0' || *list > '9' || end != list + length || index >= GPU_MAX)
				break;
			visible.of[i] = numbers->of[index];
		}
		if (!list[length])
			break;
		list += length + 1;
	}
	return visible;
}

/* The value of a variable, which the caller frees, or NULL. */
static char *variable_of(FILE *environment, const char *variable)
{
	CLEANUP_FREE char *entry = NULL;
	size_t length = strlen(variable), room = 0;

	rewind(environment);
	while (getdelim(&entry, &room, '\0', environment) > 0)
		if (strncmp(entry, variable, length) == 0)
			return strdup(entry + length);
	return NULL;
}

int gpu_visible_read(const char *proc, pid_t pid, enum runtime runtime, struct gpu_numbers *ret)
{
	struct gpu_numbers numbers = gpu_visible_all();
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d/environ", proc, (int)pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	for (u32 i = 0; i < 2 && variables[runtime][i]; i++) {
		CLEANUP_FREE char *list = variable_of(file, variables[runtime][i]);

		if (list)
			numbers = gpu_visible_by(&numbers, list);
	}
	fclose(file);
	*ret = numbers;
	return 0;
}
