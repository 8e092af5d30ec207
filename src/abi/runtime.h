/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The ids, the kinds and the table of calls, generated from the rows of runtimes.def. */
#include "abi/types.h"

enum runtime {
#define RUNTIME(id, ...) RUNTIME_##id,
#include "abi/runtimes.def"
	RUNTIME_NR,
};

enum call {
#define CALL(runtime, symbol, ...) CALL_##runtime##_##symbol,
#include "abi/runtimes.def"
	CALL_NR,
};

/* The runtime of a vendor calls its driver, so each level has separate memory accounts. */
enum call_level {
	LEVEL_RUNTIME,
	LEVEL_DRIVER,
	LEVEL_NR,
};

enum call_kind {
	CALL_KIND_LAUNCH,
	CALL_KIND_SYNC,
	CALL_KIND_COPY,
	CALL_KIND_COPY_WAIT,
	CALL_KIND_WORK,
	CALL_KIND_QUERY,
	CALL_KIND_EVENT,
	CALL_KIND_WAIT,
	CALL_KIND_CAPTURE,
	CALL_KIND_CAPTURE_END,
	CALL_KIND_ALLOC,
	CALL_KIND_ALLOC_LATE,
	CALL_KIND_FREE,
	CALL_KIND_MEM_HOLD,
	CALL_KIND_MEM_MAP,
	CALL_KIND_MEM_UNMAP,
	CALL_KIND_COLLECTIVE,
	CALL_KIND_COMM_INIT,
	CALL_KIND_COMM_RANK,
	CALL_KIND_COMM_SIZE,
	CALL_KIND_SCOPE_ENTER,
	CALL_KIND_SCOPE_LEAVE,
	CALL_KIND_OOM,
	CALL_KIND_USAGE,
	CALL_KIND_KERNEL,
	CALL_KIND_COMM_FREE,
	CALL_KIND_GROUP_START,
	CALL_KIND_GROUP_END,
	CALL_KIND_DEVICE_SET,
	CALL_KIND_DEVICE_ID,
	CALL_KIND_CTX_NEW,
	CALL_KIND_CTX_SET,
	CALL_KIND_CTX_FREE,
	CALL_KIND_NR,
};

/*
 * The detail of a launch, a copy, an allocation, a context, an identity, a kernel, a communicator
 * or a collective.
 */
enum call_detail {
	DETAIL_NONE,
	DETAIL_TO_DEVICE,
	DETAIL_TO_HOST,
	DETAIL_ON_DEVICE,
	DETAIL_BY_ARGUMENT,
	DETAIL_STREAM,
	DETAIL_EVENT,
	DETAIL_UNKNOWN,
	DETAIL_DEVICE,
	DETAIL_MANAGED,
	DETAIL_HOST,
	DETAIL_PHYSICAL,
	DETAIL_REGISTERED,
	DETAIL_ONE_RANK,
	DETAIL_SCALABLE,
	DETAIL_ALL_RANKS,
	DETAIL_SPLIT,
	DETAIL_SHRINK,
	DETAIL_PRIMARY,
	DETAIL_RESET,
	DETAIL_PUSH,
	DETAIL_POP,
	DETAIL_PROPERTIES,
	DETAIL_UUID,
	DETAIL_UUID_PART,
	DETAIL_PCI,
	DETAIL_GRAPH,
	DETAIL_NAMED,
	DETAIL_OF_KERNEL,
	DETAIL_ALL_REDUCE,
	DETAIL_BROADCAST,
	DETAIL_REDUCE,
	DETAIL_ALL_GATHER,
	DETAIL_REDUCE_SCATTER,
	DETAIL_SEND,
	DETAIL_RECV,
	DETAIL_BARRIER,
	DETAIL_NR,
};

#define COLLECTIVE_FIRST DETAIL_ALL_REDUCE
#define COLLECTIVE_NR	 (DETAIL_NR - COLLECTIVE_FIRST)
_Static_assert((COLLECTIVE_NR & (COLLECTIVE_NR - 1)) == 0, "BPF masks an index with it");

/* The position of an argument; ARG_NONE: no argument; ARG_RETURNED: the return value. */
enum {
	ARG_RESULT_PLACE = -4, /* where an object that does not fit into registers is returned */
	ARG_CONFIG = -3,       /* of a stream: in the struct that the first argument points to */
	ARG_RETURNED = -2,
	ARG_NONE = -1,
	ARG_0,
	ARG_1,
	ARG_2,
	ARG_3,
	ARG_4,
	ARG_5,
	ARG_6,
	ARG_7,
	ARG_8,
	ARG_9,
	ARG_10,
	ARG_LAST = ARG_10,
};

/* Where the properties of a device have its UUID, in CUDA and in HIP. */
#define ARG_PROPERTIES_UUID_AT 256

/* Where the configuration of a launch has its stream, in CUDA and in HIP. */
#define ARG_CONFIG_STREAM_AT 32

/*
 * ncclUniqueId has 128 bytes and is passed by value. On x86-64 it is on the stack
 * and uses no argument register. On arm64 it is passed by reference and uses one
 * register.
 */
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define ARG_AFTER_UNIQUE_ID 3
#else
#define ARG_AFTER_UNIQUE_ID 2
#endif

/*
 * A C++ object that does not fit into registers is returned in memory of the
 * caller. On x86-64 the address is the first argument, and all other arguments
 * move up by one. On arm64 the address has its own register.
 */
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define ARG_AFTER_RESULT ARG_0
#else
#define ARG_AFTER_RESULT ARG_1
#endif

struct call_row {
	u8 runtime;
	u8 level;
	u8 kind;
	u8 detail;
	s8 arg[3];
	u8 per_thread; /* the default stream is that of the thread */
};

_Static_assert(sizeof(struct call_row) == 8, "shared with BPF");

enum {
#define RUNTIME(id, label, level, ...) RUNTIME_LEVEL_##id = LEVEL_##level,
#include "abi/runtimes.def"
};

/* Compiled for BPF and for user space from the same rows. */
static const struct call_row call_rows[CALL_NR] = {
#define CALL_ROW(id, symbol, call_kind, call_detail, a, b, c, is_per_thread)                       \
	[CALL_##id##_##symbol] = {                                                                 \
		.runtime = RUNTIME_##id,                                                           \
		.level = RUNTIME_LEVEL_##id,                                                       \
		.kind = CALL_KIND_##call_kind,                                                     \
		.detail = DETAIL_##call_detail,                                                    \
		.arg = { ARG_##a, ARG_##b, ARG_##c },                                              \
		.per_thread = is_per_thread,                                                       \
	},
#define CALL(...)	     CALL_ROW(__VA_ARGS__, 0)
#define CALL_PER_THREAD(...) CALL_ROW(__VA_ARGS__, 1)
#include "abi/runtimes.def"
};
#undef CALL_ROW
