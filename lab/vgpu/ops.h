/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How the collective library reaches the engine of its vendor: libnccl through
 * libcuda, librccl through libamdhip64. Not part of any vendor's interface.
 */
#include "vgpu/engine.h"

struct vgpu_ops {
	/* Starts the engine if need be; the device of the calling thread. */
	CUresult (*enter)(int *ret_ordinal);
	struct shm *(*shm)(void);
	struct truth *(*truth)(void);
	void (*lock)(void);
	void (*unlock)(void);
	void (*progress)(void);		     /* locked */
	void (*sleep)(pthread_cond_t *cond); /* locked, as pthread_cond_wait */
	/* On a stream of this device, whichever is current. */
	CUresult (*submit)(int ordinal, CUstream stream, external_poll poll, void *arg,
			   u64 entry_ns);
};

#ifdef VGPU_HIP
#define VGPU_OPS vgpu_hip_ops
#else
#define VGPU_OPS vgpu_cuda_ops
#endif
extern const struct vgpu_ops VGPU_OPS;
