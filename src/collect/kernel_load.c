/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Loads the BPF programs. A feature that the kernel lacks is left out with its programs. If the
 * kernel refuses a program for another reason, the feature that the program belongs to is left out,
 * and all others are loaded again.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "base/kernel_features.h"
#include "collect/kernel_internal.h"
#include "core/feature.h"

#define PROGRAMS_MAX 15

/* The programs of features that can be left out. The other programs are essential, or belong to the
 * scheduler. */
static const struct {
	u32 feature;
	const char *programs[PROGRAMS_MAX];
} optional[] = {
	{ FEATURE_LAUNCH_TIMES, { "launch_session", "copy_session", "work_session" } },
	{ FEATURE_DEVICE_OPENS, { "device_opened" } },
	{ FEATURE_DISK_NAMES, { "thread_reads" } },
	{ FEATURE_GPU_MEMORY,
	  { "alloc_return", "alloc_late_enter", "free_enter", "free_return", "hold_return",
	    "map_return", "unmap_enter", "device_return", "device_id_return", "context_new_return",
	    "context_set_return", "context_free_enter", "context_free_return", "oom_enter",
	    "usage_enter" } },
	{ FEATURE_RANKS,
	  { "collective_enter", "collective_return", "comm_enter", "comm_return",
	    "comm_told_return", "comm_free_enter", "group_start_enter", "group_end_return",
	    "comms_exec", "comms_exit" } },
	{ FEATURE_SCOPES, { "scope_return", "scope_leave" } },
	{ FEATURE_LINES, { "lines_tick", "lines_switch", "kernel_return" } },
};

/* The hook of libbpf has no context argument. */
static kernel_log_fn libbpf_log;
static char failed_program[64]; /* the last program that libbpf reported */

static int libbpf_print(enum libbpf_print_level level, const char *format, va_list args)
{
	CLEANUP_FREE char *text = NULL;
	int length;

	if (level > LIBBPF_WARN)
		return 0;
	length = vasprintf(&text, format, args);
	if (length < 0) {
		text = NULL;
		return 0;
	}
	if (length > 0 && text[length - 1] == '\n')
		text[length - 1] = '\0';
	sscanf(text, "libbpf: prog '%63[^']': failed", failed_program);
	if (libbpf_log)
		libbpf_log(text);
	return 0;
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
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sessions) && err == 0; i++)
		err = bpf_program__set_expected_attach_type(
			sessions[i], (enum bpf_attach_type)kernel->session_type);
	return err;
}

/* Only the scheduler learns, so its programs include those of learning. */
static bool is_of_scheduler(const struct bpf_program *prog)
{
	return bpf_program__type(prog) == BPF_PROG_TYPE_STRUCT_OPS ||
	       strcmp(bpf_program__name(prog), "learn_exec") == 0;
}

static u32 feature_of(const struct bpf_program *prog)
{
	if (is_of_scheduler(prog))
		return FEATURE_SCHEDULER;
	for (size_t i = 0; i < ARRAY_SIZE(optional); i++)
		for (size_t k = 0; k < PROGRAMS_MAX && optional[i].programs[k]; k++)
			if (!strcmp(optional[i].programs[k], bpf_program__name(prog)))
				return optional[i].feature;
	return FEATURE_NR;
}

static int leave_out_programs(const struct kernel *kernel)
{
	struct bpf_program *prog;
	int err = 0;

	bpf_object__for_each_program(prog, kernel->skel->obj)
		if (err == 0 && !kernel_has(kernel, feature_of(prog)))
			err = bpf_program__set_autoload(prog, false);
	if (err == 0 && !kernel_has(kernel, FEATURE_SCHEDULER))
		err = bpf_map__set_autocreate(kernel->skel->maps.zernel, false);
	return err;
}

