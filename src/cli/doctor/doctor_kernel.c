/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of the kernel: its release, its configuration and its restrictions. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/kernel_features.h"
#include "base/sched_ext.h"
#include "cli/doctor/doctor_internal.h"
#include "core/feature.h"

#define BTF_FILE "/sys/kernel/btf/vmlinux"
#define OPS_FILE "/sys/kernel/sched_ext/root/ops"
#define OUR_OPS	 "zernel"

static void release_of(const struct doctor *doctor, char *ret, size_t size)
{
	if (!doctor_read(doctor, "/proc/sys/kernel/osrelease", ret, size))
		snprintf(ret, size, "unknown");
}

static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return 0;
}

/* NULL with errno if the kernel has none, or if it cannot be read. */
static struct btf *read_btf(const struct doctor *doctor)
{
	libbpf_print_fn_t before = libbpf_set_print(say_nothing);
	char path[DOCTOR_PATH_LEN];
	struct btf *btf;

	doctor_path(doctor, BTF_FILE, path);
	btf = btf__parse_raw(path);
	libbpf_set_print(before);
	return btf;
}

u32 doctor_lacks(const struct doctor *doctor)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = read_btf(doctor);

	return features_missing(btf) | (doctor->snapshot ? doctor->snapshot->refused : 0);
}

struct finding check_kernel(const struct doctor *doctor)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = read_btf(doctor);
	u32 missing = btf ? features_missing(btf) & features_essential() : 0;
	char release[128], list[128];

	release_of(doctor, release, sizeof(release));
	if (!missing)
		return finding(VERDICT_OK, NULL, "%s", release);
	features_list(missing, list, sizeof(list));
	return finding(VERDICT_FAILURE, NULL, "%s lacks %s: zerneld cannot watch processes",
		       release, list);
}

/* "launch_times (Linux 6.13): no durations of launches; ..." */
struct finding check_features(const struct doctor *doctor)
{
	u32 lacks = doctor_lacks(doctor) & ~features_essential();
	u32 refused = doctor->snapshot ? doctor->snapshot->refused : 0;
	struct finding ret = finding(lacks ? VERDICT_WARNING : VERDICT_OK, NULL, "%s",
				     lacks ? "left out: " : "all that zerneld uses");
	size_t used = strlen(ret.text);
	const char *separator = "";

	for (u32 i = 0; i < FEATURE_NR && used < sizeof(ret.text); i++) {
		if (!(lacks & (1U << i)))
			continue;
		used += (size_t)snprintf(ret.text + used, sizeof(ret.text) - used, "%s%s (%s): %s",
					 separator, feature_label(i),
					 refused & (1U << i) ? "refused by this kernel"
							     : feature_row(i)->since,
					 feature_row(i)->loss);
		separator = "; ";
	}
	return ret;
}

struct finding check_sched_ext(const struct doctor *doctor)
{
	char state[64] = "";

	if (!doctor_exists(doctor, "/sys/kernel/sched_ext"))
		return finding(
			VERDICT_WARNING, NULL,
			"this kernel has no sched_ext: zerneld watches jobs, but acts only through "
			"nice values");
	doctor_read(doctor, "/sys/kernel/sched_ext/state", state, sizeof(state));
	return finding(VERDICT_OK, NULL, "available, state: %s", *state ? state : "unknown");
}

/*
 * An old pahole builds incomplete BTF: it has the struct of sched_ext, but not all functions that
 * schedulers call. Debian's kernels 7.1.13 and 7.2.12 of trixie-backports are examples.
 */
static struct finding check_functions(const struct doctor *doctor, const struct btf *btf)
{
	static const char remedy[] =
		"to use the scheduler, boot another kernel of your distribution, and report this "
		"to its maintainers";
	char release[128];
	struct sched_ext_gap gap;
	size_t position = 0;

