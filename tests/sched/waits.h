/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

struct longest_wait {
	u64 ns;
	u32 pid;
	char comm[COMM_LEN];
	u32 pad;
};

_Static_assert(sizeof(struct longest_wait) == 32, "shared with BPF");
