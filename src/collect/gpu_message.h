/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The messages between zerneld and a process that samples GPUs, over a SOCK_SEQPACKET socket. Each
 * request has one reply. Both have a fixed size. zerneld trusts no byte of a reply: the vendor's
 * library runs in the process.
 */
#include <stdbool.h>
#include "collect/gpu.h"

struct gpu_request {
	u64 number;
	u32 nr_pids;
	u32 pad;
	s32 pids[GPU_MAX_PROCESSES]; /* the processes that can use a GPU */
};

struct gpu_reply {
	u64 number; /* of the request */
	struct gpu_samples samples;
};

_Static_assert(sizeof(struct gpu_sample) == 328, "no hidden padding");
_Static_assert(sizeof(struct gpu_slice_sample) == 112, "no hidden padding");
_Static_assert(sizeof(struct gpu_process_sample) == 48, "no hidden padding");
_Static_assert(sizeof(struct gpu_reply) ==
		       32 + GPU_MAX_DEVICES * 328 + GPU_MAX_SLICES * 112 + GPU_MAX_PROCESSES * 48,
	       "no hidden padding");

/*
 * Whether a reply of `size` bytes is possible: counts and indices are in range, texts end and have
 * only printable characters, and no time is much later than `now_ns`.
 */
bool gpu_reply_is_valid(const struct gpu_reply *reply, size_t size, u64 now_ns);

/*
 * The loop of the process: answers the requests on a socket until it is closed. A source that this
 * machine does not have, or that cannot be opened, gives samples without GPUs.
 */
void gpu_serve(int socket, const struct gpu_source_ops *ops, const struct gpu_config *config);
