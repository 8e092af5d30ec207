/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The files with traced calls, and the processes that use them. A file is attached when the
 * first process maps it and detached some time after the last such process has exited, regardless
 * of the number of processes, containers or names. Executables are included when the CUDA
 * runtime is linked into them.
 *
 * Some calls are probed only while they are needed: library_extra(). A launch of the CUDA runtime
 * is also a launch of its driver, and one probe is enough: the launches of a runtime are probed
 * only while a process maps it without a probed driver. Reports of PyTorch's allocator are probed
 * only while a client asks for a process.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "abi/runtime.h"
#include "base/macros.h"
#include "collect/library_scan.h"

/*
 * Maximum number of attached files, and of processes that use them; tenant.h has the caps of a
 * user. A node with 110 pods, the most that Kubernetes starts by default, each with an image of its
 * own, has four or five files for each. The limit of open files may allow fewer.
 */
#define LIBRARY_MAX	      512
#define LIBRARY_PROCESS_MAX   4096
#define LIBRARY_PATH_BYTES    32
#define LIBRARY_STEPPED_BYTES 256
/*
 * A library without users stays attached for this long. On a busy machine, a detach and the next
 * attach take seconds, and a job that is started again would not be seen meanwhile. The same holds
 * for the probe on an allocator.
 */
#define LIBRARY_KEEP_NS	      (10 * NSEC_PER_SEC)

/* A result of struct library_ops: library_set_done() reports the end of the operation. */
#define LIBRARY_LATER 1

/* An operation is under way in each state but LIBRARY_NEW and LIBRARY_ATTACHED. */
enum library_state {
	LIBRARY_NEW, /* until the end of the scan that found it */
	LIBRARY_ATTACHING,
	LIBRARY_ATTACHED,
	LIBRARY_CHANGING, /* its extra calls are attached or detached */
	LIBRARY_DETACHING,
};

struct library {
	struct library_id id;
	u32 slot;   /* below LIBRARY_MAX, unique while the library is attached */
	u32 nr_fds; /* the most that it needs: the file and the probes */
	enum runtime runtime;
	struct tenant owner; /* of the process that first mapped it */
	bool is_executable;
	char name[LIBRARY_NAME_BYTES]; /* the file name in one of the processes, for messages */
	char path[LIBRARY_PATH_BYTES]; /* the path to attach to: that of `fd` */
	struct library_probes probes;
	bool has_extra; /* the calls of library_extra() are probed */
	int fd;		/* the file; it stays open, because probes use the file too */
	enum library_state state;
	u64 unused_ns;	  /* when it was first seen without users; 0: it has users */
	u64 unwatched_ns; /* the same for library_set_want_usage() */
};

/*
 * The first three can take seconds. They can return LIBRARY_LATER and continue in another thread:
 * the library does not change until library_set_done(). They must take effect in the order in
 * which they are called.
 */
struct library_ops {
	/* Negative: the attach failed. The next scan tries again. */
	int (*attach)(void *ctx, const struct library *library);
	int (*detach)(void *ctx, const struct library *library);
	/* The most descriptors that attach() opens. */
	u32 (*nr_fds)(void *ctx, const struct library_probes *probes);
	/* library->has_extra has changed. Negative: it failed; tried again later. */
	int (*set_extra)(void *ctx, const struct library *library);
	/*
	 * Called when a process maps a collective library or its buffers, and when it no
	 * longer has them mapped.
	 */
	void (*collective)(void *ctx, int pidfd, bool is_mapped);
	/* Whether the process has opened a GPU. Called until it has. */
	bool (*holds_gpu)(void *ctx, pid_t pid, int pidfd);
	/*
	 * Scans a process, or all processes, in another process: library_set_begin(). NULL: the set
	 * scans by itself, at once.
	 */
	void (*scan)(void *ctx, pid_t pid, enum library_scan_kind kind);
	void (*scan_all)(void *ctx);
	/* Called when a program has first mapped a library of PyTorch. May be NULL. */
	void (*torch)(void *ctx, pid_t pid);
	/*
	 * Called for a child of a process of which library_set_know_torch() was told: what is known
	 * holds for the child too. Negative: torch() is called for the child. May be NULL.
	 */
	int (*torch_inherited)(void *ctx, int parent, int child);
};

