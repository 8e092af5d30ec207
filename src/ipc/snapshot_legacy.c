/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The values that older dashboards show. These dashboards do not distinguish processes, so
 * the values of all processes are merged, including processes that exited.
 */
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>
#include "base/macros.h"
#include "ipc/snapshot_fields.h"
#include "ipc/snapshot_json.h"

static const struct {
	const char *key;
	u32 kind;
	u32 permille;
	u32 unit_ns;
} quantiles[] = {
	{ "cuda_latency_p50_us", HIST_LAUNCH, 500, NSEC_PER_USEC },
	{ "cuda_latency_p99_us", HIST_LAUNCH, 990, NSEC_PER_USEC },
	{ "nccl_allreduce_p50_ms", HIST_COLLECTIVE + DETAIL_ALL_REDUCE - COLLECTIVE_FIRST, 500,
	  NSEC_PER_MSEC },
	{ "nccl_allreduce_p99_ms", HIST_COLLECTIVE + DETAIL_ALL_REDUCE - COLLECTIVE_FIRST, 990,
	  NSEC_PER_MSEC },
	{ "dataloader_wait_p50_ms", HIST_LOADER_WAIT, 500, NSEC_PER_MSEC },
};

static void merge(struct hist *to, const struct snapshot *s, const struct snapshot_hists *from,
		  u32 kind)
{
	const struct hist *hist = snapshot_hist(s, from, kind);

	if (hist)
		hist_add(to, hist);
}

static double quantile(const struct snapshot *s, u32 kind, u32 permille, u32 unit_ns)
{
	struct hist merged = {};

	merge(&merged, s, &s->gone, kind);
	for (u32 i = 0; i < s->nr_processes; i++)
		merge(&merged, s, &s->processes[i].hists, kind);
	return (double)hist_quantile(&merged, permille) / unit_ns;
}

static bool put_memory(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct snapshot *s)
{
	char key[32];
	bool ok = list != NULL;

	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_process *process = &s->processes[i];

		for (u32 k = 0; ok && k < process->nr_memory; k++) {
			const struct snapshot_memory *memory = &process->memory[k];
			yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, list);

			if (memory->gpu == SNAPSHOT_GPU_UNKNOWN)
				snprintf(key, sizeof(key), "%u:unknown", process->pid);
			else
				snprintf(key, sizeof(key), "%u:%u", process->pid, memory->gpu);
			ok = one && yyjson_mut_obj_add_strcpy(doc, one, "key", key) &&
			     yyjson_mut_obj_add_uint(doc, one, "current_bytes",
						     memory->book.current_bytes) &&
			     yyjson_mut_obj_add_uint(doc, one, "peak_bytes",
						     memory->book.peak_bytes);
		}
	}
	return ok;
}

static bool put_all(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct snapshot *s)
{
	bool ok = root &&
		  put_memory(doc, yyjson_mut_obj_add_arr(doc, root, "gpu_utilization"), s) &&
		  yyjson_mut_obj_add_uint(doc, root, "last_update_ms", s->time_ms);

	for (size_t i = 0; ok && i < ARRAY_SIZE(quantiles); i++)
		ok = yyjson_mut_obj_add_real(doc, root, quantiles[i].key,
					     quantile(s, quantiles[i].kind, quantiles[i].permille,
						      quantiles[i].unit_ns));
	return ok;
}

int snapshot_to_legacy_json(const struct snapshot *snapshot, char **ret_text, size_t *ret_len)
{
	return snapshot_write(put_all, snapshot, ret_text, ret_len);
}
