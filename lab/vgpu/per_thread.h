/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Calls that CUDA exports twice. In the second form (suffix _ptsz, or _ptds for calls
 * without a stream argument) the default stream is that of the calling thread; programs
 * built with --default-stream per-thread use it. As in the vendor's libraries, neither
 * form calls the other, so a probe sees each call once. HIP has only the first form.
 */
#include "vgpu/rt.h"

#define PER_THREAD_LIST(...) __VA_ARGS__

#ifdef VGPU_HIP

#define STREAM_CALL(name, params, args) CUresult CU(name) params

#define DEFAULT_CALL(name, params, args)                                                           \
	static CUresult name##_on(CUstream stream, PER_THREAD_LIST params);                        \
	CUresult CU(name) params                                                                   \
	{                                                                                          \
		return name##_on(NULL, PER_THREAD_LIST args);                                      \
	}                                                                                          \
	static CUresult name##_on(CUstream stream, PER_THREAD_LIST params)

#define RUNTIME_CALL(name, suffix, params, args) RT(Error_t) RT(name) params

#define DRIVER(name, suffix) CU(name)

#else

/* A driver call with an argument `stream`; its body follows. */
#define STREAM_CALL(name, params, args)                                                            \
	static CUresult name##_on params;                                                          \
	CUresult CU(name) params                                                                   \
	{                                                                                          \
		return name##_on args;                                                             \
	}                                                                                          \
	CUresult CU(name##_ptsz) params                                                            \
	{                                                                                          \
		stream = stream ?: CU_STREAM_PER_THREAD;                                           \
		return name##_on args;                                                             \
	}                                                                                          \
	static CUresult name##_on params

/* A driver call that uses the default stream, which its body gets as `stream`. */
#define DEFAULT_CALL(name, params, args)                                                           \
	static CUresult name##_on(CUstream stream, PER_THREAD_LIST params);                        \
	CUresult CU(name) params                                                                   \
	{                                                                                          \
		return name##_on(NULL, PER_THREAD_LIST args);                                      \
	}                                                                                          \
	CUresult CU(name##_ptds) params                                                            \
	{                                                                                          \
		return name##_on(CU_STREAM_PER_THREAD, PER_THREAD_LIST args);                      \
	}                                                                                          \
	static CUresult name##_on(CUstream stream, PER_THREAD_LIST params)

/* A runtime call; its body calls the same form of the driver, by DRIVER(). */
#define RUNTIME_CALL(name, suffix, params, args)                                                   \
	static RT(Error_t) name##_on(bool per_thread, PER_THREAD_LIST params);                     \
	RT(Error_t) RT(name) params                                                                \
	{                                                                                          \
		return name##_on(false, PER_THREAD_LIST args);                                     \
	}                                                                                          \
	RT(Error_t) RT(name##suffix) params                                                        \
	{                                                                                          \
		return name##_on(true, PER_THREAD_LIST args);                                      \
	}                                                                                          \
	static RT(Error_t) name##_on(bool per_thread, PER_THREAD_LIST params)

#define DRIVER(name, suffix) (per_thread ? CU(name##suffix) : CU(name))

#endif
