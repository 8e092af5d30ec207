// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts the followed processes of each user and of each group, and their entries in the tables of
 * GPU memory, of stacks, of collectives and of kernels, so that one tenant cannot use up the room
 * of the others. A process is counted when it becomes known and when it ends. The kernel may skip
 * the program that sees the end, so user space corrects the counts from time to time. Two processes
 * that become known at the same moment may exceed a cap by one.
 */
#include "abi/gpu_kernel.h"
#include "abi/oom.h"
#include "bpf/signals/tenants.bpf.h"
#include "core/comm.h"

#define TENANTS_MAX 8192

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TENANTS_MAX);
	__type(key, struct tenant_key);
	__type(value, struct tenant_use);
} tenants SEC(".maps");

/* Set by tests only. */
s32 tenant_max[TENANT_TABLE_NR] = {
	[TENANT_PROCESSES] = TENANT_SHARE(MAX_PROCESSES),
	[TENANT_MEMORY] = TENANT_SHARE(MAX_MEMORY),
	[TENANT_STACKS] = TENANT_SHARE(OOM_PROCESSES_MAX * OOM_FRAMES_MAX),
	[TENANT_SEQUENCES] = TENANT_SHARE(MAX_PROCESSES * COMMS_MAX),
	[TENANT_KERNELS] = TENANT_SHARE(GPU_KERNELS_MAX),
};

u64 nr_capped_processes;

static bool refuses(enum tenant_table table, u32 kind, u64 id)
{
	struct tenant_key key = { .id = id, .kind = kind };
	/* A tenant that is not in the map uses nothing. */
	struct tenant_use *use = id ? bpf_map_lookup_elem(&tenants, &key) : NULL;

	if (!use || use->nr[table] < tenant_max[table])
		return false;
	__sync_fetch_and_add(&use->nr_refused[table], 1);
	return true;
}

static bool has_room(enum tenant_table table, u32 uid, u64 group)
{
	return !refuses(table, TENANT_USER, uid) && !refuses(table, TENANT_GROUP, group);
}

static void add(enum tenant_table table, u32 kind, u64 id, s32 nr)
{
	struct tenant_key key = { .id = id, .kind = kind };
	struct tenant_use nothing = {};
	struct tenant_use *use;

	if (!id)
		return;
	bpf_map_update_elem(&tenants, &key, &nothing, BPF_NOEXIST);
	use = bpf_map_lookup_elem(&tenants, &key);
	if (use)
		__sync_fetch_and_add(&use->nr[table], nr);
}

/* A function for each table, because the verifier does not know an index that is passed. */
__noinline int tenant_has_room(u32 uid, u64 group)
{
	if (has_room(TENANT_PROCESSES, uid, group))
		return 1;
	__sync_fetch_and_add(&nr_capped_processes, 1);
	return 0;
}

__noinline int tenant_has_memory(u32 uid, u64 group)
{
	return has_room(TENANT_MEMORY, uid, group);
}

__noinline int tenant_has_stacks(u32 uid, u64 group)
{
	return has_room(TENANT_STACKS, uid, group);
}

__noinline int tenant_has_sequences(u32 uid, u64 group)
{
	return has_room(TENANT_SEQUENCES, uid, group);
}

__noinline int tenant_has_kernels(u32 uid, u64 group)
{
	return has_room(TENANT_KERNELS, uid, group);
}

__noinline int tenant_add(u32 uid, u64 group, s32 nr)
{
	add(TENANT_PROCESSES, TENANT_USER, uid, nr);
	add(TENANT_PROCESSES, TENANT_GROUP, group, nr);
	return 0;
}

__noinline int tenant_add_memory(u32 uid, u64 group, s32 nr)
{
	add(TENANT_MEMORY, TENANT_USER, uid, nr);
	add(TENANT_MEMORY, TENANT_GROUP, group, nr);
	return 0;
}

__noinline int tenant_add_stacks(u32 uid, u64 group, s32 nr)
{
	add(TENANT_STACKS, TENANT_USER, uid, nr);
	add(TENANT_STACKS, TENANT_GROUP, group, nr);
	return 0;
}

__noinline int tenant_add_sequences(u32 uid, u64 group, s32 nr)
{
	add(TENANT_SEQUENCES, TENANT_USER, uid, nr);
	add(TENANT_SEQUENCES, TENANT_GROUP, group, nr);
	return 0;
}

__noinline int tenant_add_kernels(u32 uid, u64 group, s32 nr)
{
	add(TENANT_KERNELS, TENANT_USER, uid, nr);
	add(TENANT_KERNELS, TENANT_GROUP, group, nr);
	return 0;
}
