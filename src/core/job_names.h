/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of a job, beside its identity (core/job.h). They are for people: no name decides which
 * processes are one job.
 */
#include <stdbool.h>
#include <stddef.h>
#include "core/job.h"

/* The name of a log has 255 bytes at the most: with an ID, that much is left for three names. */
#define JOB_POD_LEN	  192
#define JOB_NAMESPACE_LEN 64 /* a DNS label */
#define JOB_CLAIM_LEN	  64
#define JOB_ARRAY_LEN	  32

struct job_names {
	/* Of a pod, from the logs of the node; of its first process. */
	char pod[JOB_POD_LEN];
	char namespace[JOB_NAMESPACE_LEN];
	char container_name[JOB_NAMESPACE_LEN];
	/*
	 * Of a Slurm job, from the environment of a process: the process can claim anything. Other
	 * characters than printable ASCII are replaced.
	 */
	char claimed_name[JOB_CLAIM_LEN];
	char claimed_account[JOB_CLAIM_LEN];
	char claimed_array[JOB_ARRAY_LEN]; /* "100_3": array job and task */
};

/*
 * Parses <pod>_<namespace>_<container>-<ID>.log, as a kubelet names the log of a container. False:
 * it is not the log of the container with this ID, or not a possible name; `ret` is unchanged.
 */
bool job_names_of_log(const char *file, const char *id, struct job_names *ret);

/* Takes the claims from an environment: texts of `size` bytes in all, the last one with a zero. */
void job_names_of_environment(const char *environment, size_t size, struct job_names *ret);

/* Whether all names are possible: see the functions above. */
bool job_names_are_valid(const struct job_names *names);

/* Whether the names of this job can be found, and nothing is known about them. */
bool job_names_are_missing(u32 kind, const struct job_names *names);
