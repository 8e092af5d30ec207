// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts the followed processes of each user and of each group, so that one tenant
 * cannot use up the room of the others. A process is counted when it becomes known
 * and when it ends. The kernel may skip the program that sees the end, so user space
 * corrects the counts from time to time. Two processes that become known at the same
 * moment may exceed a cap by one.
 */
#include "bpf/signals/tenants.bpf.h"

#define TENANTS_MAX 8192

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TENANTS_MAX);
	__type(key, struct tenant_key);
	__type(value, s32);
} tenants SEC(".maps");

/* Set by tests only. */
s32 tenant_max = TENANT_SHARE(MAX_PROCESSES);

u64 nr_capped_processes;

static bool is_full(u32 kind, u64 id)
{
	struct tenant_key key = { .id = id, .kind = kind };
	s32 *nr = id ? bpf_map_lookup_elem(&tenants, &key) : NULL;

	return nr && *nr >= tenant_max;
}

__noinline int tenant_has_room(u32 uid, u64 group)
{
	if (!is_full(TENANT_USER, uid) && !is_full(TENANT_GROUP, group))
		return 1;
	__sync_fetch_and_add(&nr_capped_processes, 1);
	return 0;
}

static void add(u32 kind, u64 id, s32 nr)
{
	struct tenant_key key = { .id = id, .kind = kind };
	s32 zero = 0, *count;

	if (!id)
		return;
	bpf_map_update_elem(&tenants, &key, &zero, BPF_NOEXIST);
	count = bpf_map_lookup_elem(&tenants, &key);
	if (count)
		__sync_fetch_and_add(count, nr);
}

__noinline int tenant_add(u32 uid, u64 group, s32 nr)
{
	add(TENANT_USER, uid, nr);
	add(TENANT_GROUP, group, nr);
	return 0;
}
