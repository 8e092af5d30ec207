/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Random calls that allocate, free, map and change contexts, valid and invalid, by eight
 * threads on four devices. It does not track the expected result: the virtual GPU does.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "signals/books_caller.h"
#include "base/macros.h"

struct books_runtime rt;
struct books_driver drv;
struct books_shared *shared;
static struct caller callers[BOOKS_THREADS];

/* Returns the thread itself; in turn mode sometimes another thread. */
static struct caller *victim(struct caller *c)
{
	return in_turn() && one_in(c, 4) ? &callers[below(c, BOOKS_THREADS)] : c;
}

/* Sizes of every magnitude, sometimes 0 or more than the device has. */
static size_t random_size(struct caller *c)
{
	if (one_in(c, 32))
		return one_in(c, 2) ? 0 : 1ULL << 33;
	return 1 + (random_u64(&c->random) >> (64 - 4 - below(c, 22)));
}

static int alloc_runtime(struct caller *c, void **ptr, bool *ret_host)
{
	size_t size = random_size(c), pitch;

	switch (below(c, 6)) {
	case 0: return CALL_RT(Malloc, ptr, size);
	case 1: return CALL_RT(MallocAsync, ptr, size, NULL);
	case 2: return CALL_RT(MallocPitch, ptr, &pitch, size >> 8, 1 + below(c, 300));
	case 3: return CALL_RT(MallocManaged, ptr, size, 1);
	case 4: *ret_host = true; return CALL_RT(MallocHost, ptr, size);
	default: *ret_host = true; return CALL_RT(HostAlloc, ptr, size, 0);
	}
}

static int alloc_driver(struct caller *c, void **ptr, bool *ret_host)
{
	CUdeviceptr *at = (CUdeviceptr *)ptr;
	size_t size = random_size(c), pitch;

	switch (below(c, 6)) {
	case 0: return CALL_DRV(MemAlloc_v2, at, size);
	case 1: return CALL_DRV(MemAllocAsync, at, size, NULL);
	case 2: return CALL_DRV(MemAllocPitch_v2, at, &pitch, size >> 8, 1 + below(c, 300), 4);
	case 3: return CALL_DRV(MemAllocManaged, at, size, 1);
	case 4: *ret_host = true; return CALL_DRV(MemAllocHost_v2, ptr, size);
	default: *ret_host = true; return CALL_DRV(MemHostAlloc, ptr, size, 0);
	}
}

static bool by_driver(struct caller *c)
{
	return !shared->is_hip && one_in(c, 2);
}

static int free_ptr(struct caller *c, void *ptr, bool host)
{
	CUdeviceptr at = (CUdeviceptr)ptr;
	bool async = one_in(c, 3);

	if (by_driver(c)) {
		if (host)
			return CALL_DRV(MemFreeHost, ptr);
		return async ? CALL_DRV(MemFreeAsync, at, NULL) : CALL_DRV(MemFree_v2, at);
	}
	if (host)
		return CALL_RT(FreeHost, ptr);
	return async ? CALL_RT(FreeAsync, ptr, NULL) : CALL_RT(Free, ptr);
}

static void op_free(struct caller *c)
{
	struct caller *v = victim(c);
	u32 i = below(c, v->nr_items + !v->nr_items);
	struct item item = v->items[i];
	int r;

	if (!v->nr_items) {
		free_ptr(c, NULL, one_in(c, 2));
		return;
	}
	r = free_ptr(c, item.ptr, item.host);
	/* Sometimes kept, to be freed twice. */
	if (in_turn() ? !one_in(c, 16) : r == 0)
		v->items[i] = v->items[--v->nr_items];
}

static void op_alloc(struct caller *c)
{
	struct item item = {};
	bool driver = in_turn()
			      ? by_driver(c)
			      : !shared->is_hip && books_level_of_thread(c->index) == LEVEL_DRIVER;
	int r;

	if (c->nr_items == MAX_ITEMS) {
		op_free(c);
		return;
	}
	r = driver ? alloc_driver(c, &item.ptr, &item.host)
		   : alloc_runtime(c, &item.ptr, &item.host);
	if (r)
		return;
	if (!shared->is_hip)
		drv.CtxGetCurrent(&item.ctx);
	c->items[c->nr_items++] = item;
}

