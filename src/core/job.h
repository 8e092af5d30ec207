/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The job that a process belongs to, from its cgroup. The manager of the job made the cgroup: a
 * job is the unit that the manager calls a job, whatever cgroups there are below it.
 *
 * Users can make cgroups inside their own part of the tree and choose the names. So jobs of Slurm
 * and pods are not recognized there, and units of users have the number of the user in their name.
 */
#include "abi/types.h"

#define JOB_CGROUP_LEN	  256
#define JOB_NAME_LEN	  128
#define JOB_CONTAINER_LEN 65 /* an ID of 64 digits */
#define JOB_STEP_LEN	  16

enum job_kind {
	JOB_CGROUP,  /* no manager is known: each cgroup is a job */
	JOB_MANAGER, /* of the units of a user; a job only if no unit is known */
	JOB_SESSION,
	JOB_UNIT,
	JOB_CONTAINER,
	JOB_POD,
	JOB_SLURM,
	JOB_KIND_NR,
};

struct job_identity {
	u32 kind;
	/* The cgroup of the job, which identifies it. The end of a long path is replaced by a hash.
	 */
	char cgroup[JOB_CGROUP_LEN];
	/*
	 * "slurm-123", "pod-<uid>", "docker-<first 12 digits>", the name of a unit, or
	 * "user-1000/<name>" in a user's part of the tree; else the path. A long name is truncated.
	 */
	char name[JOB_NAME_LEN];
	char container[JOB_CONTAINER_LEN]; /* ID of the container of the process; or empty */
	char step[JOB_STEP_LEN];	   /* of a Slurm job: "0", "batch"; or empty */
};

void job_identify(const char *cgroup, struct job_identity *ret);

const char *job_kind_label(u32 kind);
