/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The engine of the virtual GPU: devices, contexts, streams, events, memory.
 *
 * Time. A stream is a "ready at" time. Work on it starts when the stream is ready (or
 * now) and moves the ready time by its duration. Nothing runs, so device time uses no
 * CPU time. A sync waits until the ready time by spinning, yielding or sleeping,
 * depending on the context's flags. An event is the ready time of a stream when it was
 * recorded. The legacy stream waits for the blocking streams of its context, and they
 * wait for it.
 *
 * A collective ends when the last rank has arrived. That rank may be in another
 * process, and its arrival may not be known yet. Such work, and all work queued behind
 * it, waits in the stream's list; engine_progress() sets its times as soon as they are
 * known. A function on the host, which a library thread calls, is such work, too. Without
 * either, the list is never used.
 *
 * The launch queue. Each stream has room for engine.queue launches that are not done; a
 * launch into a full queue spins until the oldest is done. Real drivers have one such
 * queue for each hardware channel, and use a channel of its own for each of the first
 * streams (8 by default) of a context. Events take no entry, a graph takes one.
 *
 * Simplifications: streams and processes on one device run in parallel at full speed
 * (utilization is the union of their spans); each copy has its own engine; device
 * memory has no content, so a copy to the host does not change the host's bytes (copies
 * from host to host do copy); contexts and rounding use no memory, so memory in use is
 * the memory that was requested; managed memory counts from its allocation; memory
 * freed in stream order is free at the call.
 *
 * Truth logs number devices like NVML (not by *_VISIBLE_DEVICES). A stream is the
 * handle that the program passed. A BUSY span is logged when its times are known: at
 * the launch, unless a collective is queued before it.
 */
#include "truth/truth.h"
#include "vgpu/include/vgpu_cuda.h"
#include "vgpu/shm.h"

/* The end of queued work; the work, events and waiters share it. */
struct node {
	u32 refs;
	bool done;
	u64 end_ns;
};

/* A moment on the timeline of a device, which may not be known yet. */
struct target {
	u64 time_ns; /* at least */
	struct node *node;
};

/*
 * Work whose end the engine cannot compute: a collective depends on other processes, a
 * host function on its own code. The engine calls all of these with its lock held.
 */
struct external {
	bool on_device; /* the device is busy from the arrival to the end */
	/* Called once, when the work is queued. */
	void (*start)(void *arg);
	/* Called after the stream has reached the work, until it returns true, which frees arg. */
	bool (*poll)(void *arg, u64 arrival_ns, u64 *ret_end_ns);
	/* A graph keeps the captured argument: each launch of the graph queues a copy of it. */
	void *(*copy)(const void *arg, u64 entry_ns);
	void (*drop)(void *arg);
};

enum op_kind { OP_WORK, OP_WAIT, OP_EXTERNAL };

struct op {
	struct op *next;
	enum op_kind kind;
	enum truth_work work;
	u64 stream; /* for the log: the handle that the program passed */
	u64 seq;
	u64 queued_ns;	 /* it starts no earlier */
	u64 duration_ns; /* OP_WAIT: wait at least until this time */
	u64 arrival_ns;	 /* OP_EXTERNAL: when the stream reached it, 0 before */
	struct node *wait;
	struct node *node;
	const struct external *external;
	void *arg;
};

/* Handles are never freed but used again, so a stale handle causes an error, not a crash. */
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
	bool destroyed; /* by the program; work may still be queued */
	u64 owner;	/* a thread or an executable graph; 0: the program */
	struct CUgraph_st *capture;
	u32 lane;	       /* its number in the capture */
	u64 nr_launched;       /* including the ones that are done */
	struct target queue[]; /* ends of the last launches: a ring of engine.queue entries */
};

struct CUevent_st {
	struct object object;
	struct CUctx_st *ctx;
	u64 stream; /* handle; 0: the legacy stream */
	unsigned int flags;
	bool recorded;
	struct target target; /* held */
	u64 capture;	      /* the capture that it was recorded in; 0: none */
	u32 capture_node;     /* it waits for this node (from 1); 0: the start of the graph */
};

struct CUfunc_st {
	struct CUfunc_st *next;
	bool busy; /* the first parameter is the duration */
	char name[];
};

