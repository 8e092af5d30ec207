/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "collect/kernel_internal.h"

static int on_observation(void *ctx, void *data, size_t size)
{
	struct kernel *kernel = ctx;

	if (size >= sizeof(struct procdb_observation))
		kernel->on_observation(kernel->observation_ctx, data);
	return 0;
}

int kernel_open_learning(struct kernel *kernel, kernel_observation_fn on_seen, void *ctx)
{
	kernel->on_observation = on_seen;
	kernel->observation_ctx = ctx;
	kernel->observations = ring_buffer__new(bpf_map__fd(kernel->skel->maps.observations),
						on_observation, kernel, NULL);
	if (!kernel->observations)
		return -errno;
	if (!kernel_has(kernel, FEATURE_SCHEDULER))
		return 0;
	kernel->learn_exec = bpf_program__attach(kernel->skel->progs.learn_exec);
	return kernel->learn_exec ? 0 : -errno;
}

void kernel_close_learning(struct kernel *kernel)
{
	bpf_link__destroy(kernel->learn_exec);
	ring_buffer__free(kernel->observations);
}

int kernel_read_observations(struct kernel *kernel)
{
	return ring_buffer__consume(kernel->observations);
}

int kernel_predict(struct kernel *kernel, const struct procdb_key *key,
		   const struct procdb_record *prediction)
{
	const struct bpf_map *map = kernel->skel->maps.predictions;
	struct procdb_key looked_up = *key;
	int err;

	/* With an executable, the BPF programs look up the profile without the name. */
	if (key->exe_id)
		memset(looked_up.comm, 0, sizeof(looked_up.comm));
	if (prediction)
		return bpf_map__update_elem(map, &looked_up, sizeof(looked_up), prediction,
					    sizeof(*prediction), BPF_ANY);
	err = bpf_map__delete_elem(map, &looked_up, sizeof(looked_up), 0);
	return err == -ENOENT ? 0 : err;
}
