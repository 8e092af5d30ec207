/* SPDX-License-Identifier: GPL-2.0-or-later */

/* What each tenant uses: see tenants.bpf.c. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "collect/kernel_internal.h"

static bool is_of(const struct tenant_key *key, u32 uid, u64 group)
{
	return key->kind == TENANT_USER ? uid == key->id : group == key->id;
}

static s32 count_processes(const struct kernel_snapshot *snapshot, const struct tenant_key *key)
{
	s32 nr = 0;

	for (u32 i = 0; i < snapshot->nr_processes; i++)
		nr += is_of(key, snapshot->processes[i].uid, snapshot->processes[i].group);
	return nr;
}

static s32 count_entries(const struct process_list *list, const struct tenant_key *key, u32 table)
{
	s32 nr = 0;

	for (u32 i = 0; i < list->nr; i++)
		if (list->items[i].lives && is_of(key, list->items[i].uid, list->items[i].group))
			nr += list->items[i].nr[table];
	return nr;
}

/* Whether a tenant, or a process, has entries in the tables beside that of processes. */
static bool has_entries(const s32 nr[TENANT_TABLE_NR])
{
	for (u32 table = TENANT_PROCESSES + 1; table < TENANT_TABLE_NR; table++)
		if (nr[table])
			return true;
	return false;
}

static bool was_refused(const struct tenant_use *use)
{
	return use->nr_refused[TENANT_PROCESSES] || use->nr_refused[TENANT_MEMORY];
}

/* What processes begin or end to use meanwhile is miscounted until the next call. */
void kernel_recount_tenants(struct kernel *kernel, const struct kernel_snapshot *snapshot,
			    const struct process_list *list)
{
	const struct bpf_map *map = kernel->skel->maps.tenants;
	u32 left = 2 * bpf_map__max_entries(map);
	struct tenant_key at, next;
	int more = bpf_map__get_next_key(map, NULL, &next, sizeof(next));

	while (more == 0 && left-- > 0) {
		struct tenant_use use;

		at = next;
		more = bpf_map__get_next_key(map, &at, &next, sizeof(next));
		if (bpf_map__lookup_elem(map, &at, sizeof(at), &use, sizeof(use), 0) < 0)
			continue;
		use.nr[TENANT_PROCESSES] = count_processes(snapshot, &at);
		for (u32 table = TENANT_PROCESSES + 1; table < TENANT_TABLE_NR; table++)
			use.nr[table] = count_entries(list, &at, table);
		if (use.nr[TENANT_PROCESSES] || has_entries(use.nr) || was_refused(&use))
			bpf_map__update_elem(map, &at, sizeof(at), &use, sizeof(use), BPF_EXIST);
		else
			bpf_map__delete_elem(map, &at, sizeof(at), 0);
	}
}

static void release(struct kernel *kernel, u32 kind, u64 id, const s32 nr[TENANT_TABLE_NR])
{
	const struct bpf_map *map = kernel->skel->maps.tenants;
	struct tenant_key key = { .id = id, .kind = kind };
	struct tenant_use use;

	if (!id || bpf_map__lookup_elem(map, &key, sizeof(key), &use, sizeof(use), 0) < 0)
		return;
	for (u32 table = 0; table < TENANT_TABLE_NR; table++)
		use.nr[table] -= nr[table];
	bpf_map__update_elem(map, &key, sizeof(key), &use, sizeof(use), BPF_EXIST);
}

void kernel_release_entries(struct kernel *kernel, const struct listed_process *process)
{
	if (!has_entries(process->nr))
		return;
	release(kernel, TENANT_USER, process->uid, process->nr);
	release(kernel, TENANT_GROUP, process->group, process->nr);
}

void kernel_read_quotas(const struct kernel *kernel, kernel_quota_fn fn, void *ctx)
{
	const struct bpf_map *map = kernel->skel->maps.tenants;
	u32 left = 2 * bpf_map__max_entries(map);
	struct tenant_key at, next;
	int more = bpf_map__get_next_key(map, NULL, &next, sizeof(next));

	while (more == 0 && left-- > 0) {
		struct tenant_use use;

		at = next;
		more = bpf_map__get_next_key(map, &at, &next, sizeof(next));
		if (at.kind != TENANT_USER ||
		    bpf_map__lookup_elem(map, &at, sizeof(at), &use, sizeof(use), 0) < 0)
			continue;
		if (was_refused(&use))
			fn(ctx, (u32)at.id, use.nr_refused);
	}
}
