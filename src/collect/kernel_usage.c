/* SPDX-License-Identifier: GPL-2.0-or-later */

/* What PyTorch's allocator has given out over time, of processes that a client wants. */
#include <errno.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "collect/kernel_internal.h"

static bool is_wanted(const struct kernel *kernel, u32 tgid)
{
	struct usage_process process;

	return bpf_map__lookup_elem(kernel->skel->maps.usage_processes, &tgid, sizeof(tgid),
				    &process, sizeof(process), 0) == 0;
}

/* Also entries that a program left that still ran when a watch ended. */
static void forget_unwanted(struct kernel *kernel)
{
	const struct bpf_map *map = kernel->skel->maps.usages;
	struct usage_key key, next;
	int err = bpf_map__get_next_key(map, NULL, &next, sizeof(next));

	while (err == 0) {
		key = next;
		/* The next key is found before this one is gone. */
		err = bpf_map__get_next_key(map, &key, &next, sizeof(next));
		if (!is_wanted(kernel, key.tgid))
			bpf_map__delete_elem(map, &key, sizeof(key), 0);
	}
}

int kernel_begin_usage(struct kernel *kernel, u32 tgid, const struct usage_process *process)
{
	if (!kernel_has(kernel, FEATURE_GPU_MEMORY))
		return -EOPNOTSUPP;
	forget_unwanted(kernel);
	return bpf_map__update_elem(kernel->skel->maps.usage_processes, &tgid, sizeof(tgid),
				    process, sizeof(*process), BPF_NOEXIST);
}

void kernel_end_usage(struct kernel *kernel, u32 tgid)
{
	bpf_map__delete_elem(kernel->skel->maps.usage_processes, &tgid, sizeof(tgid), 0);
	forget_unwanted(kernel);
}

int kernel_read_usage(const struct kernel *kernel, const struct usage_key *key, struct usage *ret)
{
	return bpf_map__lookup_elem(kernel->skel->maps.usages, key, sizeof(*key), ret, sizeof(*ret),
				    0);
}
