// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * GPU memory: the allocations of a process on each device. Each API level is
 * counted separately, because cudaMalloc() calls cuMemAlloc().
 *
 * An allocation is counted when its call returns successfully. It is counted for
 * the device of the current context. This includes managed memory, although it
 * can migrate. If contexts are not visible, the allocation is counted for the
 * device that was selected through the runtime. Physical memory is counted for
 * the device in its properties. OpenCL and Level Zero have no current device:
 * their memory is counted for the first device. Host memory is not GPU memory and
 * has a separate account.
 *
 * A free is found by its pointer, at any level. A pointer that the runtime
 * allocated and the driver freed leaves both accounts. Physical memory exists
 * until its handle is released and no part of it is mapped.
 *
 * Assumes that a call that unmaps a fully mapped range succeeds. The unmap is
 * booked at the entry, because the handle may be reused before the call returns.
 * All other calls are booked by their result. If a process was already running
 * when its calls were first traced, its earlier allocations are not in the
 * accounts, and freeing them changes nothing.
 */
#include "bpf/signals/memory.bpf.h"

#define MAX_MAPPINGS (1 << 16)

/* CUmemLocationType */
#define LOCATION_DEVICE 1

struct memory_map memories SEC(".maps");
struct gpu_thread_map gpu_threads SEC(".maps");
struct gpu_numbers_map gpu_numbers SEC(".maps");
u64 nr_dropped_memory;

/* The device and the context of an allocation that the thread makes now. */
static void place_current(const struct traced_call *call, struct memory *memory)
{
	struct gpu_thread *gpu = bpf_task_storage_get(&gpu_threads, call->p, NULL, 0);
	struct memory *context;
	u32 depth;

	if (!gpu)
		return;
	memory->device = gpu->device;
	depth = gpu->depth - 1;
	if (depth >= CONTEXT_DEPTH)
		return;
	barrier_var(depth);
	context = memory_find(call->process, LEVEL_DRIVER, SPACE_CONTEXT,
			      gpu->contexts[depth & (CONTEXT_DEPTH - 1)]);
	if (!context)
		return;
	memory->device = context->device;
	memory->owner = context->owner;
}

/* The first members of CUmemAllocationProp. */
struct allocation_properties {
	s32 type;
	s32 handle_types;
	s32 location_type;
	s32 location;
};

static long place_physical(u64 properties, struct memory *memory)
{
	struct allocation_properties p;
	long err = bpf_probe_read_user(&p, sizeof(p), (void *)properties);

	if (err)
		return err;
	if (p.location_type == LOCATION_DEVICE)
		memory->device = (u32)p.location < GPU_MAX ? p.location : GPU_MAX;
	else
		memory->detail = DETAIL_HOST;
	return 0;
}

/* Reads the address, the size and the place of an allocation; nonzero if a read fails. */
static long read_allocation(const struct traced_call *call, const struct call_frame *frame,
			    u64 result, u64 *address, struct memory *memory)
{
	u64 pitch = 1;
	long err = 0;

	if (call->row->arg[0] == ARG_RETURNED)
		*address = result;
	else if (call->row->detail == DETAIL_REGISTERED)
		*address = frame->arg[0];
	else
		err = bpf_probe_read_user(address, sizeof(*address), (void *)frame->arg[0]);
	if (call->row->detail == DETAIL_PHYSICAL) {
		err |= place_physical(frame->arg[2], memory);
	} else {
		place_current(call, memory);
		if (call->row->arg[2] != ARG_NONE)
			err |= bpf_probe_read_user(&pitch, sizeof(pitch), (void *)frame->arg[2]);
	}
	memory->bytes = frame->arg[1] * pitch;
	return err;
}

static bool has_failed(const struct call_row *row, u64 result)
{
	return row->arg[0] == ARG_RETURNED ? result == 0 : (u32)result != 0;
}

static enum memory_space space_of(const struct call_row *row)
{
	return row->detail == DETAIL_PHYSICAL ? SPACE_HANDLE : SPACE_POINTER;
}

/* The place of the pointer is the seventh argument: in a register of arm64, on the stack else. */
CALL_PROGRAM("uprobe.multi", alloc_late_enter)
{
	struct traced_call call;
	struct call_frame *frame;

	if (!call_entered(ctx, &call))
		return;
	frame = frame_of(&call);
	if (!frame)
		return;
#if defined(__TARGET_ARCH_arm64)
	frame->arg[0] = PT_REGS_PARM7(ctx);
#else
	bpf_probe_read_user(&frame->arg[0], sizeof(frame->arg[0]), (void *)(PT_REGS_SP(ctx) + 8));
#endif
}

