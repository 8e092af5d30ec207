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

static kernel_log_fn libbpf_log;

/* The hook of libbpf has no context argument, so libbpf_log is static. */
static int libbpf_print(enum libbpf_print_level level, const char *format, va_list args)
{
	CLEANUP_FREE char *text = NULL;
	int length;

	if (level > LIBBPF_WARN || !libbpf_log)
		return 0;
	length = vasprintf(&text, format, args);
	if (length < 0) {
		text = NULL;
		return 0;
	}
	if (length > 0 && text[length - 1] == '\n')
		text[length - 1] = '\0';
	libbpf_log(text);
	return 0;
}

/* The value of a kernel enumerator, or 0 when the kernel does not have it. */
static u32 enum_value(const struct btf *btf, const char *type, const char *name)
{
	s32 id = btf__find_by_name_kind(btf, type, BTF_KIND_ENUM);
	const struct btf_type *found = id > 0 ? btf__type_by_id(btf, (u32)id) : NULL;

	for (u32 i = 0; found && i < btf_vlen(found); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(found)[i].name_off), name))
			return (u32)btf_enum(found)[i].val;
	return 0;
}

/* Detects the features of the kernel from its types. */
static void find_features(struct kernel *kernel, bool *ret_cgroups, bool *ret_multi_uprobes)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = btf__load_vmlinux_btf();
	size_t position = 0;

	kernel->has_scheduler = !sched_ext_next_gap(btf, &position, &kernel->scheduler_gap);
	kernel->honors_limits = sched_ext_tells_limits(btf);
	*ret_cgroups =
		btf && btf__find_by_name_kind(btf, "scx_cgroup_init_args", BTF_KIND_STRUCT) > 0;
	kernel->has_device_opens =
		btf && btf__find_by_name_kind(btf, "chrdev_open", BTF_KIND_FUNC) > 0;
	*ret_multi_uprobes = btf && enum_value(btf, "bpf_attach_type", "BPF_TRACE_UPROBE_MULTI");
	kernel->session_type =
		btf ? enum_value(btf, "bpf_attach_type", "BPF_TRACE_UPROBE_SESSION") : 0;
}

/* Without cgroup support in the kernel's sched_ext, the scheduler cannot support cgroups either. */
static void leave_out_cgroups(struct zernel_bpf *skel)
{
	skel->struct_ops.zernel->cgroup_init = NULL;
	skel->struct_ops.zernel->cgroup_exit = NULL;
	skel->struct_ops.zernel->cgroup_set_weight = NULL;
	skel->struct_ops.zernel->cgroup_set_bandwidth = NULL;
	skel->struct_ops.zernel->cgroup_move = NULL;
}

/* Sets the attach type of session programs, which libbpf before 1.6 does not know. */
static int choose_sessions(struct kernel *kernel)
{
	struct bpf_program *const sessions[] = { kernel->skel->progs.launch_session,
						 kernel->skel->progs.copy_session,
						 kernel->skel->progs.work_session };
	enum bpf_attach_type type = (enum bpf_attach_type)kernel->session_type;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sessions) && err == 0; i++)
		err = type ? bpf_program__set_expected_attach_type(sessions[i], type)
			   : bpf_program__set_autoload(sessions[i], false);
	return err;
}

/* Only the scheduler learns, so its programs include those of learning. */
static int leave_out_scheduler(struct zernel_bpf *skel)
{
	struct bpf_program *prog;
	int err;

	bpf_object__for_each_program(prog, skel->obj) {
		if (bpf_program__type(prog) != BPF_PROG_TYPE_STRUCT_OPS)
			continue;
		err = bpf_program__set_autoload(prog, false);
		if (err < 0)
			return err;
	}
	err = bpf_program__set_autoload(skel->progs.learn_exec, false);
	return err < 0 ? err : bpf_map__set_autocreate(skel->maps.zernel, false);
}

static int load(struct kernel *kernel, bool has_cgroups)
{
	int err;

	kernel->skel = zernel_bpf__open();
	if (!kernel->skel)
		return -errno;
	if (!has_cgroups)
		leave_out_cgroups(kernel->skel);
	if (!kernel->honors_limits)
		kernel->skel->struct_ops.zernel->cgroup_set_bandwidth = NULL;
	err = choose_sessions(kernel);
	if (err < 0)
		return err;
	err = bpf_program__set_autoload(kernel->skel->progs.device_opened,
					kernel->has_device_opens);
	if (err == 0 && !kernel->has_scheduler)
		err = leave_out_scheduler(kernel->skel);
	if (err < 0)
		return err;
	return zernel_bpf__load(kernel->skel);
}

int kernel_new(kernel_log_fn log, struct kernel **ret)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = calloc(1, sizeof(*kernel));
	bool has_cgroups, has_multi_uprobes;
	int err;

	if (!kernel)
		return -ENOMEM;
	libbpf_set_print(libbpf_print);
	find_features(kernel, &has_cgroups, &has_multi_uprobes);
	if (!has_multi_uprobes) {
		err = opener_new(&kernel->opener);
		if (err < 0)
			return err;
	}
	libbpf_log = kernel->has_device_opens ? NULL : log;
	err = load(kernel, has_cgroups);
	/* Some kernels refuse programs at kernel functions. All others work without that one. */
	if (err < 0 && kernel->has_device_opens) {
		zernel_bpf__destroy(kernel->skel);
		kernel->has_device_opens = false;
		libbpf_log = log;
		err = load(kernel, has_cgroups);
	}
	libbpf_log = log;
	if (err < 0)
		return err;
	*ret = TAKE_PTR(kernel);
	return 0;
}

struct kernel *kernel_free(struct kernel *kernel)
{
	if (!kernel)
		return NULL;
	kernel_detach_scheduler(kernel);
	kernel_close_learning(kernel);
	kernel_close_devices(kernel);
	kernel_close_probes(kernel);
	kernel_close_signals(kernel);
	zernel_bpf__destroy(kernel->skel);
	free(kernel);
	return NULL;
}

bool kernel_has_scheduler(const struct kernel *kernel)
{
	return kernel->has_scheduler;
}

const struct sched_ext_gap *kernel_scheduler_gap(const struct kernel *kernel)
{
	return kernel->has_scheduler ? NULL : &kernel->scheduler_gap;
}

bool kernel_honors_limits(const struct kernel *kernel)
{
	return kernel->honors_limits;
}

void kernel_set_policy(struct kernel *kernel, const struct sched_policy *policy)
{
	kernel->skel->data->policy = *policy;
}

/* The kernel's counter of CPU hotplug events. */
static u64 hotplug_seq(void)
{
	uint64_t seq = 0;

	file_read_number("/sys/kernel/sched_ext/hotplug_seq", &seq);
	return seq;
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
	u64 seq = hotplug_seq();

	if (!kernel->has_scheduler)
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
	if (hotplug_seq() == seq)
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
