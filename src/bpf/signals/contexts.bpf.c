// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device that a thread uses: from the runtime call that selects a device, and
 * from the stack of contexts that the driver keeps for each thread. A context is
 * always looked up by its handle, and its device is never stored with the thread:
 * a handle may be reused, and threads with that handle on their stack then use
 * the new context.
 *
 * Calls that tell a process the identity of a device are kept too, because the number of
 * a device has a meaning only inside the process.
 *
 * The allocations of a context are freed with it. If any allocation is left, this
 * iterates over the whole map with preemption disabled: 1 ms, plus 1 ms for every
 * 7,000 entries. It happens only at the end of a process, if at all.
 */
#include "bpf/signals/memory.bpf.h"

/* The number of the newest context. */
static u64 nr_contexts;

CALL_PROGRAM("uretprobe.multi", device_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct gpu_thread *gpu;

	if (!frame || (u32)PT_REGS_RC(ctx) != 0 || frame->arg[0] >= GPU_MAX)
		return;
	gpu = gpu_thread_get(call.p);
	if (!gpu)
		return;
	gpu->device = frame->arg[0];
	gpu_used(&call, gpu->device);
}

/*
 * Keeps what a runtime told the process about a device. User space may read it during this write.
 * It then finds a value that no GPU has.
 */
static void claim_put(struct gpu_claims *claims, u32 device, u32 claim, const u64 value[2])
{
	u64 *known;

	barrier_var(device);
	device &= GPU_MAX - 1;
	barrier_var(claim);
	claim &= GPU_CLAIM_NR - 1;
	known = claims->value[device][claim];
	if (claims->told & GPU_CLAIM_BIT(device, claim) &&
	    (known[0] != value[0] || known[1] != value[1]))
		__sync_fetch_and_or(&claims->mixed, 1ULL << device);
	known[0] = value[0];
	known[1] = value[1];
	__sync_fetch_and_or(&claims->told, GPU_CLAIM_BIT(device, claim));
}

CALL_PROGRAM("uretprobe.multi", device_id_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	u64 value[GPU_CLAIM_BYTES / sizeof(u64)] = {};
	u32 claim;
	long err;

	if (!frame || (u32)PT_REGS_RC(ctx) != 0 || frame->arg[1] >= GPU_MAX)
		return;
	claim = call.row->detail - DETAIL_PROPERTIES;
	if (claim == GPU_CLAIM_PCI)
		/* The text may end at the end of a page. */
		err = bpf_probe_read_user_str(value, sizeof(value), (const void *)frame->arg[0]);
	else
		err = bpf_probe_read_user(
			value, sizeof(value),
			(const void *)(frame->arg[0] + (claim == GPU_CLAIM_PROPERTIES
								? ARG_PROPERTIES_UUID_AT
								: 0)));
	if (err >= 0)
		claim_put(claims_of(call.process), frame->arg[1], claim, value);
}

static void context_push(struct gpu_thread *gpu, u64 context)
{
	u32 depth = gpu->depth++;

	if (depth >= CONTEXT_DEPTH) {
		__sync_fetch_and_add(&nr_dropped_frames, 1);
		return;
	}
	barrier_var(depth);
	gpu->contexts[depth & (CONTEXT_DEPTH - 1)] = context;
}

static void context_pop(struct gpu_thread *gpu)
{
	if (gpu->depth)
		gpu->depth--;
}

static u64 context_top(const struct gpu_thread *gpu)
{
	u32 depth = gpu->depth - 1;

	if (depth >= CONTEXT_DEPTH)
		return 0;
	barrier_var(depth);
	return gpu->contexts[depth & (CONTEXT_DEPTH - 1)];
}

/* A primary context exists once, even if several threads retain it at the same time. */
static void context_add(const struct traced_call *call, u64 context, u32 device)
{
	struct memory memory = { .nr_refs = 1 }, *known;
	struct memory_key key = memory_key(call->process, LEVEL_DRIVER, SPACE_CONTEXT, context);

	memory.device = device;
	memory.detail = call->row->detail;
	memory.owner = __sync_fetch_and_add(&nr_contexts, 1) + 1;
	if (memory.detail != DETAIL_PRIMARY) {
		memory_put(call->process, &key, &memory);
		return;
	}
	if (memory_store(call->process, &key, &memory, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&memories, &key);
		if (known)
			__sync_fetch_and_add(&known->nr_refs, 1);
		else
			__sync_fetch_and_add(&nr_dropped_memory, 1);
	}
	key = memory_key(call->process, LEVEL_DRIVER, SPACE_PRIMARY, device);
	memory.owner = context;
	memory_put(call->process, &key, &memory);
}

