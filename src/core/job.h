/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The name of the job that runs in a cgroup. */
#include <stddef.h>

/*
 * Derives the name from the cgroup path: "slurm-123" for a Slurm job, "pod-<uid>" for a
 * Kubernetes pod, the name of a systemd unit, else the path itself. A long name is truncated.
 */
void job_name(const char *cgroup, char *ret, size_t size);
