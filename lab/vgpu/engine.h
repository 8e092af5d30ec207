/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The engine of the virtual GPU: devices, contexts, streams, events, memory.
 *
 * Time. A stream is a "ready at" time. Work put on it starts when the stream is
 * ready (or now) and makes it ready later by the work's duration; nothing runs,
 * so device time costs no CPU. A sync waits until the ready time: spinning,
 * yielding or sleeping, by the context's flags. An event is the ready time of a
 * stream when it was recorded. The legacy stream waits for the blocking streams
 * of its context and they for it.
 *
 * Collectives end when the last rank has arrived, which may be in another
 * process and not known yet. Such work, and all that is queued behind it, waits
 * in the stream's list; progress() gives it times as soon as they are known.
 * Without collectives no list is ever used.
 *
 * What is not modelled: streams of one device, and processes on one device, run
 * side by side at full speed (utilisation is the union of their spans); copies
 * have an engine each; device memory has no content, so a copy to the host leaves
 * the host's bytes as they are (host to host copies do copy); no memory is lost to
 * contexts or rounding, so memory in use is what was asked for; managed memory is
 * taken at allocation; memory freed in stream order is free at the call.
 *
 * In truth logs a device is numbered as NVML does (not by *_VISIBLE_DEVICES), a
 * stream is the handle the program passed, and a BUSY span is logged once its
 * times are known, which is at the launch unless a collective is in the way.
 */
#include "truth/truth.h"
#include "vgpu/include/vgpu_cuda.h"
#include "vgpu/shm.h"

/* The end of some queued work; shared by the work, events and waiters. */
struct node {
	u32 refs;
	bool done;
	u64 end_ns;
};

/* A moment on a device's time line, maybe not known yet. */
struct target {
	u64 time_ns; /* at least */
	struct node *node;
};

/*
 * Work whose end others decide. Called with the engine locked once the stream has
 * reached it, again and again until it returns true.
 */
typedef bool (*external_poll)(void *arg, u64 arrival_ns, u64 *ret_end_ns);

enum op_kind { OP_WORK, OP_WAIT, OP_EXTERNAL };

struct op {
	struct op *next;
	enum op_kind kind;
	enum truth_work work;
	u64 seq;
	u64 queued_ns;
	u64 duration_ns; /* OP_WAIT: wait at least until this time */
	u64 arrival_ns;	 /* OP_EXTERNAL: 0 until the stream has reached it */
	struct node *wait;
	struct node *node;
	external_poll poll;
	void *arg;
};

/* Handles stay valid memory for ever and are used again, so a stale one is an error, not a crash.
 */
struct object {
	struct object *next;
	bool live;
};

struct CUctx_st {
	struct object object;
	u32 device;
	int ordinal;
	unsigned int flags;
	bool primary;
	u32 refs;
	struct CUstream_st *legacy;
};

struct CUstream_st {
	struct object object;
	struct CUctx_st *ctx;
	unsigned int flags;
	u64 ready_ns;
	struct op *head, *tail;
	bool destroyed; /* by the program, while work is still queued */
	bool capturing;
	u64 captured_ns;
};

struct CUevent_st {
	struct object object;
	struct CUctx_st *ctx;
	u64 stream; /* handle, 0: the legacy one */
	unsigned int flags;
	bool recorded;
	struct target target; /* held */
};

struct CUfunc_st {
	bool busy; /* the first parameter says for how long */
};

struct CUgraph_st {
	u64 duration_ns;
};

struct CUgraphExec_st {
	u64 duration_ns;
};

/* One a process: the vendors' calls carry no handle to hang it on. */
struct engine {
	pthread_mutex_t lock;
	pthread_cond_t progressed;
	CUresult state;
	struct shm *shm;
	u32 proc;
	struct truth *truth;
	u64 kernel_ns;
	u64 launch_ns;
	u64 seq;
	u32 nr_pending;
	u32 nr_visible;
	u32 visible[SHM_DEVICES];
	struct CUctx_st primary[SHM_DEVICES];
	struct object *ctxs, *streams, *events;
	u64 cursor[SHM_DEVICES][SHM_SPAN_KINDS];
};