CALL_PROGRAM("uretprobe.multi", context_new_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct gpu_thread *gpu;
	u64 context = 0;

	if (!frame || (u32)PT_REGS_RC(ctx) != 0 || frame->arg[1] >= GPU_MAX ||
	    bpf_probe_read_user(&context, sizeof(context), (void *)frame->arg[0]))
		return;
	context_add(&call, context, frame->arg[1]);
	if (call.row->detail == DETAIL_PRIMARY)
		return;
	gpu = gpu_thread_get(call.p);
	if (!gpu)
		return;
	context_push(gpu, context);
	gpu_used(&call, frame->arg[1]);
}

CALL_PROGRAM("uretprobe.multi", context_set_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct gpu_thread *gpu;
	struct memory *context;

	if (!frame || (u32)PT_REGS_RC(ctx) != 0)
		return;
	gpu = gpu_thread_get(call.p);
	if (!gpu)
		return;
	if (call.row->detail != DETAIL_PUSH)
		context_pop(gpu);
	if (call.row->detail == DETAIL_POP || !frame->arg[0])
		return;
	context_push(gpu, frame->arg[0]);
	context = memory_find(call.process, LEVEL_DRIVER, SPACE_CONTEXT, frame->arg[0]);
	if (context)
		gpu_used(&call, context->device);
}

struct drop {
	struct process_state *process;
	u64 owner; /* number of a context; 0: allocations in no known context */
	u32 device;
};

static long drop_one(struct memory_map *map, struct memory_key *key, struct memory *memory,
		     struct drop *drop)
{
	struct process_state *process = drop->process;
	struct memory copy = *memory;
	u32 level = key->level;

	if (key->start_ns != process->start_ns || key->tgid != process->task.pid ||
	    key->space != SPACE_POINTER || copy.owner != drop->owner)
		return 0;
	if (!copy.owner && (level != LEVEL_RUNTIME || copy.device != drop->device))
		return 0;
	if (memory_delete(process, key))
		memory_booked_free(process, level, &copy);
	return 0;
}

/* Whether the process has allocations left, on any device. */
static bool holds_memory(const struct process_state *process)
{
	u64 open = 0;

	for (u32 level = 0; level < LEVEL_NR; level++) {
		const struct memory_book *host = &process->host_books[level];

		open += host->nr_allocs - host->nr_frees;
		for (u32 i = 0; i < GPU_MAX; i++) {
			const struct memory_book *book = &process->books[level][i];

			open += book->nr_allocs - book->nr_frees;
		}
	}
	return open;
}

static void drop_all(struct process_state *process, u64 owner, u32 device)
{
	struct drop drop = { process, owner, device };

	if (holds_memory(process))
		bpf_for_each_map_elem(&memories, drop_one, &drop, 0);
}

/* The handle of the primary context of a device, or 0. */
static u64 primary_of(const struct process_state *process, u64 device)
{
	struct memory *primary = memory_find(process, LEVEL_DRIVER, SPACE_PRIMARY, device);

	return primary ? primary->owner : 0;
}

CALL_PROGRAM("uprobe.multi", context_free_enter)
{
	struct traced_call call;
	struct call_frame *frame;
	struct gpu_thread *gpu;
	struct memory_key key;

	if (!call_entered(ctx, &call) || call.row->detail == DETAIL_RESET)
		return;
	frame = frame_of(&call);
	gpu = gpu_thread_get(call.p);
	if (!frame || !gpu)
		return;
	key = memory_key(call.process, LEVEL_DRIVER, SPACE_CONTEXT, frame->arg[0]);
	if (call.row->detail == DETAIL_PRIMARY)
		key.address = primary_of(call.process, frame->arg[0]);
	leaving_begin(call.process, gpu, LEAVING_CONTEXT, &key);
}

/*
 * A runtime whose driver is not traced resets the device of the thread, which has
 * no known context.
 */
static void device_reset(const struct traced_call *call, const struct call_frame *frame,
			 const struct gpu_thread *gpu)
{
	struct memory *context;

	if (call->row->level == LEVEL_RUNTIME) {
		drop_all(call->process, 0, gpu->device);
		return;
	}
	context = memory_find(call->process, LEVEL_DRIVER, SPACE_CONTEXT,
			      primary_of(call->process, frame->arg[0]));
	if (context)
		drop_all(call->process, context->owner, 0);
}

CALL_PROGRAM("uretprobe.multi", context_free_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	bool failed = (u32)PT_REGS_RC(ctx) != 0;
	struct gpu_thread *gpu;
	struct leaving *leaving;

	if (!frame)
		return;
	gpu = gpu_thread_get(call.p);
	if (!gpu)
		return;
	if (call.row->detail == DETAIL_RESET) {
		if (!failed)
			device_reset(&call, frame, gpu);
		return;
	}
	leaving = leaving_at(gpu, LEAVING_CONTEXT);
	if (!failed && call.row->detail == DETAIL_NONE && context_top(gpu) == frame->arg[0])
		context_pop(gpu);
	if (leaving_end(call.process, leaving, failed))
		drop_all(call.process, leaving->memory.owner, 0);
}
