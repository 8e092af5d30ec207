/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The interface between the collective library and the engine of its vendor: libnccl
 * uses libcuda, librccl uses libamdhip64. It is not part of a vendor's interface.
 */
#include "vgpu/engine.h"

struct vgpu_ops {
	/* Starts the engine if needed and returns the device of the calling thread. */
	CUresult (*enter)(int *ret_ordinal);
	struct shm *(*shm)(void);
	struct truth *(*truth)(void);
	void (*lock)(void);
	void (*unlock)(void);
	void (*progress)(void);		     /* the caller holds the lock */
	void (*sleep)(pthread_cond_t *cond); /* the same, as for pthread_cond_wait() */
	/* Puts work on a stream of this device, which need not be the current device. */
	CUresult (*submit)(int ordinal, CUstream stream, const struct external *external, void *arg,
			   u64 entry_ns);
};

#ifdef VGPU_HIP
#define VGPU_OPS vgpu_hip_ops
#else
#define VGPU_OPS vgpu_cuda_ops
#endif
extern const struct vgpu_ops VGPU_OPS;