CALL_PROGRAM("uretprobe.multi", alloc_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct memory memory = { .nr_refs = 1 }, before = {};
	struct memory *old;
	struct memory_key key;
	u64 address = 0;

	if (!frame || has_failed(call.row, PT_REGS_RC(ctx)))
		return;
	memory.detail = call.row->detail == DETAIL_REGISTERED ? DETAIL_HOST : call.row->detail;
	if (read_allocation(&call, frame, PT_REGS_RC(ctx), &address, &memory) ||
	    memory.device >= GPU_MAX) {
		__sync_fetch_and_add(&nr_dropped_memory, 1);
		return;
	}
	key = memory_key(call.process, call.row->level, space_of(call.row), address);
	old = bpf_map_lookup_elem(&memories, &key);
	if (old)
		before = *old;
	if (!memory_put(call.process, &key, &memory))
		return;
	/* The earlier allocation at this address must have been freed unobserved. */
	if (before.nr_refs)
		memory_booked_free(call.process, call.row->level, &before);
	process_write_begin(call.process);
	book_alloc(book_of(call.process, call.row->level, &memory), memory.bytes);
	process_write_end(call.process);
	if (memory.detail != DETAIL_HOST)
		gpu_used(&call, memory.device);
}

CALL_PROGRAM("uprobe.multi", free_enter)
{
	struct traced_call call;
	struct call_frame *frame;
	struct gpu_thread *gpu;
	struct memory_key key;

	if (!call_entered(ctx, &call))
		return;
	frame = frame_of(&call);
	gpu = gpu_thread_get(call.p);
	if (!frame || !gpu)
		return;
	key = memory_key(call.process, call.row->level, space_of(call.row), frame->arg[0]);
	leaving_begin(call.process, gpu, key.level, &key);
	if (key.level == LEVEL_RUNTIME)
		return;
	key.level = LEVEL_RUNTIME;
	leaving_begin(call.process, gpu, key.level, &key);
}

static void free_end(const struct traced_call *call, struct gpu_thread *gpu, u32 level, bool failed)
{
	struct leaving *leaving = leaving_at(gpu, level);

	if (leaving_end(call->process, leaving, failed))
		memory_booked_free(call->process, level, &leaving->memory);
}

/*
 * A free of the driver for the runtime is already booked here for both: they have
 * the same result.
 */
CALL_PROGRAM("uretprobe.multi", free_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct gpu_thread *gpu;
	bool failed = (u32)PT_REGS_RC(ctx) != 0;

	if (!frame)
		return;
	gpu = gpu_thread_get(call.p);
	if (!gpu)
		return;
	free_end(&call, gpu, LEVEL_RUNTIME, failed);
	if (call.row->level == LEVEL_DRIVER)
		free_end(&call, gpu, LEVEL_DRIVER, failed);
}

CALL_PROGRAM("uretprobe.multi", hold_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct memory *memory;

	if (!frame || (u32)PT_REGS_RC(ctx) != 0)
		return;
	memory = memory_find(call.process, call.row->level, space_of(call.row), frame->arg[0]);
	if (memory)
		__sync_fetch_and_add(&memory->nr_refs, 1);
}

CALL_PROGRAM("uretprobe.multi", map_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct memory *handle, mapping = { .nr_refs = 1 };
	struct memory_key key;

	if (!frame || (u32)PT_REGS_RC(ctx) != 0)
		return;
	handle = memory_find(call.process, call.row->level, SPACE_HANDLE, frame->arg[2]);
	if (!handle)
		return;
	mapping.bytes = frame->arg[1];
	mapping.owner = frame->arg[2];
	key = memory_key(call.process, call.row->level, SPACE_MAPPING, frame->arg[0]);
	if (memory_put(call.process, &key, &mapping))
		__sync_fetch_and_add(&handle->nr_refs, 1);
}

/* The context of a loop over adjacent mappings. */
struct range {
	struct process_state *process;
	struct memory_key key; /* of the next mapping */
	u64 end;
};

static long range_step(u64 i, struct range *range)
{
	struct memory *mapping;

	if (range->key.address >= range->end)
		return 1;
	mapping = bpf_map_lookup_elem(&memories, &range->key);
	if (!mapping)
		return 1;
	range->key.address += mapping->bytes;
	return 0;
}

static long range_unmap(u64 i, struct range *range)
{
	struct memory *mapping, *memory, copy;
	struct memory_key key = range->key;

	if (key.address >= range->end)
		return 1;
	mapping = bpf_map_lookup_elem(&memories, &key);
	if (!mapping)
		return 1;
	range->key.address += mapping->bytes;
	copy.owner = mapping->owner;
	if (!memory_delete(range->process, &key))
		return 0;
	key.space = SPACE_HANDLE;
	key.address = copy.owner;
	memory = bpf_map_lookup_elem(&memories, &key);
	if (!memory)
		return 0;
	copy = *memory;
	if (__sync_fetch_and_add(&memory->nr_refs, -1) == 1 && memory_delete(range->process, &key))
		memory_booked_free(range->process, key.level, &copy);
	return 0;
}

CALL_PROGRAM("uprobe.multi", unmap_enter)
{
	struct arguments args = ARGUMENTS(ctx);
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct process_state *process = process_find(bpf_get_current_task_btf());
	struct range range = {};
	u64 start;

	if (!row || !process)
		return;
	start = argument(&args, row->arg[0]);
	range.process = process;
	range.key = memory_key(process, row->level, SPACE_MAPPING, start);
	range.end = start + argument(&args, row->arg[1]);
	bpf_loop(MAX_MAPPINGS, range_step, &range, 0);
	if (range.key.address < range.end)
		return;
	range.key.address = start;
	bpf_loop(MAX_MAPPINGS, range_unmap, &range, 0);
}
