/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The stack of the thread that was out of memory: what the BPF programs read at the error. */
#include "abi/python.h"

/* The innermost frames are kept, each with its code: so many of a process, and of so many ones. */
#define OOM_FRAMES_MAX	  16
#define OOM_PROCESSES_MAX 64

/* The interpreter of a process that uses PyTorch or was sampled. Set by user space. */
struct oom_python {
	u64 runtime; /* its address */
	struct python_offsets offsets;
	/* Of all its threads; changed by the BPF programs. */
	struct python_budget budget;
	u64 is_read; /* a thread reads its stack */
};

/* Begins as struct process_key. */
struct oom_frame_key {
	u64 start_ns;
	u32 tgid;
	u32 index; /* 0: the innermost one */
};
_Static_assert(sizeof(struct oom_frame_key) == 16, "shared with BPF");

struct oom_frame {
	u64 time_ns; /* of the error, as in struct oom_report: a frame of another error is old */
	struct python_frame frame;
	u32 nr_frames; /* of the whole stack */
	u32 is_cut;    /* the stack has further frames that were not counted */
	u32 is_named;  /* `code` is valid */
	u32 pad;
	struct python_code code; /* with the first part of its table */
};
