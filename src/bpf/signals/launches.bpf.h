/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What launches tell those who sample idle time. */
#include "bpf/kernel.h"

/* Set by user space: processes whose lines a client wants. */
extern u32 nr_lines_wanted;

/*
 * Hidden, which is static for the verifier: see threads.bpf.c. `handle`: of a kernel, or GAP_...
 * (abi/lines.h). `is_inner`: the launch may be a part of one that the runtime made.
 */
__hidden int lines_launched(u32 tgid, u64 handle, bool is_inner);
