/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/kernel_internal.h"
#include "collect/topology.h"

/* From the kernel's enum scx_exit_kind and scx_exit_code, which user space relies on. */
#define EXIT_KIND_ERROR	  1024
#define EXIT_CODE_RESTART (1ULL << 48)

int kernel_new(kernel_log_fn log, struct kernel **ret)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = calloc(1, sizeof(*kernel));
	int err;

	if (!kernel)
		return -ENOMEM;
	err = kernel_load(kernel, log);
	if (err < 0)
		return err;
	kernel_open_lines(kernel);
	*ret = TAKE_PTR(kernel);
	return 0;
}

struct kernel *kernel_free(struct kernel *kernel)
{
	if (!kernel)
		return NULL;
	kernel_detach_scheduler(kernel);
	kernel_close_lines(kernel);
	kernel_close_learning(kernel);
	kernel_close_devices(kernel);
	kernel_close_probes(kernel);
	kernel_close_signals(kernel);
	zernel_bpf__destroy(kernel->skel);
	free(kernel);
	return NULL;
}

u32 kernel_lacks(const struct kernel *kernel, u32 *ret_refused)
{
	*ret_refused = kernel->refused;
	return kernel->lacks;
}

bool kernel_has_scheduler(const struct kernel *kernel)
{
	return kernel_has(kernel, FEATURE_SCHEDULER);
}

const struct sched_ext_gap *kernel_scheduler_gap(const struct kernel *kernel)
{
	return kernel_has_scheduler(kernel) ? NULL : &kernel->scheduler_gap;
}

bool kernel_honors_limits(const struct kernel *kernel)
{
	return kernel_has(kernel, FEATURE_GROUP_LIMITS);
}

void kernel_set_policy(struct kernel *kernel, const struct sched_policy *policy)
{
	kernel->skel->data->policy = *policy;
}

/*
 * The thread that attaches becomes a task of the new scheduler before all other tasks do.
 * Kernels before 7.0 run tasks that still belong to EEVDF first, so on a busy machine the
 * thread could wait in the middle of the attach, possibly forever. A real-time task is not
 * moved to the new scheduler. When real-time priority is not allowed, the attach runs
 * without it.
 */
static struct bpf_link *attach_in_real_time(const struct bpf_map *ops)
{
	const struct sched_param fifo = { .sched_priority = 1 }, ordinary = { 0 };
	bool raised = sched_setscheduler(0, SCHED_FIFO, &fifo) == 0;
	struct bpf_link *link = bpf_map__attach_struct_ops(ops);
	int err = errno;

	if (raised)
		sched_setscheduler(0, SCHED_OTHER, &ordinary);
	errno = err;
	return link;
}

int kernel_attach_scheduler(struct kernel *kernel)
{
	int nr_cpus = libbpf_num_possible_cpus(), err;
	u64 version = topology_version("/sys");

	if (!kernel_has_scheduler(kernel))
		return -EOPNOTSUPP;
	if (nr_cpus < 0)
		return nr_cpus;
	err = topology_read("/sys", (u32)nr_cpus, &kernel->skel->data->topology);
	if (err < 0)
		return err;
	kernel->skel->bss->sched_exit.kind = 0;
	kernel->scheduler = attach_in_real_time(kernel->skel->maps.zernel);
	if (!kernel->scheduler)
		return -errno;
	/* From here on, the scheduler is notified of CPU hotplug. */
	if (topology_version("/sys") == version)
		return 0;
	kernel_detach_scheduler(kernel);
	return -ESTALE;
}

void kernel_detach_scheduler(struct kernel *kernel)
{
	bpf_link__destroy(kernel->scheduler);
	kernel->scheduler = NULL;
}

const struct sched_exit *kernel_scheduler_exit(const struct kernel *kernel)
{
	const struct sched_exit *sched_exit = &kernel->skel->bss->sched_exit;

	return __atomic_load_n(&sched_exit->kind, __ATOMIC_ACQUIRE) ? sched_exit : NULL;
}

int kernel_read_scheduler(const struct kernel *kernel, struct sched_stats *ret)
{
	int nr_cpus = libbpf_num_possible_cpus(), err;
	CLEANUP_FREE struct sched_cpu *each = NULL;
	u32 zero = 0;

	if (nr_cpus < 0)
		return nr_cpus;
	each = calloc((size_t)nr_cpus, sizeof(*each));
	if (!each)
		return -ENOMEM;
	err = bpf_map__lookup_elem(kernel->skel->maps.sched_cpus, &zero, sizeof(zero), each,
				   (size_t)nr_cpus * sizeof(*each), 0);
	if (err < 0)
		return err;
	memset(ret, 0, sizeof(*ret));
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		sched_stats_add(ret, &each[cpu].stats);
	return 0;
}

u64 kernel_slice_ns(const struct kernel *kernel)
{
	return kernel->skel->rodata->slice_ns;
}

u64 kernel_max_wait_ns(const struct kernel *kernel)
{
	return kernel->skel->rodata->max_wait_ns;
}

u64 kernel_groups_left_out(const struct kernel *kernel)
{
	return kernel->skel->bss->nr_groups_left_out;
}

bool sched_exit_wants_restart(const struct sched_exit *sched_exit)
{
	return sched_exit->kind < EXIT_KIND_ERROR && (sched_exit->code & EXIT_CODE_RESTART);
}

bool sched_exit_is_clean(const struct sched_exit *sched_exit)
{
	return sched_exit->kind < EXIT_KIND_ERROR;
}

int kernel_open_iterator(const struct bpf_program *prog, const struct bpf_iter_attach_opts *opts)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, opts);
	int fd;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	bpf_link__destroy(link);
	return fd;
}
