// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts the followed processes of each user and of each group, and their entries in
 * the table of GPU memory, so that one tenant cannot use up the room of the others. A
 * process is counted when it becomes known and when it ends. The kernel may skip the
 * program that sees the end, so user space corrects the counts from time to time. Two
 * processes that become known at the same moment may exceed a cap by one.
 */
#include "bpf/signals/tenants.bpf.h"

#define TENANTS_MAX 8192

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TENANTS_MAX);
	__type(key, struct tenant_key);
	__type(value, struct tenant_use);
} tenants SEC(".maps");

/* Set by tests only. */
s32 tenant_max = TENANT_SHARE(MAX_PROCESSES);
s32 tenant_memory_max = TENANT_SHARE(MAX_MEMORY);

u64 nr_capped_processes;

/* NULL if the tenant is not capped or uses nothing. */
static struct tenant_use *use_find(u32 kind, u64 id)
{
	struct tenant_key key = { .id = id, .kind = kind };

	return id ? bpf_map_lookup_elem(&tenants, &key) : NULL;
}

static struct tenant_use *use_get(u32 kind, u64 id)
{
	struct tenant_key key = { .id = id, .kind = kind };
	struct tenant_use nothing = {};

	if (!id)
		return NULL;
	bpf_map_update_elem(&tenants, &key, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tenants, &key);
}

static bool refuses_process(u32 kind, u64 id)
{
	struct tenant_use *use = use_find(kind, id);

	if (!use || use->nr_processes < tenant_max)
		return false;
	__sync_fetch_and_add(&use->nr_processes_refused, 1);
	return true;
}

__noinline int tenant_has_room(u32 uid, u64 group)
{
	if (!refuses_process(TENANT_USER, uid) && !refuses_process(TENANT_GROUP, group))
		return 1;
	__sync_fetch_and_add(&nr_capped_processes, 1);
	return 0;
}

static void add_process(u32 kind, u64 id, s32 nr)
{
	struct tenant_use *use = use_get(kind, id);

	if (use)
		__sync_fetch_and_add(&use->nr_processes, nr);
}

__noinline int tenant_add(u32 uid, u64 group, s32 nr)
{
	add_process(TENANT_USER, uid, nr);
	add_process(TENANT_GROUP, group, nr);
	return 0;
}

static bool refuses_memory(u32 kind, u64 id)
{
	struct tenant_use *use = use_find(kind, id);

	if (!use || use->nr_memory < tenant_memory_max)
		return false;
	__sync_fetch_and_add(&use->nr_memory_refused, 1);
	return true;
}

__noinline int tenant_has_memory(u32 uid, u64 group)
{
	return !refuses_memory(TENANT_USER, uid) && !refuses_memory(TENANT_GROUP, group);
}

static void add_memory(u32 kind, u64 id, s32 nr)
{
	struct tenant_use *use = use_get(kind, id);

	if (use)
		__sync_fetch_and_add(&use->nr_memory, nr);
}

__noinline int tenant_add_memory(u32 uid, u64 group, s32 nr)
{
	add_memory(TENANT_USER, uid, nr);
	add_memory(TENANT_GROUP, group, nr);
	return 0;
}
