/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The source that uses NVML. Its calls hang when the driver hangs, and it is code of a vendor:
 * only zernel-gpu calls it, which zerneld never waits for.
 */
#include "base/cleanup.h"
#include "collect/gpu.h"
#include "collect/gpu_nvml_api.h"

struct nvml {
	struct nvml_api *api;
	struct gpu_samples identity; /* what does not change */
};

static void nvml_close(void *source)
{
	struct nvml *nvml = source;

	nvml_api_close(nvml->api);
	free(nvml);
}

static int nvml_open(const struct gpu_config *config, void **ret)
{
	CLEANUP_FREE struct nvml *nvml = calloc(1, sizeof(*nvml));
	int err;

	if (!nvml)
		return -ENOMEM;
	err = nvml_api_open(config->nvml_library, &nvml->api);
	if (err < 0)
		return err;
	nvml_api_identify(nvml->api, config->sysfs, &nvml->identity);
	*ret = TAKE_PTR(nvml);
	return 0;
}

static int nvml_sample(void *source, const pid_t *pids, size_t nr_pids, u64 now_ns,
		       struct gpu_samples *samples)
{
	struct nvml *nvml = source;

	*samples = nvml->identity;
	nvml_api_measure(nvml->api, samples);
	return 0;
}

const struct gpu_source_ops gpu_nvml_ops = {
	.name = "nvml",
	.open = nvml_open,
	.sample = nvml_sample,
	.close = nvml_close,
};
