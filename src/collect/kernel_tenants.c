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

static s32 count_memory(const struct process_list *list, const struct tenant_key *key)
{
	s32 nr = 0;

	for (u32 i = 0; i < list->nr; i++)
		if (list->items[i].lives && is_of(key, list->items[i].uid, list->items[i].group))
			nr += list->items[i].nr_memory;
	return nr;
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
		use.nr[TENANT_MEMORY] = count_memory(list, &at);
		if (use.nr[TENANT_PROCESSES] || use.nr[TENANT_MEMORY] || was_refused(&use))
			bpf_map__update_elem(map, &at, sizeof(at), &use, sizeof(use), BPF_EXIST);
		else
			bpf_map__delete_elem(map, &at, sizeof(at), 0);
	}
}

static void release(struct kernel *kernel, u32 kind, u64 id, s32 nr)
{
	const struct bpf_map *map = kernel->skel->maps.tenants;
	struct tenant_key key = { .id = id, .kind = kind };
	struct tenant_use use;

	if (!id || bpf_map__lookup_elem(map, &key, sizeof(key), &use, sizeof(use), 0) < 0)
		return;
	use.nr[TENANT_MEMORY] -= nr;
	bpf_map__update_elem(map, &key, sizeof(key), &use, sizeof(use), BPF_EXIST);
}

void kernel_release_memory(struct kernel *kernel, const struct listed_process *process)
{
	if (!process->nr_memory)
		return;
	release(kernel, TENANT_USER, process->uid, process->nr_memory);
	release(kernel, TENANT_GROUP, process->group, process->nr_memory);
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
