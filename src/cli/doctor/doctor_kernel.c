/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of the kernel: what it is, what it was built with, what it allows. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/sched_ext.h"
#include "cli/doctor/doctor_internal.h"

#define BTF_FILE     "/sys/kernel/btf/vmlinux"
#define OPS_FILE     "/sys/kernel/sched_ext/root/ops"
#define OUR_OPS	     "zernel"
#define PROBES_MAJOR 5
#define PROBES_MINOR 15

static void release_of(const struct doctor *doctor, char *ret, size_t size)
{
	if (!doctor_read(doctor, "/proc/sys/kernel/osrelease", ret, size))
		snprintf(ret, size, "unknown");
}

struct finding check_kernel(const struct doctor *doctor)
{
	char release[128];
	u32 major, minor;

	release_of(doctor, release, sizeof(release));
	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return finding(VERDICT_WARNING, NULL, "its release is not known: %s", release);
	if (major < PROBES_MAJOR || (major == PROBES_MAJOR && minor < PROBES_MINOR))
		return finding(VERDICT_FAILURE, NULL, "%s is older than 5.15, which probes need",
			       release);
	return finding(VERDICT_OK, NULL, "%s", release);
}

struct finding check_sched_ext(const struct doctor *doctor)
{
	char state[64] = "";

	if (!doctor_exists(doctor, "/sys/kernel/sched_ext"))
		return finding(
			VERDICT_FAILURE, NULL,
			"this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT, Linux 6.12 or "
			"newer): zerneld only watches");
	doctor_read(doctor, "/sys/kernel/sched_ext/state", state, sizeof(state));
	return finding(VERDICT_OK, NULL, "there, %s", *state ? state : "its state is not known");
}

static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return 0;
}

/*
 * Kernels whose BTF an old pahole made, as Debian's 7.1.13 and 7.2.12 of trixie-backports, know
 * the scheduler's struct and not all that schedulers call.
 */
static struct finding check_functions(const struct doctor *doctor, const struct btf *btf)
{
	static const char blame[] =
		"as that of trixie-backports' 7.2.12 (made by an old pahole): no "
		"sched_ext scheduler can be loaded";
	char release[128];
	struct sched_ext_gap gap;
	size_t position = 0;

	if (!sched_ext_next_gap(btf, &position, &gap))
		return finding(VERDICT_OK, NULL, "there, with what schedulers call");
	if (gap.kind == SCHED_EXT_NO_OPS)
		return finding(VERDICT_OK, NULL, "there, without sched_ext");
	release_of(doctor, release, sizeof(release));
	return finding(VERDICT_FAILURE, NULL, "the BTF of this kernel (%s) lacks FUNC %s%s, %s",
		       release, gap.name,
		       gap.kind == SCHED_EXT_HIDDEN
			       ? " as programs call it, without its hidden parameter"
			       : "",
		       blame);
}

struct finding check_btf(const struct doctor *doctor)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = NULL;
	libbpf_print_fn_t before;
	char path[DOCTOR_PATH_LEN];

	if (!doctor_exists(doctor, BTF_FILE))
		return finding(VERDICT_FAILURE, NULL,
			       "this kernel has no " BTF_FILE
			       " (CONFIG_DEBUG_INFO_BTF): nothing of Zernel can be loaded");
	doctor_path(doctor, BTF_FILE, path);
	before = libbpf_set_print(say_nothing);
	btf = btf__parse_raw(path);
	libbpf_set_print(before);
	if (!btf)
		return finding(VERDICT_FAILURE, NULL, BTF_FILE " cannot be read: %s",
			       strerror(errno));
	return check_functions(doctor, btf);
}

struct finding check_lockdown(const struct doctor *doctor)
{
	char text[128];

	if (!doctor_read(doctor, "/sys/kernel/security/lockdown", text, sizeof(text)))
		return finding(VERDICT_OK, NULL, "none is seen");
	if (strstr(text, "[confidentiality]"))
		return finding(VERDICT_FAILURE, NULL,
			       "confidentiality: BPF programs may not read the kernel's memory");
	return finding(VERDICT_OK, NULL, "%s", strstr(text, "[integrity]") ? "integrity" : "none");
}

/* Ours as zerneld sees it. */
static struct finding check_ours(const struct snapshot_sched *sched)
{
	if (sched->state == SCHED_ATTACHED)
		return finding(VERDICT_OK, NULL, "zernel is attached");
	if (sched->state == SCHED_EJECTED)
		return finding(VERDICT_FAILURE, NULL, "the kernel ejected zernel: %s",
			       sched->reason);
	return finding(sched->reason[0] ? VERDICT_WARNING : VERDICT_OK, NULL,
		       "zernel is not attached%s%s", sched->reason[0] ? ": " : "", sched->reason);
}

struct finding check_schedulers(const struct doctor *doctor)
{
	char ops[128] = "";

	doctor_read(doctor, OPS_FILE, ops, sizeof(ops));
	if (*ops && strcmp(ops, OUR_OPS) != 0)
		return finding(VERDICT_WARNING, "echo S > /proc/sysrq-trigger",
			       "the scheduler %s is attached, and only one can be: zerneld only "
			       "watches until it is gone",
			       ops);
	if (doctor->snapshot)
		return check_ours(&doctor->snapshot->sched);
	return finding(VERDICT_OK, NULL, "%s", *ops ? "zernel is attached" : "none is attached");
}
