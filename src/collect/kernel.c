/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/kernel_internal.h"
#include "collect/topology.h"

/* From the kernel's enum scx_exit_kind and scx_exit_code: user ABI by practice. */
#define EXIT_KIND_ERROR	  1024
#define EXIT_CODE_RESTART (1ULL << 48)

DEFINE_CLEANUP(struct kernel, kernel_free);

static kernel_log_fn libbpf_log;

/* libbpf's hook takes no context, hence the one static above. */
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

static bool kernel_knows_sched_ext(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool known = btf && btf__find_by_name_kind(btf, "sched_ext_ops", BTF_KIND_STRUCT) > 0;

	btf__free(btf);
	return known;
}

/* The kernel's count of hotplug events: attaching fails if it moved since. */
static u64 hotplug_seq(void)
{
	uint64_t seq = 0;

	file_read_number("/sys/kernel/sched_ext/hotplug_seq", &seq);
	return seq;
}

static int configure_scheduler(struct zernel_bpf *skel)
{
	CLEANUP_FREE struct topology *topology = calloc(1, sizeof(*topology));
	int nr_cpus = libbpf_num_possible_cpus(), err;

	if (!topology)
		return -ENOMEM;
	if (nr_cpus < 0)
		return nr_cpus;
	/* The count first: a CPU that changes after it makes the attach fail, not lie. */
	skel->struct_ops.zernel->hotplug_seq = hotplug_seq();
	err = topology_read("/sys", nr_cpus, topology);
	if (err < 0)
		return err;
	skel->rodata->nr_cpus = (u32)nr_cpus;
	skel->rodata->nr_llcs = topology->nr_llcs;
	skel->rodata->nr_nodes = topology->nr_nodes;
	memcpy((void *)skel->rodata->cpu_llc, topology->cpu_llc, sizeof(topology->cpu_llc));
	memcpy((void *)skel->rodata->cpu_node, topology->cpu_node, sizeof(topology->cpu_node));
	return 0;
}

static int leave_out_scheduler(struct zernel_bpf *skel)
{
	struct bpf_program *prog;
	int err;

	bpf_object__for_each_program(prog, skel->obj)
	{
		if (bpf_program__type(prog) != BPF_PROG_TYPE_STRUCT_OPS)
			continue;
		err = bpf_program__set_autoload(prog, false);
		if (err < 0)
			return err;
	}
	return bpf_map__set_autocreate(skel->maps.zernel, false);
}

int kernel_new(kernel_log_fn log, u32 rules_off, struct kernel **ret)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = calloc(1, sizeof(*kernel));
	int err;

	if (!kernel)
		return -ENOMEM;
	libbpf_log = log;
	libbpf_set_print(libbpf_print);

	kernel->has_scheduler = kernel_knows_sched_ext();
	kernel->skel = zernel_bpf__open();
	if (!kernel->skel)
		return -errno;
	kernel->skel->rodata->rules_off = rules_off;
	err = kernel->has_scheduler ? configure_scheduler(kernel->skel)
				    : leave_out_scheduler(kernel->skel);
	if (err < 0)
		return err;
	err = zernel_bpf__load(kernel->skel);
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
	kernel_close_signals(kernel);
	zernel_bpf__destroy(kernel->skel);
	free(kernel);
	return NULL;
}

bool kernel_has_scheduler(const struct kernel *kernel)
{
	return kernel->has_scheduler;
}

int kernel_attach_scheduler(struct kernel *kernel)
{
	if (!kernel->has_scheduler)
		return -EOPNOTSUPP;
	kernel->scheduler = bpf_map__attach_struct_ops(kernel->skel->maps.zernel);
	return kernel->scheduler ? 0 : -errno;
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

bool sched_exit_wants_restart(const struct sched_exit *sched_exit)
{
	return sched_exit->kind < EXIT_KIND_ERROR && (sched_exit->code & EXIT_CODE_RESTART);
}

bool sched_exit_is_clean(const struct sched_exit *sched_exit)
{
	return sched_exit->kind < EXIT_KIND_ERROR;
}
