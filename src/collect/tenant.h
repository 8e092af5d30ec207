/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The user and the group of a process, whose use of Zernel's tables is capped: core/tenant.h. */
#include <stdbool.h>
#include <sys/types.h>
#include "core/tenant.h"

struct tenant {
	u32 uid; /* 0 is not capped: containers often run as root, and have their own group */
	u32 pad;
	u64 group; /* 0: the root cgroup, which is not capped */
};

/* `proc` is normally "/proc". A process that has exited counts as root's. */
struct tenant tenant_of(const char *proc, pid_t pid);

/* Whether both count as one: a user, or, for root, a group. */
static inline bool tenant_is_same(const struct tenant *a, const struct tenant *b)
{
	return a->uid == b->uid && (a->uid || a->group == b->group);
}

/* The numbers of entries of one table that belong to the user and to the group of a tenant. */
struct tenant_count {
	u32 nr_of_user;
	u32 nr_of_group;
};

/* Counts `nr` entries of `other`. */
static inline void tenant_count(struct tenant_count *count, const struct tenant *tenant,
				const struct tenant *other, u32 nr)
{
	count->nr_of_user += tenant->uid && tenant->uid == other->uid ? nr : 0;
	count->nr_of_group += tenant->group && tenant->group == other->group ? nr : 0;
}

/* Whether the tenant may have `nr` more entries of a table with `total` entries. */
static inline bool tenant_has_room(const struct tenant_count *count, u32 nr, u32 total)
{
	u32 share = TENANT_SHARE(total);

	return count->nr_of_user + nr <= share && count->nr_of_group + nr <= share;
}