	if (!sched_ext_next_gap(btf, &position, &gap))
		return finding(VERDICT_OK, NULL,
			       "complete, with all functions that schedulers call");
	if (gap.kind == SCHED_EXT_NO_OPS)
		return finding(VERDICT_OK, NULL, "complete, without sched_ext");
	release_of(doctor, release, sizeof(release));
	return finding(
		VERDICT_FAILURE, remedy,
		"the BTF of this kernel (%s) lacks function %s%s: no sched_ext scheduler can "
		"be loaded (probably an old pahole built this BTF)",
		release, gap.name,
		gap.kind == SCHED_EXT_HIDDEN ? " in the form that programs call" : "");
}

struct finding check_btf(const struct doctor *doctor)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = NULL;

	if (!doctor_exists(doctor, BTF_FILE))
		return finding(VERDICT_FAILURE, NULL,
			       "this kernel has no " BTF_FILE
			       ": no BPF program of Zernel can be loaded");
	btf = read_btf(doctor);
	if (!btf)
		return finding(VERDICT_FAILURE, NULL, BTF_FILE " cannot be read: %s",
			       strerror(errno));
	return check_functions(doctor, btf);
}

struct finding check_lockdown(const struct doctor *doctor)
{
	char text[128];

	if (!doctor_read(doctor, "/sys/kernel/security/lockdown", text, sizeof(text)))
		return finding(VERDICT_OK, NULL, "no lockdown found");
	if (strstr(text, "[confidentiality]"))
		return finding(
			VERDICT_FAILURE, NULL,
			"confidentiality: BPF programs may not read kernel memory, which Zernel "
			"needs");
	return finding(VERDICT_OK, NULL, "%s", strstr(text, "[integrity]") ? "integrity" : "none");
}

/* The state of the scheduler zernel, from the snapshot. */
static struct finding check_ours(const struct snapshot_sched *sched)
{
	const char *instead = sched->actuator == ACTUATOR_NICE ? "; nice values act instead" : "";

	if (sched->state == SCHED_ATTACHED && sched->limit != CPU_LIMIT_NONE)
		return finding(VERDICT_WARNING,
			       "if a user of this node relies on CPU limits, set attach=auto in "
			       "zernel.conf(5) and run: systemctl reload zerneld",
			       "zernel is attached, and CPU limits may have no effect: %s",
			       sched->reason);
	if (sched->state == SCHED_OFF && sched->limit != CPU_LIMIT_NONE)
		return finding(VERDICT_WARNING,
			       "boot Linux 6.17 or newer with cgroups v2, or remove the CPU limits "
			       "(attach in zernel.conf(5))",
			       "zerneld refuses to attach zernel: %s%s", sched->reason, instead);
	if (sched->state == SCHED_ATTACHED)
		return finding(VERDICT_OK, NULL, "zernel is attached");
	if (sched->state == SCHED_EJECTED)
		return finding(
			VERDICT_FAILURE,
			"find the cause (journalctl -u zerneld), then run: systemctl restart "
			"zerneld",
			"the kernel ejected zernel: %s%s", sched->reason, instead);
	if (sched->state == SCHED_WAITING)
		return finding(VERDICT_OK, NULL, "zernel is not attached: %s", sched->reason);
	return finding(sched->reason[0] ? VERDICT_WARNING : VERDICT_OK, NULL,
		       "zernel is not attached%s%s%s", sched->reason[0] ? ": " : "", sched->reason,
		       instead);
}

struct finding check_schedulers(const struct doctor *doctor)
{
	char ops[128] = "";

	doctor_read(doctor, OPS_FILE, ops, sizeof(ops));
	if (*ops && strcmp(ops, OUR_OPS) != 0)
		return finding(VERDICT_WARNING,
			       "find the service that attached it, ask its owner, and stop that "
			       "service; until then zerneld can only use nice values",
			       "the scheduler %s is attached, and the kernel allows only one: "
			       "zernel cannot attach",
			       ops);
	if (doctor->snapshot)
		return check_ours(&doctor->snapshot->sched);
	return finding(VERDICT_OK, NULL, "%s",
		       *ops ? "zernel is attached" : "no sched_ext scheduler is attached");
}
