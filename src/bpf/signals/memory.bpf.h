/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the programs on allocations and on contexts: the map of the GPU
 * memory of all processes, the device that a thread uses, and how memory is
 * released.
 *
 * A call that releases memory removes the entry from the map when it is entered.
 * Its return books the free, or restores the entry if the call failed. Meanwhile
 * the driver may give the same address to another thread, whose entry must not be
 * mistaken for the old one.
 */
#include "bpf/signals/calls.bpf.h"

enum leaving_state {
	LEAVING_NOTHING,
	LEAVING_REFERENCE, /* other references remain */
	LEAVING_ALL,	   /* the entry was removed from the map */
};

struct memory_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_MEMORY);
	__type(key, struct memory_key);
	__type(value, struct memory);
};

extern struct memory_map memories SEC(".maps");
extern u64 nr_dropped_memory;

static inline struct gpu_thread *gpu_thread_get(struct task_struct *p)
{
	struct gpu_thread *gpu =
		bpf_task_storage_get(&gpu_threads, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!gpu)
		__sync_fetch_and_add(&nr_dropped_frames, 1);
	return gpu;
}

static inline struct memory_key memory_key(const struct process_state *process, u32 level,
					   enum memory_space space, u64 address)
{
	return (struct memory_key){
		.start_ns = process->start_ns,
		.tgid = process->task.pid,
		.level = level,
		.space = space,
		.address = address,
	};
}

static inline struct memory *memory_find(const struct process_state *process, u32 level,
					 enum memory_space space, u64 address)
{
	struct memory_key key = memory_key(process, level, space, address);

	return bpf_map_lookup_elem(&memories, &key);
}

/* Fails if the table is full, or the part of it that a tenant of the process may use. */
static inline long memory_store(const struct process_state *process, const struct memory_key *key,
				const struct memory *memory, u64 flags)
{
	bool is_new = !bpf_map_lookup_elem(&memories, key);
	long err;

	if (is_new && !tenant_has_memory(process->uid, process->group))
		return -28; /* ENOSPC */
	err = bpf_map_update_elem(&memories, key, memory, flags);
	if (is_new && !err)
		tenant_add_memory(process->uid, process->group, 1);
	return err;
}

static inline bool memory_put(const struct process_state *process, const struct memory_key *key,
			      const struct memory *memory)
{
	if (memory_store(process, key, memory, BPF_ANY) == 0)
		return true;
	__sync_fetch_and_add(&nr_dropped_memory, 1);
	return false;
}

static inline bool memory_delete(const struct process_state *process, const struct memory_key *key)
{
	if (bpf_map_delete_elem(&memories, key))
		return false;
	tenant_add_memory(process->uid, process->group, -1);
	return true;
}

/* The account of the memory. Its device was checked at the allocation. */
static inline struct memory_book *book_of(struct process_state *process, u32 level,
					  const struct memory *memory)
{
	u32 device = memory->device;

	barrier_var(level);
	barrier_var(device);
	if (memory->detail == DETAIL_HOST)
		return &process->host_books[level & (LEVEL_NR - 1)];
	return &process->books[level & (LEVEL_NR - 1)][device & (GPU_MAX - 1)];
}

static inline void memory_booked_free(struct process_state *process, u32 level,
				      const struct memory *memory)
{
	process_write_begin(process);
	book_free(book_of(process, level, memory), memory->bytes);
	process_write_end(process);
}

static inline struct leaving *leaving_at(struct gpu_thread *gpu, u32 slot)
{
	barrier_var(slot);
	return &gpu->leaving[slot & (LEAVING_NR - 1)];
}

/* At the entry of a call that releases memory. */
static inline void leaving_begin(const struct process_state *process, struct gpu_thread *gpu,
				 u32 slot, const struct memory_key *key)
{
	struct leaving *leaving = leaving_at(gpu, slot);
	struct memory *memory = bpf_map_lookup_elem(&memories, key);

	if (!memory)
		return;
	leaving->key = *key;
	leaving->memory = *memory;
	leaving->state = LEAVING_REFERENCE;
	if (__sync_fetch_and_add(&memory->nr_refs, -1) == 1 && memory_delete(process, key))
		leaving->state = LEAVING_ALL;
}

/*
 * At its return: true if the last reference was released; `leaving` then
 * describes the memory.
 */
static inline bool leaving_end(const struct process_state *process, struct leaving *leaving,
			       bool failed)
{
	u64 state = leaving->state;
	struct memory *memory;

	leaving->state = LEAVING_NOTHING;
	if (!failed || state == LEAVING_NOTHING)
		return state == LEAVING_ALL;
	if (state == LEAVING_ALL) {
		leaving->memory.nr_refs = 1;
		memory_put(process, &leaving->key, &leaving->memory);
		return false;
	}
	memory = bpf_map_lookup_elem(&memories, &leaving->key);
	if (memory)
		__sync_fetch_and_add(&memory->nr_refs, 1);
	return false;
}

/* The frame that the entry of the call pushed, or NULL if it did not fit. */
static inline struct call_frame *frame_of(const struct traced_call *call)
{
	u32 depth = call->thread->depth - 1;

	return depth < MAX_CALL_DEPTH ? frame_at(call->thread, depth) : NULL;
}

static inline u64 gpu_bytes(struct process_state *process, u32 device)
{
	barrier_var(device);
	device &= GPU_MAX - 1;
	return process->books[LEVEL_RUNTIME][device].current_bytes +
	       process->books[LEVEL_DRIVER][device].current_bytes;
}

/* Wakes user space. */
static inline void report_send(u32 kind, struct task_struct *p, u64 now)
{
	struct event *event = bpf_ringbuf_reserve(&reports, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&nr_dropped_events, 1);
		return;
	}
	event_fill(event, kind, p, 0, now);
	bpf_ringbuf_submit(event, 0);
}

/*
 * The process selected a device or allocated memory on it. Its main device is the
 * one with most of its memory, or the last selected one while it has no memory.
 */
static inline void gpu_used(const struct traced_call *call, u32 device)
{
	struct process_state *process = call->process;
	struct task_state *task = &process->task;
	bool first = !task->has_gpu;
	u64 held;

	if (device >= GPU_MAX)
		return;
	call->thread->device = device;
	__sync_fetch_and_or(&claims_of(process)->used, 1ULL << device);
	held = first ? 0 : gpu_bytes(process, task->gpu_id);
	if (held && held >= gpu_bytes(process, device))
		return;
	task->gpu_id = device;
	task->has_gpu = 1;
	if (!first)
		return;
	report_send(EVENT_GPU, call->p, call->now);
}
