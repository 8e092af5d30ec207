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

double phase_fraction(const u64 phase_ns[static PHASE_NR], u32 phase)
{
	double total = 0;

	for (u32 i = 0; i < PHASE_NR; i++)
		total += (double)phase_ns[i];
	return total > 0 ? (double)phase_ns[phase_of(phase)] / total : 0;
}