extern struct engine engine;

#define ENGINE_LOCKED()                                                                            \
	__attribute__((cleanup(engine_unlockp), unused)) struct engine *engine_locked =            \
		(pthread_mutex_lock(&engine.lock), &engine)
static inline void engine_unlockp(struct engine **e)
{
	pthread_mutex_unlock(&(*e)->lock);
}

static inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* The library names the truth log and the variable that picks devices. */
struct engine_variant {
	const char *truth_writer;
	const char *visible_env;
};
extern const struct engine_variant engine_variant;

CUresult engine_init(void);
struct object *object_new(struct object **list, size_t size);
CUresult device_check(CUdevice ordinal);

/* context.c: the current context is the top of a stack each thread has. */
CUresult ctx_current(struct CUctx_st **ret);
CUresult ctx_set(struct CUctx_st *ctx);
CUresult ctx_push(struct CUctx_st *ctx);
CUresult ctx_pop(struct CUctx_st **ret);
struct CUctx_st *ctx_peek(void);
CUresult ctx_new(CUdevice ordinal, unsigned int flags, struct CUctx_st **ret);
CUresult ctx_retain(CUdevice ordinal, struct CUctx_st **ret);
CUresult ctx_release(struct CUctx_st *ctx, bool reset);

/* stream.c */
CUresult stream_get(CUstream handle, struct CUstream_st **ret);
struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned int flags);
void stream_free(struct CUstream_st *stream); /* with the engine locked */
CUresult stream_submit(CUstream handle, enum truth_work work, u64 duration_ns);
/* On the legacy stream, returning when it is done. */
CUresult stream_submit_wait(enum truth_work work, u64 duration_ns);
CUresult stream_submit_external(CUstream handle, external_poll poll, void *arg, u64 entry_ns);
void engine_progress(void); /* with the engine locked */

/* With the engine locked, both. */
void stream_join(struct CUstream_st *stream, struct target target);
void stream_join_legacy(struct CUstream_st *stream);

/* sync.c: the first four with the engine locked. */
struct target stream_target(const struct CUstream_st *stream);
struct target target_hold(struct target target);
bool target_reached(struct target target);
void node_unref(struct node *node);
/* Lets go of a held target. */
void target_wait(struct target *target, unsigned int flags);
/* Waits for all work of the context; ctx_sync() also logs it as a sync call. */
CUresult ctx_drain(struct CUctx_st *ctx);
CUresult ctx_sync(struct CUctx_st *ctx);
CUresult stream_sync(CUstream handle);
CUresult event_sync(struct CUevent_st *event);

/* book.c: what is allocated where. */
struct book_entry {
	u64 base;
	u64 size;
	u64 bytes;
	u32 device;
	enum vgpu_alloc api;
	struct CUctx_st *ctx;
	void *owner; /* VMM: the handle mapped here */
};
CUresult book_alloc(enum vgpu_alloc api, u64 size, u64 *ret_ptr);
CUresult book_free(u64 ptr, bool host);
/* Drops what the context allocated. */
void book_drop(struct CUctx_st *ctx);
bool book_covers(u64 ptr, u64 size); /* all of it allocated on a device */
bool book_add(struct book_entry *entry);
struct book_entry *book_find(u64 ptr);
void book_remove(struct book_entry *entry);
/* Takes memory of the device and logs it, and gives it back. */
CUresult memory_take(u32 device, enum vgpu_alloc api, u64 bytes);
void memory_log(enum truth_kind kind, u32 device, enum vgpu_alloc api, u64 ptr, u64 bytes);
void memory_give(u32 device, enum vgpu_alloc api, u64 ptr, u64 bytes);
