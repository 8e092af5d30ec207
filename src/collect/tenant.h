/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The user and the group of a process, whose use of Zernel's tables is capped. A group is a
 * cgroup at most three levels below the root: deeper ones can be made by the tenant itself. Pods
 * of Kubernetes, jobs of Slurm and services of systemd are at these levels.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "abi/types.h"

/* No user and no group can have more than this part of a table. */
#define TENANT_SHARE(total) ((total) * 3 / 4)

struct tenant {
	u32 uid;   /* 0 is not capped: containers often run as root, and have their own group */
	u64 group; /* 0: the root cgroup, which is not capped */
};

/* `proc` is normally "/proc". A process that has exited counts as root's. */
struct tenant tenant_of(const char *proc, pid_t pid);

/* The numbers of entries of one table that belong to the user and to the group of a tenant. */
struct tenant_count {
	u32 nr_of_user;
	u32 nr_of_group;
};

static inline void tenant_count(struct tenant_count *count, const struct tenant *tenant,
				const struct tenant *other)
{
	count->nr_of_user += tenant->uid && tenant->uid == other->uid;
	count->nr_of_group += tenant->group && tenant->group == other->group;
}

/* Whether the tenant may have one more entry of a table with `total` entries. */
static inline bool tenant_has_room(const struct tenant_count *count, u32 total)
{
	return count->nr_of_user < TENANT_SHARE(total) && count->nr_of_group < TENANT_SHARE(total);
}
