/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The jobs of a node, those that run and those that ended, with their sums. */
#include <stddef.h>
#include "core/snapshot.h"

/* The account of all processes of a job, also of ended ones. `job` is an index. */
struct snapshot_account jobs_account(const struct snapshot *snapshot, u32 job);

/* The cause with the most idle time; IDLE_CAUSE_NR if there was no idle time. */
u32 jobs_largest_cause(const struct snapshot_account *account);

/* All jobs on one line, the running ones first. */
int jobs_to_json(const struct snapshot *running, const struct snapshot *ended, char **ret,
		 size_t *ret_length);
