// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What PyTorch's allocator has given out of its GPU memory, over time: core/usage.h. The probe is
 * attached to a library only while a client asks for a process that maps it, and other processes
 * with this library are ignored. A process has at most one entry for each GPU, which user space
 * deletes with the watch. GPUs of several vendors in one process share the entry of their number.
 */
#include "bpf/signals/calls.bpf.h"
#include "core/oom.h"
#include "core/usage.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, USAGE_PROCESSES);
	__type(key, u32);
	__type(value, struct usage_process);
} usage_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, USAGE_PROCESSES *GPU_MAX);
	__type(key, struct usage_key);
	__type(value, struct usage);
} usages SEC(".maps");

static const struct usage usage_new;

static struct usage *usage_get(const struct usage_key *key)
{
	struct usage *usage = bpf_map_lookup_elem(&usages, key);

	if (usage)
		return usage;
	bpf_map_update_elem(&usages, key, &usage_new, BPF_NOEXIST);
	return bpf_map_lookup_elem(&usages, key);
}

CALL_PROGRAM("uprobe.multi", usage_enter)
{
	struct arguments args = ARGUMENTS(ctx);
	const struct call_row *row = row_of(bpf_get_attach_cookie(ctx));
	struct usage_key key = { .tgid = bpf_get_current_pid_tgid() >> 32 };
	struct usage_process *process = bpf_map_lookup_elem(&usage_processes, &key.tgid);
	struct usage *usage;
	u64 device, allocated, reserved, part;

	if (!row || !process || !process->part_ns)
		return;
	device = argument(&args, row->arg[2]);
	key.device = oom_device(device);
	allocated = argument(&args, row->arg[0]);
	reserved = argument(&args, row->arg[1]);
	if (!oom_is_gpu(device) || key.device >= GPU_MAX || allocated > USAGE_BYTES_MAX ||
	    reserved > USAGE_BYTES_MAX)
		return;
	part = (bpf_ktime_get_ns() - process->begin_ns) / process->part_ns;
	if (part >= USAGE_PARTS)
		return;
	barrier_var(part);
	usage = usage_get(&key);
	if (usage && part < USAGE_PARTS)
		usage_add(&usage->parts[part], allocated, reserved);
}
