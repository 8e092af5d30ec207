/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads what a process and the node say about the names of a job. Only zernel-discover calls
 * job_scan(): the environment of a process belongs to its user.
 */
#include <sys/types.h>
#include "core/job_names.h"

/* Where a kubelet links the logs of all containers of the node. The links are not followed. */
#define JOB_LOGS "/var/log/containers"

/*
 * The path of the line "0::/path" in /proc/PID/cgroup; -ENODATA: there is none. In a cgroup
 * namespace of its own, the caller sees paths outside of it as "/../../path": the dots are removed.
 */
int job_scan_cgroup(const char *proc, pid_t pid, char *ret, size_t size);

struct job_scan {
	char cgroup[JOB_CGROUP_LEN]; /* of the job, which has the names */
	struct job_names names;
};

/*
 * The names of the job of a process: pods from the logs, Slurm jobs from the environment. `proc`
 * and `logs` are normally "/proc" and JOB_LOGS. -ENOENT: no log has the ID of the container;
 * -E2BIG: the directory or the environment is too large to be read.
 */
int job_scan(const char *proc, const char *logs, pid_t pid, struct job_scan *ret);
