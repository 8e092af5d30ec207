/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Collectives of libraries without probes: user space says which processes have one mapped. */
#include "bpf/signals/state.bpf.h"

static inline bool collective_is_mapped(struct task_struct *p)
{
	struct task_struct *leader = p->group_leader;

	return leader && bpf_task_storage_get(&collectives, leader, NULL, 0);
}
