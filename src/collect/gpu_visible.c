/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_visible.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/file.h"

/*
 * A process can make its environment as large as its memory. Real ones are smaller than this:
 * by default, the kernel accepts 2 MiB at the most, together with the arguments.
 */
#define ENVIRONMENT_MAX (2 << 20)

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

/* The value of a variable, or NULL. The environment ends with a zero. */
static const char *variable_of(const char *environment, size_t size, const char *variable)
{
	size_t length = strlen(variable);

	for (const char *entry = environment; entry < environment + size;
	     entry += strlen(entry) + 1)
		if (strncmp(entry, variable, length) == 0)
			return entry + length;
	return NULL;
}

int gpu_visible_read(const char *proc, pid_t pid, enum runtime runtime, struct gpu_numbers *ret)
{
	CLEANUP_FREE char *environment = malloc(ENVIRONMENT_MAX);
	struct gpu_numbers numbers = gpu_visible_all();
	char path[PATH_MAX];
	ssize_t size;

	if (!environment)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/%d/environ", proc, (int)pid);
	size = file_read_text(path, environment, ENVIRONMENT_MAX);
	if (size < 0)
		return (int)size;
	if (size == ENVIRONMENT_MAX - 1)
		return -E2BIG;
	for (u32 i = 0; i < 2 && variables[runtime][i]; i++) {
		const char *list = variable_of(environment, (size_t)size, variables[runtime][i]);

		if (list)
			numbers = gpu_visible_by(&numbers, list);
	}
	*ret = numbers;
	return 0;
}
