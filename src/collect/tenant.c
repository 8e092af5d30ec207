/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tenant.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "collect/job_scan.h"

/* FNV-1a over the first components of the path; 0 only for the root. */
static u64 group_of(const char *path)
{
	u64 hash = 0xcbf29ce484222325;
	u32 level = 0;

	if (!path[0] || !path[1])
		return 0;
	for (; *path; path++) {
		level += *path == '/';
		if (level > TENANT_GROUP_LEVELS)
			break;
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3;
	}
	return hash ? hash : 1;
}

/* The text after `key` at the start of a line, or NULL. */
static const char *line_of(const char *text, const char *key)
{
	size_t length = strlen(key);

	while (text && strncmp(text, key, length) != 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + length : NULL;
}

/*
 * The owner of the folder /proc/PID is no evidence: it is root for a process that forbids core
 * dumps.
 */
struct tenant tenant_of(const char *proc, pid_t pid)
{
	char path[PATH_MAX], text[4096];
	struct tenant tenant = {};
	const char *line;

	snprintf(path, sizeof(path), "%s/%d/status", proc, pid);
	line = file_read_text(path, text, sizeof(text)) > 0 ? line_of(text, "Uid:") : NULL;
	if (line)
		tenant.uid = (u32)strtoul(line, NULL, 10);
	if (job_scan_cgroup(proc, pid, text, sizeof(text)) == 0)
		tenant.group = group_of(text);
	return tenant;
}
