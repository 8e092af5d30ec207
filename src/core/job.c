/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/job.h"
#include <string.h>
#include "abi/types.h"
#include "base/macros.h"

#define POD_UID_LEN 36

static void copy(char *to, size_t size, const char *prefix, const char *from, size_t length)
{
	size_t used = strlen(prefix) < size - 1 ? strlen(prefix) : size - 1;

	memcpy(to, prefix, used);
	if (length > size - 1 - used)
		length = size - 1 - used;
	memcpy(to + used, from, length);
	to[used + length] = '\0';
}

static size_t part_length(const char *part)
{
	return strcspn(part, "/");
}

static int ends_with(const char *part, size_t length, const char *end)
{
	size_t n = strlen(end);

	return length > n && memcmp(part + length - n, end, n) == 0;
}

/* job_123 */
static int name_slurm(const char *part, size_t length, char *ret, size_t size)
{
	if (length <= 4 || memcmp(part, "job_", 4) != 0 ||
	    strspn(part + 4, "0123456789") != length - 4)
		return 0;
	copy(ret, size, "slurm-", part + 4, length - 4);
	return 1;
}

/* pod<uid>, or kubepods-burstable-pod<uid>.slice with underscores in the uid. */
static int name_pod(const char *part, size_t length, char *ret, size_t size)
{
	const char *pod;
	char uid[POD_UID_LEN];

	if (ends_with(part, length, ".slice"))
		length -= strlen(".slice");
	if (length < POD_UID_LEN + 3)
		return 0;
	pod = part + length - POD_UID_LEN - 3;
	if (memcmp(pod, "pod", 3) != 0 || (pod != part && pod[-1] != '-') ||
	    strspn(pod + 3, "0123456789abcdef-_") < POD_UID_LEN)
		return 0;
	for (size_t i = 0; i < POD_UID_LEN; i++)
		uid[i] = pod[3 + i] == '_' ? '-' : pod[3 + i];
	copy(ret, size, "pod-", uid, POD_UID_LEN);
	return 1;
}

static int name_unit(const char *part, size_t length, char *ret, size_t size)
{
	if (!ends_with(part, length, ".service") && !ends_with(part, length, ".scope"))
		return 0;
	copy(ret, size, "", part, length);
	return 1;
}

/* In order of preference: a pod or a Slurm job may have systemd units below and above it. */
static int (*const namers[])(const char *part, size_t length, char *ret, size_t size) = {
	name_slurm,
	name_pod,
	name_unit,
};

void job_name(const char *cgroup, char *ret, size_t size)
{
	int found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(namers) && !found; i++) {
		/* No break at the first match: users expect the name of the innermost unit. */
		for (const char *part = cgroup; *part; part += *part == '/') {
			size_t length = part_length(part);

			found |= namers[i](part, length, ret, size);
			part += length;
		}
	}
	if (!found)
		copy(ret, size, "", cgroup, strlen(cgroup));
}