/* One for each process, because the vendors' calls pass no handle for it. */
struct engine {
	pthread_mutex_t lock;
	pthread_cond_t progressed;
	CUresult state;
	struct shm *shm;
	u32 proc;
	struct truth *truth;
	u64 kernel_ns;
	u64 launch_ns;
	u32 queue;	/* entries of the launch queue of a stream */
	u32 sm_percent; /* share of the multiprocessors that a kernel fills */
	u64 seq;
	u64 nr_captures;
	u32 nr_pending;
	u32 nr_visible;
	u32 visible[SHM_DEVICES];
	u32 slice; /* the part of the only visible device, from 1; 0: whole devices */
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

/* The library defines the name of the truth log and the variable that selects devices. */
struct engine_variant {
	const char *truth_writer;
	const char *visible_env;
};
extern const struct engine_variant engine_variant;

CUresult engine_init(void);
struct object *object_new(struct object **list, size_t size);
CUresult device_check(CUdevice ordinal);

/* context.c: the current context is the top of a stack of each thread. */
CUresult ctx_current(struct CUctx_st **ret);
CUresult ctx_set(struct CUctx_st *ctx);
CUresult ctx_push(struct CUctx_st *ctx);
CUresult ctx_pop(struct CUctx_st **ret);
struct CUctx_st *ctx_peek(void);
CUresult ctx_new(CUdevice ordinal, unsigned int flags, struct CUctx_st **ret);
CUresult ctx_retain(CUdevice ordinal, struct CUctx_st **ret);
CUresult ctx_release(struct CUctx_st *ctx, bool reset);

/* stream.c: the handles 1 and 2 mean the default stream of the context and of the thread. */
CUresult stream_get(CUstream handle, struct CUstream_st **ret);
u64 stream_id(const struct CUstream_st *stream); /* for the log */
/* The caller of these holds the lock. */
struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned int flags);
void stream_free(struct CUstream_st *stream);
void stream_retire(struct CUstream_st *stream); /* when its last work is done */
CUresult stream_join(struct CUstream_st *stream, struct target target);
CUresult stream_join_legacy(struct CUstream_st *stream);

/* work.c: the caller holds the lock. */
CUresult work_put(struct CUstream_st *stream, struct op op);
CUresult work_queue(struct CUstream_st *stream, struct op op);
void engine_progress(void);

/* submit.c */
CUresult stream_submit(CUstream handle, enum truth_work work, u64 duration_ns);
/* Returns when the work is done. */
CUresult stream_submit_wait(CUstream handle, enum truth_work work, u64 duration_ns);
/* Owns `arg` if it succeeds. */
CUresult stream_submit_external(CUstream handle, const struct external *external, void *arg,
				u64 entry_ns);
CUresult stream_launch_graph(CUstream handle, struct CUgraphExec_st *exec);

/* graph.c: the caller holds the lock. */
CUresult capture_begin(struct CUstream_st *stream);
CUresult capture_end(struct CUstream_st *stream, struct CUgraph_st **ret);
CUresult capture_add(struct CUstream_st *stream, const struct op *op);
void capture_record(const struct CUstream_st *stream, struct CUevent_st *event);
CUresult capture_wait(struct CUstream_st *stream, const struct CUevent_st *event);
CUresult graph_instantiate(struct CUgraph_st *graph, struct CUgraphExec_st **ret);
bool graph_has_work(const struct CUgraphExec_st *exec);
CUresult graph_replay(struct CUgraphExec_st *exec, struct CUstream_st *stream, u64 seq,
		      u64 entry_ns);
void graph_exec_free(struct CUgraphExec_st *exec);
void graph_unref(struct CUgraph_st *graph);

/* host.c: a library thread calls `function` when the stream reaches it. */
CUresult stream_call_host(CUstream handle, void (*function)(void *), void *data);

/* sync.c: the caller of the first four holds the lock. */
struct target stream_target(const struct CUstream_st *stream);
struct target target_hold(struct target target);
bool target_reached(struct target target);
void node_unref(struct node *node);
/* Waits for a held target and releases it. */
void target_wait(struct target *target, unsigned int flags);
/* Waits for all work of the context; ctx_sync() also logs it as a sync call. */
CUresult ctx_drain(struct CUctx_st *ctx);
CUresult ctx_sync(struct CUctx_st *ctx);
CUresult stream_sync(CUstream handle);
CUresult event_sync(struct CUevent_st *event);

/* book.c: the table of allocations. */
struct book_entry {
	u64 base;
	u64 size;
	u64 bytes;
	u32 device;
	enum vgpu_alloc api;
	bool registered; /* the memory belongs to the program */
	struct CUctx_st *ctx;
	void *owner; /* VMM: the handle mapped here */
};
CUresult book_alloc(enum vgpu_alloc api, u64 size, u64 *ret_ptr);
CUresult book_free(u64 ptr, bool host);
/* Memory of the program, which the device may access from now on. */
CUresult book_register(u64 ptr, u64 size);
CUresult book_unregister(u64 ptr);
/* Removes the allocations of the context. */
void book_drop(struct CUctx_st *ctx);
bool book_covers(u64 ptr, u64 size); /* true if the whole range is device memory */
bool book_add(struct book_entry *entry);
struct book_entry *book_find(u64 ptr);
void book_remove(struct book_entry *entry);
/* Take and return memory of the device, and log it. */
CUresult memory_take(u32 device, enum vgpu_alloc api, u64 bytes);
void memory_log(enum truth_kind kind, u32 device, enum vgpu_alloc api, u64 ptr, u64 bytes);
void memory_give(u32 device, enum vgpu_alloc api, u64 ptr, u64 bytes);
