/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "truth/summary.h"
#include "vgpu/include/vgpu_cudart.h"

const char *const workload_syncs[] = { "spin", "yield", "block", NULL };

unsigned int workload_sync_flags(const struct workload *workload)
{
	static const unsigned int flags[] = {
		cudaDeviceScheduleSpin,
		cudaDeviceScheduleYield,
		cudaDeviceScheduleBlockingSync,
	};

	return flags[workload->sync];
}

/*
 * Reads all code now. In virtual time, the clock runs on while the host reads a page that the
 * program needs for the first time: a busy host can add a minute to the end of a job.
 */
static void load_program(void)
{
	if (mlockall(MCL_CURRENT) == 0)
		munlockall();
}

bool workload_begin(const struct workload_kind *kind, int argc, char **argv,
		    struct workload *config, int *ret_status)
{
	const char *wrong;
	char usage[64];
	int operands, r;

	snprintf(usage, sizeof(usage), "%s [OPTION...]", kind->name);
	r = options_parse(usage, kind->options, kind->nr_options, argc, argv, config, &operands);
	if (r != 0 || operands < argc) {
		*ret_status = r > 0 ? EXIT_SUCCESS : 2;
		return false;
	}
	wrong = kind->wrong(config);
	if (wrong) {
		fprintf(stderr, "%s: %s\n", kind->name, wrong);
		*ret_status = 2;
		return false;
	}
	if (config->truth)
		setenv("VGPU_TRUTH", config->truth, 1);
	load_program();
	config->burn = burn_calibrate();
	return true;
}

void workload_print_busy(const struct workload *workload, pid_t pid)
{
	struct truth_summary summary = {};
	struct truth_dir dir;

	if (workload->truth && truth_dir_read(workload->truth, &dir) == 0) {
		truth_summarise_pid(&dir, (u32)pid, &summary);
		truth_dir_done(&dir);
	}
	truth_print_busy(&summary);
}
