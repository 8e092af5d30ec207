/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include "base/macros.h"
#include "core/process.h"
#include "core/snapshot.h"

/* The length of the UTF-8 character at `text` in bytes; 0 if it is not valid. */
static size_t character(const unsigned char *text, size_t size)
{
	/* For each range of the first byte: the length, and the range of the second byte. */
	static const struct {
		unsigned char first, last, nr, low, high;
	} rows[] = {
		{ 0x01, 0x7f, 1, 0x00, 0x00 }, { 0xc2, 0xdf, 2, 0x80, 0xbf },
		{ 0xe0, 0xe0, 3, 0xa0, 0xbf }, { 0xe1, 0xec, 3, 0x80, 0xbf },
		{ 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
		{ 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf },
		{ 0xf4, 0xf4, 4, 0x80, 0x8f },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t nr = rows[i].nr;

		if (*text < rows[i].first || *text > rows[i].last)
			continue;
		if (nr > size || (nr > 1 && (text[1] < rows[i].low || text[1] > rows[i].high)))
			return 0;
		for (size_t k = 2; k < nr; k++)
			if ((text[k] & 0xc0) != 0x80)
				return 0;
		return nr;
	}
	return 0;
}

void snapshot_set_text(char *to, size_t to_size, const char *from, size_t from_size)
{
	static const char replacement[] = "\xef\xbf\xbd";
	const char *end = from + strnlen(from, from_size);
	size_t used = 0;

	while (from < end) {
		size_t nr = character((const unsigned char *)from, (size_t)(end - from));
		const char *source = nr ? from : replacement;
		size_t length = nr ? nr : sizeof(replacement) - 1;

		if (used + length >= to_size)
			break;
		memcpy(to + used, source, length);
		used += length;
		from += nr ? nr : 1;
	}
	memset(to + used, 0, to_size - used);
}

/* Only for tables without empty entries. */
#define LABEL(table, i) ((i) < ARRAY_SIZE(table) ? (table)[(i)] : "unknown")

const char *snapshot_drop_label(u32 drop)
{
	static const char *const labels[DROP_NR] = {
		[DROP_EVENTS] = "events",
		[DROP_PROCESSES] = "processes",
		[DROP_FRAMES] = "frames",
		[DROP_LEDGER] = "ledger",
		[DROP_LAUNCHERS] = "launchers",
		[DROP_SAMPLES] = "samples",
		[DROP_BPF_PROGRAM_RUNS] = "bpf_program_runs",
		[DROP_COMMS] = "communicators",
		[DROP_MEMORY] = "memory",
		[DROP_OBSERVATIONS] = "observations",
		[DROP_MAPS] = "maps",
		[DROP_PROFILES] = "profiles",
		[DROP_READS] = "process_reads",
		[DROP_GPU_SAMPLES] = "gpu_samples",
		[DROP_SNAPSHOT_PROCESSES] = "snapshot_processes",
		[DROP_SNAPSHOT_THREADS] = "snapshot_threads",
		[DROP_SNAPSHOT_JOBS] = "snapshot_jobs",
		[DROP_SNAPSHOT_GPUS] = "snapshot_gpus",
		[DROP_SNAPSHOT_HISTS] = "snapshot_histograms",
		[DROP_SNAPSHOT_COMMS] = "snapshot_communicators",
		[DROP_STACKS] = "oom_stacks",
		[DROP_KERNELS] = "kernel_names",
	};

	return LABEL(labels, drop);
}

const char *snapshot_actuator_label(u32 actuator)
{
	static const char *const labels[ACTUATOR_NR] = {
		[ACTUATOR_NONE] = "none",
		[ACTUATOR_SCHED_EXT] = "sched_ext",
		[ACTUATOR_NICE] = "nice",
	};

	return LABEL(labels, actuator);
}

const char *snapshot_sched_state_label(u32 state)
{
	static const char *const labels[SCHED_STATE_NR] = {
		[SCHED_OFF] = "off",
		[SCHED_ATTACHED] = "attached",
		[SCHED_EJECTED] = "ejected",
		[SCHED_WAITING] = "waiting",
	};

	return LABEL(labels, state);
}

const char *snapshot_hist_label(u32 kind)
{
	static const char *const labels[HIST_COLLECTIVE] = {
		[HIST_SYNC_WAIT] = "sync_wait",
		[HIST_LOADER_WAIT] = "loader_wait",
		[HIST_RUNQUEUE_WAIT] = "runqueue_wait",
		[HIST_LAUNCH] = "launch",
		[HIST_STEP] = "step",
		[HIST_IDLE] = "idle",
		[HIST_RANK_WAIT] = "rank_wait",
	};

	return kind < HIST_COLLECTIVE ? labels[kind] : operation_label(kind - HIST_COLLECTIVE);
}

const char *idle_cause_label(u32 cause)
{
	static const char *const labels[IDLE_CAUSE_NR] = {
		[IDLE_CPU] = "cpu",
		[IDLE_RUNQUEUE] = "runqueue",
		[IDLE_LOADER_CPU] = "loader_cpu",
		[IDLE_LOADER_RUNQUEUE] = "loader_runqueue",
		[IDLE_LOADER_DISK] = "loader_disk",
		[IDLE_LOADER_OTHER] = "loader_other",
		[IDLE_COLLECTIVE] = "collective",
		[IDLE_DISK] = "disk",
		[IDLE_MEMORY] = "memory",
		[IDLE_LOCK] = "lock",
		[IDLE_OTHER] = "other",
	};

	return LABEL(labels, cause);
}

const char *step_basis_label(u32 basis)
{
	static const char *const labels[STEP_BASIS_NR] = {
		[STEP_BASIS_NONE] = "none",
		[STEP_BASIS_SYNC] = "sync",
		[STEP_BASIS_ITERATION] = "iteration",
		[STEP_BASIS_OPTIMIZER] = "optimizer",
	};

	return LABEL(labels, basis);
}

const char *gpu_evidence_label(u32 evidence)
{
	static const char *const labels[GPU_EVIDENCE_NR] = {
		[GPU_EVIDENCE_UNKNOWN] = "unknown",
		[GPU_EVIDENCE_NONE] = "none",
		[GPU_EVIDENCE_DEVICE] = "device",
	};

	return LABEL(labels, evidence);
}

const char *gpu_basis_label(u32 basis)
{
	static const char *const labels[GPU_BASIS_NR] = {
		[GPU_BASIS_NONE] = "none",	 [GPU_BASIS_CONFLICT] = "conflict",
		[GPU_BASIS_RUNTIME] = "runtime", [GPU_BASIS_DRIVER] = "driver",
		[GPU_BASIS_FILE] = "file",
	};

	return LABEL(labels, basis);
}

const char *gpu_counter_label(u32 counter)
{
	static const char *const labels[GPU_COUNTER_NR] = {
		[GPU_COUNTER_NONE] = "none",
		[GPU_COUNTER_UTILIZATION] = "utilization",
		[GPU_COUNTER_GPM] = "gpm",
		[GPU_COUNTER_ENGINE] = "engine",
	};

	return LABEL(labels, counter);
}

const char *sched_class_label(u32 sched_class)
{
	static const char *const labels[CLASS_NR] = {
		[CLASS_ORDINARY] = "ordinary",
		[CLASS_FEEDER] = "feeder",
		[CLASS_WANTED_LOADER] = "wanted_loader",
		[CLASS_LATE_LOADER] = "late_loader",
		[CLASS_LOADER] = "loader",
		[CLASS_SPINNER] = "spinner",
		[CLASS_SYSTEM] = "system",
		[CLASS_IDLE] = "idle",
	};

	return LABEL(labels, sched_class);
}

const char *sched_decision_label(u32 decision)
{
	static const char *const labels[DECISION_NR] = {
		[DECISION_IDLE_CPU] = "idle_cpu",   [DECISION_QUEUED] = "queued",
		[DECISION_PREEMPTED] = "preempted", [DECISION_PROMOTED] = "promoted",
		[DECISION_OVERDUE] = "overdue",	    [DECISION_SLICE_EXTENDED] = "slice_extended",
		[DECISION_CAPPED] = "capped",	    [DECISION_THROTTLED] = "throttled",
	};

	return LABEL(labels, decision);
}

const char *sched_rule_label(u32 rule)
{
	static const char *const labels[RULE_NR] = {
		[RULE_FEEDER] = "feeder",
		[RULE_LOADER] = "loader",
		[RULE_LATE_LOADER] = "late-loader",
		[RULE_SPINNER] = "spinner",
		[RULE_HELPER] = "helper",
		[RULE_PREEMPT] = "preempt",
		[RULE_TIER] = "tier",
		[RULE_PLACE] = "place",
		[RULE_CRITICAL] = "critical",
		[RULE_POLLER] = "poller",
		[RULE_OPENING] = "opening",
	};

	return LABEL(labels, rule);
}

int sched_rule_find(const char *name, size_t length, u32 *ret_rule)
{
	for (u32 rule = 0; rule < RULE_NR; rule++) {
		const char *label = sched_rule_label(rule);

		if (strlen(label) == length && memcmp(label, name, length) == 0) {
			*ret_rule = rule;
			return 0;
		}
	}
	return -EINVAL;
}
