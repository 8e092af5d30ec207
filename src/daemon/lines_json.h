/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Idle time by stack, as JSON: docs/reference/protocol.md. */
#include "collect/kernel.h"
#include "core/python_place.h"
#include "daemon/message.h"

/* What is known about the samples of a process beside its stacks. */
struct lines_head {
	u32 pid;
	u64 start_ns;
	u64 window_ns;
	u64 idle_ns; /* the GPU had no work */
	u64 open_ns; /* it may have had none */
	struct lines_counts counts;
};

/* One stack of a thread. */
struct lines_stack_now {
	u32 tid;
	u32 role;
	u32 nr; /* 0: it could not be read */
	bool is_cut;
	const struct python_place *places; /* innermost first; without a name: not known */
};

/* NULL: out of memory. */
struct message *lines_to_json(struct kernel *kernel, const struct lines_head *head);
/* The same, with one stack and without times. */
struct message *lines_stack_to_json(const struct lines_head *head,
				    const struct lines_stack_now *now);