static void op_wrong_free(struct caller *c)
{
	const struct item *item = c->nr_items ? &c->items[below(c, c->nr_items)] : NULL;
	int local;

	switch (item ? below(c, 4) : below(c, 2)) {
	case 0: free_ptr(c, NULL, one_in(c, 2)); break;
	case 1: free_ptr(c, &local, one_in(c, 2)); break;
	case 2: free_ptr(c, (char *)item->ptr + 8, item->host); break;
	case 3: free_ptr(c, item->ptr, !item->host); break;
	}
}

static void op_set_device(struct caller *c)
{
	CALL_RT(SetDevice, one_in(c, 16) ? 99 : (int)below(c, BOOKS_DEVICES));
}

/* Resets the current device. */
static void op_reset(struct caller *c)
{
	CALL_RT(DeviceReset, );
}

static void op_create_context(struct caller *c)
{
	CUcontext ctx;

	if (c->nr_contexts == MAX_CONTEXTS || c->nr_pushed >= MAX_PUSHED)
		return op_set_device(c);
	if (CALL_DRV(CtxCreate_v2, &ctx, 0, one_in(c, 16) ? 99 : (CUdevice)below(c, BOOKS_DEVICES)))
		return;
	c->contexts[c->nr_contexts++] = ctx;
	c->nr_pushed++;
}

static int pop_context(struct caller *c)
{
	CUcontext ctx;
	int r = CALL_DRV(CtxPopCurrent_v2, &ctx);

	c->nr_pushed -= r == 0 && c->nr_pushed;
	return r;
}

static void op_pop_context(struct caller *c)
{
	pop_context(c);
}

static void op_destroy_context(struct caller *c)
{
	struct caller *v = victim(c);
	u32 i = below(c, v->nr_contexts + !v->nr_contexts), kept = 0;
	CUcontext ctx = v->contexts[i];

	if (!v->nr_contexts)
		return op_create_context(c);
	/* Another thread may get the same handle, so it must not stay on the stack. */
	while (!in_turn() && pop_context(c) == 0)
		;
	CALL_DRV(CtxDestroy_v2, ctx);
	/* Sometimes kept, to be destroyed twice or used afterwards. */
	if (in_turn() && one_in(c, 4))
		return;
	v->contexts[i] = v->contexts[--v->nr_contexts];
	for (u32 k = 0; k < v->nr_items; k++)
		if (v->items[k].ctx != ctx)
			v->items[kept++] = v->items[k];
	v->nr_items = kept;
}

static void op_set_context(struct caller *c)
{
	struct caller *v = victim(c);
	CUcontext ctx = v->nr_contexts ? v->contexts[below(c, v->nr_contexts)] : NULL;

	if (one_in(c, 8))
		ctx = NULL;
	if (c->nr_pushed < MAX_PUSHED && one_in(c, 2)) {
		if (CALL_DRV(CtxPushCurrent_v2, ctx) == 0)
			c->nr_pushed++;
	} else {
		CALL_DRV(CtxSetCurrent, ctx);
	}
}

static void op_primary(struct caller *c)
{
	u32 device = below(c, BOOKS_DEVICES);
	CUcontext ctx;

	if (c->nr_retained[device]) {
		if (CALL_DRV(DevicePrimaryCtxRelease_v2, (CUdevice)device) == 0)
			c->nr_retained[device]--;
	} else if (CALL_DRV(DevicePrimaryCtxRetain, &ctx, (CUdevice)device) == 0) {
		c->nr_retained[device]++;
	}
}

/* Also when another thread retained it. */
static void op_release_primary(struct caller *c)
{
	CALL_DRV(DevicePrimaryCtxRelease_v2, (CUdevice)below(c, BOOKS_DEVICES));
}

