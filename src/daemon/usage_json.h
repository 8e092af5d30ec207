/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What PyTorch has allocated over time, as JSON: docs/reference/protocol.md. */
#include "collect/kernel.h"
#include "daemon/message.h"

struct usage_head {
	const struct process_state *process;
	u64 window_ns; /* since the begin */
	u64 part_ns;
};

/* NULL: out of memory. */
struct message *usage_to_json(const struct kernel *kernel, const struct usage_head *head);
