/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPU time of the BPF programs. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "collect/kernel_internal.h"

u64 kernel_run_ns(const struct kernel *kernel)
{
	struct bpf_program *prog;
	u64 sum = 0;

	bpf_object__for_each_program(prog, kernel->skel->obj) {
		struct bpf_prog_info info = {};
		u32 size = sizeof(info);

		if (bpf_program__fd(prog) >= 0 &&
		    bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &size) == 0)
			sum += info.run_time_ns;
	}
	return sum;
}

int kernel_measure_run_time(int *ret_fd)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
