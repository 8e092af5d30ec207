// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of GPU kernels. A program looks a kernel up by its name and gets a handle, which it
 * launches (lines.bpf.c). The names are kept from the first call on, although a client may never
 * want them: each kernel is looked up once, so the names cannot be learned later. A user and a
 * group have a part of the table. The entries end with their process.
 *
 * Trusts nothing: a name is bytes of the process, and is read when the call has returned. A handle
 * that is given again has its new name, or none if that name is not known. The host function of
 * cudaLaunchKernel() is no handle, so it has no name.
 */
#include "abi/gpu_kernel.h"
#include "bpf/signals/calls.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, GPU_KERNELS_MAX);
	__type(key, struct gpu_kernel_key);
	__type(value, struct gpu_kernel);
} gpu_kernels SEC(".maps");

u64 nr_dropped_kernels;

static bool read_name(u64 address, struct gpu_kernel *ret)
{
	long length = bpf_probe_read_user_str(ret->name, sizeof(ret->name), (void *)address);
	char next = 0;

	if (length <= 1)
		return false;
	if (length == sizeof(ret->name))
		bpf_probe_read_user(&next, sizeof(next), (void *)(address + length - 1));
	ret->is_cut = next != 0;
	return true;
}

/* The function of a kernel has the name of the kernel. */
static bool copy_name(struct gpu_kernel_key key, u64 handle, struct gpu_kernel *ret)
{
	struct gpu_kernel *known;

	key.handle = handle;
	known = bpf_map_lookup_elem(&gpu_kernels, &key);
	if (known)
		*ret = *known;
	return known;
}

static void forget(const struct process_state *process, const struct gpu_kernel_key *key)
{
	if (!bpf_map_delete_elem(&gpu_kernels, key))
		tenant_add_kernels(process->uid, process->group, -1);
}

static void keep(const struct process_state *process, const struct gpu_kernel_key *key,
		 const struct gpu_kernel *kernel)
{
	if (!bpf_map_update_elem(&gpu_kernels, key, kernel, BPF_EXIST))
		return;
	if (tenant_has_kernels(process->uid, process->group) &&
	    !bpf_map_update_elem(&gpu_kernels, key, kernel, BPF_NOEXIST))
		tenant_add_kernels(process->uid, process->group, 1);
	else
		__sync_fetch_and_add(&nr_dropped_kernels, 1);
}

CALL_PROGRAM("uretprobe.multi", kernel_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct gpu_kernel_key key = {};
	struct gpu_kernel kernel = {};
	bool is_known;

	if (!frame || (s32)PT_REGS_RC(ctx) != 0 ||
	    bpf_probe_read_user(&key.handle, sizeof(key.handle), (void *)frame->arg[0]))
		return;
	key.start_ns = call.process->start_ns;
	key.tgid = call.process->task.pid;
	is_known = call.row->detail == DETAIL_NAMED ? read_name(frame->arg[1], &kernel)
						    : copy_name(key, frame->arg[1], &kernel);
	if (is_known)
		keep(call.process, &key, &kernel);
	else
		forget(call.process, &key);
}