static const struct {
	u32 weight;
	bool driver;
	bool meddles;
	void (*run)(struct caller *c);
} ops[] = {
	{ 300, false, false, op_alloc },
	{ 220, false, false, op_free },
	{ 30, false, false, op_wrong_free },
	{ 60, false, false, op_set_device },
	{ 2, false, true, op_reset },
	{ 30, true, false, op_create_context },
	{ 12, true, false, op_destroy_context },
	{ 60, true, false, op_set_context },
	{ 40, true, false, op_pop_context },
	{ 30, true, true, op_primary },
	{ 2, true, true, op_release_primary },
	{ 40, true, false, op_create_handle },
	{ 50, true, false, op_map },
	{ 40, true, false, op_unmap },
	{ 30, true, false, op_release_handle },
};

#define NR_OPS ARRAY_SIZE(ops)

static bool op_fits(u32 i)
{
	return !(ops[i].driver && shared->is_hip) && !(ops[i].meddles && !in_turn());
}

static void call_once(struct caller *c)
{
	u32 all = 0, i = 0, pick;

	for (u32 k = 0; k < NR_OPS; k++)
		all += op_fits(k) ? ops[k].weight : 0;
	for (pick = below(c, all); !op_fits(i) || pick >= ops[i].weight; i++)
		pick -= op_fits(i) ? ops[i].weight : 0;
	ops[i].run(c);
}

static void *thread_main(void *arg)
{
	struct caller *c = arg;
	u64 nr = shared->nr_calls / BOOKS_THREADS, nr_before;

	shared->tids[c->index] = (u32)gettid();
	if (!shared->is_hip)
		drv.MemAddressReserve(&c->range, NR_UNITS * UNIT, 0, 0, 0);
	sem_post(&shared->done);
	for (;;) {
		sem_wait(&shared->go[c->index]);
		/* Not every random choice results in a call. */
		nr_before = shared->nr_made;
		do
			call_once(c);
		while (in_turn() ? shared->nr_made == nr_before : --nr > 0);
		sem_post(&shared->done);
	}
	return NULL;
}

static void *symbol(void *library, const char *prefix, const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	return dlsym(library, full);
}

static bool load(const char *dir)
{
	const char *prefix = shared->is_hip ? "hip" : "cuda";
	char path[4096];
	void *library;
	bool all = true;

	snprintf(path, sizeof(path), "%s/%s", dir,
		 shared->is_hip ? "libamdhip64.so.6" : "libcudart.so.12");
	library = dlopen(path, RTLD_NOW);
	if (!library)
		return false;
#define X(name) all &= (rt.name = symbol(library, prefix, #name)) != NULL;
	RUNTIME_CALLS(X)
#undef X
	if (shared->is_hip)
		return all;
	/* The runtime links the driver, so its symbols are found through the runtime. */
#define X(name) all &= (drv.name = symbol(library, "cu", #name)) != NULL;
	DRIVER_CALLS(X)
#undef X
	return all;
}

int books_caller(struct books_shared *with, const char *library_dir)
{
	shared = with;
	if (!load(library_dir)) {
		fprintf(stderr, "# %s\n", dlerror() ?: "a symbol is missing");
		return 1;
	}
	/* Starts the engine and its log. */
	if (shared->is_hip ? (int)rt.SetDevice(0) : (int)drv.Init(0))
		return 1;
	/* As a framework does. This tells which GPU of the machine the device is. */
	for (int i = 0; i < BOOKS_DEVICES; i++) {
		char address[16];

		if (rt.DeviceGetPCIBusId(address, sizeof(address), i))
			return 1;
	}
	for (u32 i = 0; i < BOOKS_THREADS; i++) {
		pthread_t thread;

		callers[i].index = i;
		callers[i].random.state = shared->seed + 0x1000000 * (i + 1);
		if (pthread_create(&thread, NULL, thread_main, &callers[i]))
			return 1;
	}
	for (;;)
		pause();
}