static int load(struct kernel *kernel)
{
	int err;

	failed_program[0] = '\0';
	kernel->skel = zernel_bpf__open();
	if (!kernel->skel)
		return -errno;
	if (!kernel_has(kernel, FEATURE_GROUP_WEIGHTS))
		leave_out_cgroups(kernel->skel);
	if (!kernel_has(kernel, FEATURE_GROUP_LIMITS))
		kernel->skel->struct_ops.zernel->cgroup_set_bandwidth = NULL;
	err = choose_sessions(kernel);
	if (err == 0)
		err = leave_out_programs(kernel);
	return err < 0 ? err : zernel_bpf__load(kernel->skel);
}

/* The feature to leave out after a failed load, or FEATURE_NR. Without a name, it was a map: that
 * of the scheduler. */
static u32 refused_feature(const struct kernel *kernel)
{
	const struct bpf_program *prog =
		kernel->skel && *failed_program
			? bpf_object__find_program_by_name(kernel->skel->obj, failed_program)
			: NULL;
	u32 feature = prog ? feature_of(prog) : FEATURE_SCHEDULER;

	return kernel_has(kernel, feature) ? feature : FEATURE_NR;
}

static void report_refusal(kernel_log_fn log, u32 feature)
{
	char text[256];

	snprintf(text, sizeof(text), "this kernel refuses the BPF program %s: %s is left out (%s)",
		 *failed_program ? failed_program : "of the scheduler", feature_label(feature),
		 feature_row(feature)->loss);
	if (log)
		log(text);
}

static void forget_scheduler(struct kernel *kernel)
{
	kernel->scheduler_gap =
		(struct sched_ext_gap){ SCHED_EXT_REFUSED, "the programs of the scheduler" };
}

/* Each attempt leaves out one more feature. An attempt with messages follows the last one that
 * fails. */
static int load_what_works(struct kernel *kernel, kernel_log_fn log)
{
	int err = load(kernel);

	while (err < 0) {
		u32 feature = refused_feature(kernel);

		if (feature >= FEATURE_NR)
			break;
		report_refusal(log, feature);
		if (feature == FEATURE_SCHEDULER)
			forget_scheduler(kernel);
		kernel->lacks |= 1U << feature;
		kernel->refused |= 1U << feature;
		zernel_bpf__destroy(kernel->skel);
		err = load(kernel);
	}
	if (err < 0 && log) {
		zernel_bpf__destroy(kernel->skel);
		libbpf_log = log;
		err = load(kernel);
	}
	/* A lack of privilege is -EPERM. The verifier and security modules refuse one program. */
	return err == -EACCES && *failed_program ? -ENOEXEC : err;
}

/* Detects the features of the kernel from its types. */
static int find_features(struct kernel *kernel, kernel_log_fn log)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = btf__load_vmlinux_btf();
	char list[128], text[256];
	size_t position = 0;
	u32 essential;

	kernel->lacks = features_missing(btf);
	essential = kernel->lacks & features_essential();
	(void)sched_ext_next_gap(btf, &position, &kernel->scheduler_gap);
	if (btf)
		kernel->session_type =
			btf_enumerator(btf, "bpf_attach_type", "BPF_TRACE_UPROBE_SESSION");
	if (!essential)
		return 0;
	features_list(essential, list, sizeof(list));
	snprintf(text, sizeof(text), "this kernel lacks what zerneld cannot do without: %s", list);
	if (log)
		log(btf ? text
			: "this kernel has no BTF, without which zerneld cannot load its programs");
	return -ENOSYS;
}

int kernel_load(struct kernel *kernel, kernel_log_fn log)
{
	int err;

	libbpf_log = NULL;
	libbpf_set_print(libbpf_print);
	err = find_features(kernel, log);
	if (err == 0 && !kernel_has(kernel, FEATURE_MULTI_UPROBES))
		err = opener_new(&kernel->opener);
	if (err == 0)
		err = load_what_works(kernel, log);
	libbpf_log = log;
	return err;
}
