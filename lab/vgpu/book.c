/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The table of all allocations of this process, by address. Device addresses are
 * address space without access rights, so the host cannot access them, as on real
 * hardware. Host and managed memory is real.
 */
#include "vgpu/engine.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

static pthread_mutex_t book_lock = PTHREAD_MUTEX_INITIALIZER;
static void *book;

#define BOOK_LOCKED()                                                                              \
	__attribute__((cleanup(book_unlockp), unused)) pthread_mutex_t *book_locked =              \
		(pthread_mutex_lock(&book_lock), &book_lock)
static void book_unlockp(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

/* Entries never overlap, so an entry that overlaps the key contains it. */
static int entry_cmp(const void *a, const void *b)
{
	const struct book_entry *x = a, *y = b;

	if (x->base + x->size <= y->base)
		return -1;
	return x->base >= y->base + y->size;
}

bool book_add(struct book_entry *entry)
{
	struct book_entry **found;

	BOOK_LOCKED();
	found = tsearch(entry, &book, entry_cmp);
	return found && *found == entry;
}

static struct book_entry *find_locked(u64 ptr)
{
	struct book_entry key = { .base = ptr, .size = 1 };
	struct book_entry **found = tfind(&key, &book, entry_cmp);

	return found ? *found : NULL;
}

struct book_entry *book_find(u64 ptr)
{
	BOOK_LOCKED();

	return find_locked(ptr);
}

void book_remove(struct book_entry *entry)
{
	BOOK_LOCKED();

	tdelete(entry, &book, entry_cmp);
}

bool book_covers(u64 ptr, u64 size)
{
	u64 end = ptr + size;

	BOOK_LOCKED();
	while (ptr < end) {
		const struct book_entry *entry = find_locked(ptr);

		if (!entry || entry->api == VGPU_ALLOC_HOST)
			return false;
		ptr = entry->base + entry->size;
	}
	return end >= size;
}

void memory_log(enum truth_kind kind, u32 device, enum vgpu_alloc api, u64 ptr, u64 bytes)
{
	u64 now = truth_now_ns();

	truth_log(engine.truth, kind, api, now, now, device, ptr, bytes);
}

CUresult memory_take(u32 device, enum vgpu_alloc api, u64 bytes)
{
	if (api == VGPU_ALLOC_HOST)
		return CUDA_SUCCESS;
	return shm_charge(engine.shm, engine.proc, device, bytes) < 0 ? CUDA_ERROR_OUT_OF_MEMORY
								      : CUDA_SUCCESS;
}

void memory_give(u32 device, enum vgpu_alloc api, u64 ptr, u64 bytes)
{
	if (api != VGPU_ALLOC_HOST)
		shm_uncharge(engine.shm, engine.proc, device, bytes);
	memory_log(TRUTH_FREE, device, api, ptr, bytes);
}

static bool host_can_touch(enum vgpu_alloc api)
{
	return api == VGPU_ALLOC_HOST || api == VGPU_ALLOC_MANAGED;
}

static CUresult entry_map(struct book_entry *entry)
{
	int prot = host_can_touch(entry->api) ? PROT_READ | PROT_WRITE : PROT_NONE;
	void *map =
		mmap(NULL, entry->size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	entry->base = (u64)map;
	if (book_add(entry))
		return CUDA_SUCCESS;
	munmap(map, entry->size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult book_alloc(enum vgpu_alloc api, u64 size, u64 *ret_ptr)
{
	struct CUctx_st *ctx;
	struct book_entry *entry;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (size >> 46)
		return CUDA_ERROR_OUT_OF_MEMORY;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*entry = (struct book_entry){
		.size = size, .bytes = size, .device = ctx->device, .api = api, .ctx = ctx
	};
	r = memory_take(ctx->device, api, size);
	if (r == CUDA_SUCCESS) {
		r = entry_map(entry);
		if (r != CUDA_SUCCESS && api != VGPU_ALLOC_HOST)
			shm_uncharge(engine.shm, engine.proc, ctx->device, size);
	}
	if (r != CUDA_SUCCESS) {
		free(entry);
		return r;
	}
	memory_log(TRUTH_ALLOC, entry->device, api, entry->base, size);
	*ret_ptr = entry->base;
	return CUDA_SUCCESS;
}

static void entry_free(struct book_entry *entry)
{
	if (!entry->registered)
		munmap((void *)entry->base, entry->size);
	memory_give(entry->device, entry->api, entry->base, entry->bytes);
	free(entry);
}

CUresult book_free(u64 ptr, bool host)
{
	struct book_entry *entry;

	{
		BOOK_LOCKED();

		entry = find_locked(ptr);
		if (!entry || entry->base != ptr || entry->registered ||
		    entry->api == VGPU_ALLOC_VMM || host != (entry->api == VGPU_ALLOC_HOST))
			return CUDA_ERROR_INVALID_VALUE;
		tdelete(entry, &book, entry_cmp);
	}
	entry_free(entry);
	return CUDA_SUCCESS;
}

CUresult book_register(u64 ptr, u64 size)
{
	struct CUctx_st *ctx;
	struct book_entry *entry;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ptr || !size || ptr + size < ptr)
		return CUDA_ERROR_INVALID_VALUE;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*entry = (struct book_entry){ .base = ptr,
				      .size = size,
				      .bytes = size,
				      .device = ctx->device,
				      .api = VGPU_ALLOC_HOST,
				      .registered = true,
				      .ctx = ctx };
	if (!book_add(entry)) {
		free(entry);
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	}
	memory_log(TRUTH_ALLOC, entry->device, entry->api, ptr, size);
	return CUDA_SUCCESS;
}

CUresult book_unregister(u64 ptr)
{
	struct book_entry *entry;

	{
		BOOK_LOCKED();

		entry = find_locked(ptr);
		if (!entry || entry->base != ptr || !entry->registered)
			return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
		tdelete(entry, &book, entry_cmp);
	}
	entry_free(entry);
	return CUDA_SUCCESS;
}

struct drop {
	const struct CUctx_st *ctx;
	struct book_entry *found;
};

static void drop_visit(const void *at, VISIT which, void *arg)
{
	struct book_entry *entry = *(struct book_entry *const *)at;
	struct drop *drop = arg;

	if ((which == postorder || which == leaf) && entry->ctx == drop->ctx)
		drop->found = entry;
}

void book_drop(struct CUctx_st *ctx)
{
	for (;;) {
		struct drop drop = { .ctx = ctx };

		{
			BOOK_LOCKED();

			twalk_r(book, drop_visit, &drop);
			if (!drop.found)
				return;
			tdelete(drop.found, &book, entry_cmp);
		}
		entry_free(drop.found);
	}
}
