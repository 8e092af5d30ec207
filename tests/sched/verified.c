/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verified: loads all BPF programs together, as zerneld does. Prints for each program
 * the figures of the verifier that veristat prints. veristat opens the object again
 * for each program, which takes many minutes on an emulated CPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "base/sched_ext.h"
#include "collect/kernel_internal.h"

#define LOG_STATS 4	      /* BPF_LOG_STATS: figures, no trace */
#define LOG_BYTES (64 * 1024) /* the load fails if the figures and messages do not fit */

static int print_warning(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* Returns the last match, because newer kernels print the parts of a sum before the sum. */
static unsigned number_after(const char *text, const char *word)
{
	unsigned number = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		number = (unsigned)strtoul(text, NULL, 10);
	}
	return number;
}

/* Returns what the verifier said; nothing if the program was not loaded. */
static const char *print_program(const struct bpf_program *prog)
{
	size_t size;
	const char *log = bpf_program__log_buf(prog, &size);

	printf("%-24s | %12u | %6u | %11u | %9.1f\n", bpf_program__name(prog),
	       number_after(log, "processed "), number_after(log, "total_states "),
	       number_after(log, "peak_states "), number_after(log, "verification time ") / 1e3);
	return log;
}

static void leave_out_scheduler(struct zernel_bpf *skel)
{
	struct bpf_program *prog;

	bpf_map__set_autocreate(skel->maps.zernel, false);
	bpf_program__set_autoload(skel->progs.learn_exec, false);
	bpf_object__for_each_program(prog, skel->obj)
		if (bpf_program__type(prog) == BPF_PROG_TYPE_STRUCT_OPS)
			bpf_program__set_autoload(prog, false);
}

/* Leaves out what zerneld leaves out or adapts to the kernel (src/collect/kernel.c). */
static void adapt(struct zernel_bpf *skel)
{
	struct btf *btf = btf__load_vmlinux_btf();

	bpf_program__set_autoload(skel->progs.launch_session, false);
	bpf_program__set_autoload(skel->progs.copy_session, false);
	bpf_program__set_autoload(skel->progs.work_session, false);
	if (!sched_ext_tells_limits(btf))
		skel->struct_ops.zernel->cgroup_set_bandwidth = NULL;
	if (btf__find_by_name_kind(btf, "sched_ext_ops", BTF_KIND_STRUCT) < 0)
		leave_out_scheduler(skel);
	btf__free(btf);
}

int main(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_level = LOG_STATS);
	struct bpf_program *prog;
	const char *log, *last = "";
	struct zernel_bpf *skel;
	int err;

	libbpf_set_print(print_warning);
	skel = zernel_bpf__open_opts(&opts);
	if (!skel) {
		perror("verified: cannot open the BPF programs");
		return 1;
	}
	bpf_object__for_each_program(prog, skel->obj)
		bpf_program__set_log_buf(prog, calloc(1, LOG_BYTES), LOG_BYTES);
	adapt(skel);
	err = zernel_bpf__load(skel);
	puts("BPF program              | instructions | states | peak states | time, ms");
	bpf_object__for_each_program(prog, skel->obj) {
		log = print_program(prog);
		last = *log ? log : last;
	}
	/* Programs are loaded in this order: the last one with a log was refused. */
	if (err < 0)
		fputs(last, stdout);
	return err < 0;
}
