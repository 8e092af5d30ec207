/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Driver calls of the virtual memory interface: reserve addresses, create memory, map
 * memory to addresses. Memory counts as used from cuMemCreate until the handle is
 * released and no part of it is mapped.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "vgpu/engine.h"

#define GRANULARITY (2ULL << 20)

struct handle {
	struct handle *next;
	u64 size;
	u32 device;
	u32 nr_mapped;
	bool released;
};

struct reservation {
	struct reservation *next;
	u64 base;
	u64 size;
	u64 map, map_size; /* the larger mapping that contains the aligned range */
};

static pthread_mutex_t vmm_lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle *handles;
static struct reservation *reservations;

#define VMM_LOCKED()                                                                               \
	__attribute__((cleanup(vmm_unlockp), unused)) pthread_mutex_t *vmm_locked =                \
		(pthread_mutex_lock(&vmm_lock), &vmm_lock)
static void vmm_unlockp(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

static bool granular(u64 value)
{
	return value && value % GRANULARITY == 0;
}

static struct handle *handle_find(CUmemGenericAllocationHandle value)
{
	for (struct handle *h = handles; h; h = h->next)
		if ((u64)h == value)
			return h;
	return NULL;
}

/* Returns the memory when there is no reference and no mapping left. */
static void handle_put(struct handle *handle)
{
	struct handle **at = &handles;

	if (!handle->released || handle->nr_mapped)
		return;
	while (*at != handle)
		at = &(*at)->next;
	*at = handle->next;
	memory_give(handle->device, VGPU_ALLOC_VMM, (u64)handle, handle->size);
	free(handle);
}

CUresult CU(MemGetAllocationGranularity)(size_t *granularity, const CUmemAllocationProp *prop,
					 int option)
{
	if (!granularity || !prop)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = GRANULARITY;
	return CUDA_SUCCESS;
}

CUresult CU(MemAddressReserve)(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			       unsigned long long flags)
{
	u64 align = alignment > GRANULARITY ? alignment : GRANULARITY;
	struct reservation *res;
	void *map;

	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ptr || !granular(size) || (align & (align - 1)) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	res = calloc(1, sizeof(*res));
	if (!res)
		return CUDA_ERROR_OUT_OF_MEMORY;
	res->map_size = size + align;
	map = mmap(NULL, res->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		   0);
	if (map == MAP_FAILED) {
		free(res);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	res->map = (u64)map;
	res->base = (res->map + align - 1) & ~(align - 1);
	res->size = size;
	VMM_LOCKED();
	res->next = reservations;
	reservations = res;
	*ptr = res->base;
	return CUDA_SUCCESS;
}

static bool range_is_free(u64 ptr, u64 size)
{
	for (u64 at = ptr; at < ptr + size; at += GRANULARITY)
		if (book_find(at))
			return false;
	return true;
}

CUresult CU(MemAddressFree)(CUdeviceptr ptr, size_t size)
{
	VMM_LOCKED();

	for (struct reservation **at = &reservations; *at; at = &(*at)->next) {
		struct reservation *res = *at;

		if (res->base != ptr || res->size != size)
			continue;
		if (!range_is_free(ptr, size))
			return CUDA_ERROR_INVALID_VALUE;
		*at = res->next;
		munmap((void *)res->map, res->map_size);
		free(res);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult CU(MemCreate)(CUmemGenericAllocationHandle *handle, size_t size,
		       const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct handle *h;
	CUresult r;

	if (!handle || !prop || !granular(size) || flags ||
	    prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	r = device_check(prop->location.id);
	if (r != CUDA_SUCCESS)
		return r;
	h = calloc(1, sizeof(*h));
	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	h->size = size;
	h->device = engine.visible[prop->location.id];
	r = memory_take(h->device, VGPU_ALLOC_VMM, size);
	if (r != CUDA_SUCCESS) {
		free(h);
		return r;
	}
	memory_log(TRUTH_ALLOC, h->device, VGPU_ALLOC_VMM, (u64)h, size);
	VMM_LOCKED();
	h->next = handles;
	handles = h;
	*handle = (u64)h;
	return CUDA_SUCCESS;
}

CUresult CU(MemRelease)(CUmemGenericAllocationHandle handle)
{
	struct handle *h;

	VMM_LOCKED();
	h = handle_find(handle);
	if (!h || h->released)
		return CUDA_ERROR_INVALID_VALUE;
	h->released = true;
	handle_put(h);
	return CUDA_SUCCESS;
}

static bool range_is_reserved(u64 ptr, u64 size)
{
	for (const struct reservation *res = reservations; res; res = res->next)
		if (ptr >= res->base && size <= res->size && ptr - res->base <= res->size - size)
			return true;
	return false;
}

CUresult CU(MemMap)(CUdeviceptr ptr, size_t size, size_t offset,
		    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct book_entry *entry;
	struct handle *h;

	VMM_LOCKED();
	h = handle_find(handle);
	if (!h || h->released || !granular(size) || ptr % GRANULARITY || offset || flags ||
	    size != h->size || !range_is_reserved(ptr, size) || !range_is_free(ptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*entry = (struct book_entry){
		.base = ptr, .size = size, .device = h->device, .api = VGPU_ALLOC_VMM, .owner = h
	};
	if (!book_add(entry)) {
		free(entry);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	h->nr_mapped++;
	return CUDA_SUCCESS;
}

static bool range_is_mapped(u64 ptr, u64 size)
{
	const struct book_entry *first = book_find(ptr);

	return size && first && first->api == VGPU_ALLOC_VMM && first->base == ptr &&
	       book_covers(ptr, size);
}

CUresult CU(MemUnmap)(CUdeviceptr ptr, size_t size)
{
	u64 end = ptr + size;

	VMM_LOCKED();
	if (!range_is_mapped(ptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	while (ptr < end) {
		struct book_entry *entry = book_find(ptr);
		struct handle *h = entry->owner;

		ptr += entry->size;
		book_remove(entry);
		free(entry);
		h->nr_mapped--;
		handle_put(h);
	}
	return CUDA_SUCCESS;
}

CUresult CU(MemSetAccess)(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    device_check(desc[i].location.id) != CUDA_SUCCESS)
			return CUDA_ERROR_INVALID_VALUE;
	VMM_LOCKED();
	return range_is_mapped(ptr, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
