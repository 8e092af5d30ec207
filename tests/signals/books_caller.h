/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Internal to the caller: its calls, and the objects of each thread. */
#include <stdatomic.h>
#include <stdio.h>
#include "property/random.h"
#include "signals/books.h"
#include "vgpu/include/vgpu_cuda.h"
#include "vgpu/include/vgpu_cudart.h"

#define MAX_ITEMS    96
#define MAX_CONTEXTS 4
#define MAX_HANDLES  8
#define MAX_PUSHED   12
#define UNIT	     (2ULL << 20)
#define NR_UNITS     32
/* Any thread may release the primary context of this device; other devices are reset. */
#define ODD_DEVICE   3

#define RUNTIME_CALLS(X)                                                                           \
	X(SetDevice)                                                                               \
	X(DeviceGetPCIBusId)                                                                       \
	X(DeviceReset)                                                                             \
	X(Malloc)                                                                                  \
	X(MallocAsync)                                                                             \
	X(MallocPitch)                                                                             \
	X(MallocManaged)                                                                           \
	X(MallocHost)                                                                              \
	X(HostAlloc)                                                                               \
	X(Free)                                                                                    \
	X(FreeAsync)                                                                               \
	X(FreeHost)

#define DRIVER_CALLS(X)                                                                            \
	X(Init)                                                                                    \
	X(CtxCreate_v2)                                                                            \
	X(CtxDestroy_v2)                                                                           \
	X(CtxSetCurrent)                                                                           \
	X(CtxGetCurrent)                                                                           \
	X(CtxPushCurrent_v2)                                                                       \
	X(CtxPopCurrent_v2)                                                                        \
	X(DevicePrimaryCtxRetain)                                                                  \
	X(DevicePrimaryCtxRelease_v2)                                                              \
	X(MemAlloc_v2)                                                                             \
	X(MemAllocAsync)                                                                           \
	X(MemAllocPitch_v2)                                                                        \
	X(MemAllocManaged)                                                                         \
	X(MemAllocHost_v2)                                                                         \
	X(MemHostAlloc)                                                                            \
	X(MemFree_v2)                                                                              \
	X(MemFreeAsync)                                                                            \
	X(MemFreeHost)                                                                             \
	X(MemAddressReserve)                                                                       \
	X(MemCreate)                                                                               \
	X(MemRelease)                                                                              \
	X(MemMap)                                                                                  \
	X(MemUnmap)

/* HIP's calls have the same form. */
extern struct books_runtime {
#define X(name) typeof(&cuda##name) name;
	RUNTIME_CALLS(X)
#undef X
} rt;

extern struct books_driver {
#define X(name) typeof(&cu##name) name;
	DRIVER_CALLS(X)
#undef X
} drv;

struct item {
	void *ptr;
	CUcontext ctx;
	bool host;
};

struct mapping {
	u32 unit;
	u32 nr_units;
};

struct handle {
	CUmemGenericAllocationHandle handle;
	u32 nr_units;
	bool released;
};

struct caller {
	struct random random;
	u32 index;
	struct item items[MAX_ITEMS];
	u32 nr_items;
	CUcontext contexts[MAX_CONTEXTS];
	u32 nr_contexts;
	u32 nr_pushed; /* upper bound of the contexts on the stack */
	u32 nr_retained[BOOKS_DEVICES];
	struct handle handles[MAX_HANDLES];
	u32 nr_handles;
	struct mapping mappings[NR_UNITS];
	u32 nr_mappings;
	CUdeviceptr range;
};

extern struct books_shared *shared;

static inline u32 below(struct caller *c, u32 n)
{
	return random_below(&c->random, n);
}

static inline bool one_in(struct caller *c, u32 n)
{
	return below(c, n) == 0;
}

static inline bool in_turn(void)
{
	return shared->mode == BOOKS_IN_TURN;
}

/* Records every call. */
static inline void say(enum call_level level, const char *call)
{
	if (!in_turn())
		return;
	shared->level = level;
	snprintf(shared->call, sizeof(shared->call), "%s", call);
}

static inline int result(int r)
{
	atomic_fetch_add((_Atomic u64 *)&shared->nr_made, 1);
	if (r)
		atomic_fetch_add((_Atomic u64 *)&shared->nr_failed, 1);
	return r;
}

#define CALL_RT(name, ...)  (say(LEVEL_RUNTIME, #name), result((int)rt.name(__VA_ARGS__)))
#define CALL_DRV(name, ...) (say(LEVEL_DRIVER, #name), result((int)drv.name(__VA_ARGS__)))

/* books_vmm.c: one call of the virtual memory interface each. */
void op_create_handle(struct caller *c);
void op_map(struct caller *c);
void op_unmap(struct caller *c);
void op_release_handle(struct caller *c);