/* The kind of the calls that are probed only while they are needed; CALL_KIND_NR: none. */
u32 library_extra(enum runtime runtime);

struct library_counts {
	u32 nr_libraries; /* attached; neither nr_libraries nor nr_probes contains pending ones */
	u32 nr_processes;
	u64 nr_probes;
	u64 nr_examined;	 /* files that were searched for calls */
	u64 nr_libraries_excess; /* did not fit or exceeded a cap; counted at every scan */
	u64 nr_processes_excess;
	u64 nr_unreadable; /* could not be opened or read, or was replaced and is not accessible */
	u64 nr_attach_failed;
	u64 nr_symbols_dropped;
	u64 nr_stepped;			     /* probes that are single-stepped */
	char stepped[LIBRARY_STEPPED_BYTES]; /* the first of them, separated by ", " */
};

struct library_set;

/* `proc` is normally "/proc"; `ops` must outlive the set. */
int library_set_new(const char *proc, const struct library_ops *ops, void *ctx,
		    struct library_set **ret);
/* Detaches all libraries. No operation may be under way, and detach() must not return LATER. */
struct library_set *library_set_free(struct library_set *set);
DEFINE_CLEANUP(struct library_set, library_set_free);

/*
 * Call it when an operation that returned LIBRARY_LATER has ended, with its result, and not from a
 * function of struct library_ops.
 */
void library_set_done(struct library_set *set, u32 slot, int err);

/*
 * The results of a scan, from another process: begin() with a pidfd that the caller opened before
 * the scan and closes after scanned(), then found() for each file.
 */
int library_open_process(pid_t pid); /* a pidfd; -ESRCH: it does not exist */
void library_set_begin(struct library_set *set, pid_t pid, int pidfd);
void library_set_found(struct library_set *set, const struct library_found *found, int fd);
void library_set_scanned(struct library_set *set, const struct library_scanned *scanned);

/*
 * Updates the set with the current mappings of a process. Call it when the process mapped a
 * file that library_runtime_of() knows, or to verify. -ESRCH: the process does not exist
 * and is removed from the set.
 */
int library_set_scan_process(struct library_set *set, pid_t pid);

/*
 * Call it after a process executed a program. Libraries are mapped later, each with its own
 * event. A process that used no library is therefore not scanned when its executable is
 * known to have no traced calls.
 */
int library_set_exec_process(struct library_set *set, pid_t pid);

/*
 * The buffers of a collective library are mapped without an event, and an open GPU can be
 * inherited without one. This function scans the processes without them again, first after a
 * second and then at growing intervals. Call it often.
 */
void library_set_look_again(struct library_set *set, u64 now_ns);

/*
 * Detaches the libraries that had no users for LIBRARY_KEEP_NS, and the probes on allocators that
 * no client wanted for so long. Call it often.
 */
void library_set_drop_unused(struct library_set *set, u64 now_ns);

/* Updates the set with all processes and removes the ones that exited. */
int library_set_scan_all(struct library_set *set);

/* A new process inherits the mappings of its parent without an event. */
int library_set_fork_process(struct library_set *set, pid_t parent, pid_t child);

/* Scans of the program that the process runs need not call ops->torch() any more. */
void library_set_know_torch(struct library_set *set, pid_t pid);

/*
 * Whether the reports of PyTorch's allocator in a process are wanted. -ENOENT: the process is not
 * known to use PyTorch, which matters only if they are.
 */
int library_set_want_usage(struct library_set *set, pid_t pid, bool wanted);
/*
 * Whether they are probed; that can take seconds. -EIO: the kernel refuses, or they are not wanted.
 * -ENODATA: this PyTorch makes no reports that are known. -ENOENT: as above.
 */
int library_set_has_usage(const struct library_set *set, pid_t pid);

/* Whether a process is known to use a library of the set. */
bool library_set_has_process(const struct library_set *set, pid_t pid);

void library_set_forget_process(struct library_set *set, pid_t pid);

struct library_counts library_set_count(const struct library_set *set);
u32 library_set_nr_processes(const struct library_set *set);

/* The library in a slot, or NULL. */
const struct library *library_set_at(const struct library_set *set, u32 slot);
