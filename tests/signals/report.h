/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What is known of a command at one time, complete: processes that ended and those that live. */
#include <stdio.h>
#include "collect/kernel.h"

struct report_process {
	struct process_state state; /* the present stay is booked */
	bool has_ended;
	s32 gpu_number[GPU_MAX]; /* the machine's number of each of its devices, or -1 */
	struct hist hists[HIST_KIND_NR];
	struct kernel_culprit culprits[CULPRITS_MAX]; /* whoever comes first of more than these */
	u32 nr_culprits;
};

struct report {
	u64 now_ns; /* CLOCK_MONOTONIC */
	bool is_final;
	struct report_process *processes;
	struct thread_record *threads;
	u32 nr_processes;
	u32 nr_threads;
	struct kernel_drops drops;
	u64 nr_lost_maps;
};

/* Reads what the kernel forgets with the process as well. */
int report_add_process(struct report *report, struct kernel *kernel,
		       const struct process_state *process, bool has_ended);
int report_add_thread(struct report *report, const struct thread_record *thread);
/* All of `ended`, and what the kernel knows of those that live. */
int report_take(const struct report *ended, struct kernel *kernel, u64 now_ns, struct report *ret);
void report_done(struct report *report);

/* Calls of the program itself; a runtime makes those of its driver. */
u64 calls_by_program(const u64 counts[LEVEL_NR]);

/* For people. Colours only where `is_terminal`. */
void table_print(const struct report *report, bool is_terminal, FILE *out);
/* For programs: one object, one line. */
int json_print(const struct report *report, FILE *out);
