/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Additions of the virtual GPU to the vendors' interfaces: the duration of a launch,
 * and the numbers in truth logs.
 *
 * A kernel's duration:
 *  - cudaLaunchKernel / hipLaunchKernel with `vgpu_busy` as the function:
 *    args[0] points to a u64, the number of nanoseconds that the device is busy;
 *  - cuLaunchKernel / hipModuleLaunchKernel with a function whose name begins
 *    with "busy", from any module or library: kernelParams[0] points to such a u64;
 *  - any other function: VGPU_KERNEL_NS (default 10000).
 *
 * Environment (the first process that uses VGPU_SHM creates the devices):
 *   VGPU_SHM              file that the processes share (default /dev/shm/vgpu-<uid>)
 *   VGPU_DEVICES          number of devices (default 1, at most 16)
 *   VGPU_MEMORY_BYTES     memory of each device (default 16 GiB)
 *   VGPU_BANDWIDTH        bandwidth of copies, bytes/s (default 25e9)
 *   VGPU_NCCL_BANDWIDTH   bandwidth of collectives, bytes/s (default 100e9)
 *   VGPU_NCCL_SERVICE     1: a communicator begins with a service thread, which creates the helper
 *                         that makes progress when there is work for it
 *   VGPU_NUMA             NUMA node of each device, for example "0,1" (default 0; the last repeats)
 *   VGPU_MINORS           number of the device file of each device, for example "2,0,1" (default:
 *                         the index of the device)
 *   VGPU_MIG              number of parts of each device, for example "0,3" (default 0: it is not
 *                         divided)
 *   VGPU_CONTAINER        devices that exist for this process, in its own order, for example "2,0":
 *                         what a container shows, before CUDA_VISIBLE_DEVICES (default: all)
 *   VGPU_KERNEL_NS        see above
 *   VGPU_LAUNCH_NS        minimum time that a launch takes in its caller (default 0)
 *   VGPU_QUEUE            launches of a stream that can wait for the device (default 1024);
 *                         a launch into a full queue blocks
 *   VGPU_SM_PERCENT       share of the multiprocessors that a kernel fills (default 100)
 *   VGPU_GPM              0: a GPU without performance monitoring (default 1)
 *   VGPU_DEVICE_FILE      file that a process opens when it starts to use a device (default
 *                         /dev/zernel-vgpu0; it may be missing)
 *   VGPU_TRUTH            directory for truth logs (unset: no log)
 *   CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES   as with the real libraries: indexes, UUIDs, or
 *                         the beginnings of UUIDs; a process sees one part of a divided device
 */
#include "abi/types.h"

/* Only its address is used: it is a device function for the launch calls. */
void vgpu_busy(u64 ns);

/* TRUTH_ALLOC and TRUTH_FREE: sub. */
enum vgpu_alloc {
	VGPU_ALLOC_PLAIN = 0,
	VGPU_ALLOC_ASYNC,
	VGPU_ALLOC_PITCHED,
	VGPU_ALLOC_MANAGED,
	VGPU_ALLOC_HOST, /* pinned host memory: uses no device memory */
	VGPU_ALLOC_VMM,	 /* logged by handle: from cuMemCreate to the last release or unmap */
};

/* TRUTH_COLLECTIVE: sub; its c is the same number in all ranks of a communicator. */
enum vgpu_coll {
	VGPU_COLL_ALLREDUCE = 0,
	VGPU_COLL_BROADCAST,
	VGPU_COLL_REDUCE,
	VGPU_COLL_ALLGATHER,
	VGPU_COLL_REDUCESCATTER,
	VGPU_COLL_SEND,
	VGPU_COLL_RECV,
};

#ifndef VGPU_DIM3
#define VGPU_DIM3
typedef struct dim3 {
	unsigned int x, y, z;
} dim3;
#endif
