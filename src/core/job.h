/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What people call the job that a cgroup holds. */
#include <stddef.h>

/*
 * From the cgroup's path: "slurm-123" of a Slurm job, "pod-<uid>" of a Kubernetes pod, the
 * name of a systemd unit, else the path itself. What does not fit is cut.
 */
void job_name(const char *cgroup, char *ret, size_t size);
