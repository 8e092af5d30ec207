/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/job_scan.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/file.h"

/* Paths are shorter, and the lines of other hierarchies come before or after. */
#define CGROUP_TEXT_LEN 8192
/* A node runs hundreds of containers and keeps the logs of some ended ones. */
#define LOGS_MAX	16384
/* By default, the kernel accepts 2 MiB at the most, together with the arguments. */
#define ENVIRONMENT_MAX (2 << 20)

int job_scan_cgroup(const char *proc, pid_t pid, char *ret, size_t size)
{
	char path[PATH_MAX], text[CGROUP_TEXT_LEN];
	ssize_t length;
	char *line;

	snprintf(path, sizeof(path), "%s/%d/cgroup", proc, pid);
	length = file_read_text(path, text, sizeof(text));
	if (length < 0)
		return (int)length;
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!line)
		return -ENODATA;
	line += (*line == '\n') + 3;
	line[strcspn(line, "\n")] = '\0';
	while (strncmp(line, "/../", 4) == 0)
		line += 3;
	snprintf(ret, size, "%s", strcmp(line, "/..") == 0 ? "/" : line);
	return *ret ? 0 : -ENODATA;
}

static int find_log(const char *logs, const char *id, struct job_names *ret)
{
	DIR *directory = opendir(logs);
	int err = -ENOENT;
	u32 nr = 0;

	if (!directory)
		return -errno;
	for (struct dirent *entry; err == -ENOENT && (entry = readdir(directory));) {
		if (job_names_of_log(entry->d_name, id, ret))
			err = 0;
		else if (++nr == LOGS_MAX)
			err = -E2BIG;
	}
	closedir(directory);
	return err;
}

static int read_claims(const char *proc, pid_t pid, struct job_names *ret)
{
	CLEANUP_FREE char *environment = malloc(ENVIRONMENT_MAX);
	char path[PATH_MAX];
	ssize_t size;

	if (!environment)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/%d/environ", proc, pid);
	size = file_read_text(path, environment, ENVIRONMENT_MAX);
	if (size < 0)
		return (int)size;
	if (size == ENVIRONMENT_MAX - 1)
		return -E2BIG;
	job_names_of_environment(environment, (size_t)size, ret);
	return 0;
}

int job_scan(const char *proc, const char *logs, pid_t pid, struct job_scan *ret)
{
	struct job_scan scan = {};
	struct job_identity job;
	char cgroup[CGROUP_TEXT_LEN];
	int err = job_scan_cgroup(proc, pid, cgroup, sizeof(cgroup));

	if (err < 0)
		return err;
	job_identify(cgroup, &job);
	memcpy(scan.cgroup, job.cgroup, sizeof(scan.cgroup));
	/* Users can name cgroups like containers, but not like pods: see core/job.h. */
	if (job.kind == JOB_POD && *job.container)
		err = find_log(logs, job.container, &scan.names);
	else if (job.kind == JOB_SLURM)
		err = read_claims(proc, pid, &scan.names);
	if (err < 0)
		return err;
	*ret = scan;
	return 0;
}
