/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/phase.h"

static const struct {
	const char *name;
	const char *label;
} phase_strings[PHASE_NR] = {
	/* clang-format off */
	[PHASE_UNKNOWN]		= { "Unknown",		"unknown" },
	[PHASE_DATA_LOADING]	= { "DataLoading",	"data_loading" },
	[PHASE_GPU_COMPUTE]	= { "GpuCompute",	"gpu_compute" },
	[PHASE_COLLECTIVE]	= { "NcclCollective",	"nccl_collective" },
	[PHASE_OPTIMIZER]	= { "OptimizerStep",	"optimizer_step" },
	/* clang-format on */
};

const char *phase_name(u32 phase)
{
	return phase_strings[phase_of(phase)].name;
}

const char *phase_label(u32 phase)
{
	return phase_strings[phase_of(phase)].label;
}
