/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The counts of the processes of each tenant: see tenants.bpf.c. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "collect/kernel_internal.h"

static s32 count(const struct kernel_snapshot *snapshot, const struct tenant_key *key)
{
	s32 nr = 0;

	for (u32 i = 0; i < snapshot->nr_processes; i++)
		nr += key->kind == TENANT_USER ? snapshot->processes[i].uid == key->id
					       : snapshot->processes[i].group == key->id;
	return nr;
}

/* Processes that become known or end meanwhile are miscounted until the next call. */
void kernel_recount_tenants(struct kernel *kernel, const struct kernel_snapshot *snapshot)
{
	const struct bpf_map *map = kernel->skel->maps.tenants;
	struct tenant_key at, next;
	int more = bpf_map__get_next_key(map, NULL, &next, sizeof(next));

	while (more == 0) {
		s32 nr;

		at = next;
		more = bpf_map__get_next_key(map, &at, &next, sizeof(next));
		nr = count(snapshot, &at);
		if (nr)
			bpf_map__update_elem(map, &at, sizeof(at), &nr, sizeof(nr), BPF_EXIST);
		else
			bpf_map__delete_elem(map, &at, sizeof(at), 0);
	}
}
