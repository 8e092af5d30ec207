/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The complete state of a command at one time: ended processes and live processes. */
#include <stdio.h>
#include "collect/kernel.h"

struct report_process {
	struct process_state state; /* the time in the current phase is included */
	bool has_ended;
	struct hist hists[HIST_KIND_NR];
	struct kernel_culprit culprits[CULPRITS_MAX]; /* the first ones, if there are more */
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

/* Also reads the state that is deleted with the process. */
int report_add_process(struct report *report, struct kernel *kernel,
		       const struct process_state *process, bool has_ended);
int report_add_thread(struct report *report, const struct thread_record *thread);
/* Combines `ended` with the current state of the live processes. */
int report_take(const struct report *ended, struct kernel *kernel, u64 now_ns, struct report *ret);
void report_done(struct report *report);

/* Launches that the program made. */
u64 launches_by_program(const struct process_state *state);
/* Returns the calls of the program itself, without the driver calls that its runtime makes. */
u64 calls_by_program(const u64 counts[LEVEL_NR]);

/* For people. Uses colors only if `is_terminal`. */
void table_print(const struct report *report, bool is_terminal, FILE *out);
/* For programs: one object, one line. */
int json_print(const struct report *report, FILE *out);
