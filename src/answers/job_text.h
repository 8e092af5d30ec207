/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The names of a job, as text and as JSON. */
#include "core/snapshot.h"

struct yyjson_mut_doc;
struct yyjson_mut_val;

struct job_text {
	char text[512];
};

/*
 * "ml/trainer-0, container main" for a pod; "claims the name train, account phys, array 100_3" for
 * a Slurm job; empty if no name is known.
 */
struct job_text job_names_text(const struct snapshot_job *job);

/*
 * A short name for a column: "ml/trainer-0", or slurm-42 "train" with the claimed name in quotes,
 * or the name of the job; and the number of the user, if it is known.
 */
struct job_text job_title(const struct snapshot_job *job);

/*
 * The names after the user: "user alice, ml/trainer-0". `user` is the name of its user.
 */
struct job_text job_describe(const struct snapshot_job *job, const char *user);

/* Adds the user and the names that are known, under the keys of a snapshot. */
void job_names_to_json(const struct snapshot_job *job, struct yyjson_mut_doc *doc,
		       struct yyjson_mut_val *object);
