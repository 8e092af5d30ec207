/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared only by the kernel*.c files. */
#include "abi/feature.h"
#include "base/sched_ext.h"
#include "collect/kernel.h"
#include "core/tenant.h"
#include "zernel.skel.h"

/* One link for all calls of a kind, or one for each call on kernels without multi-uprobe links. */
struct call_links {
	struct bpf_link *all;
	int *each; /* descriptors */
	u32 nr;
};

/* The links of one library: for each kind of call, its entry and its return. */
struct library_links {
	struct call_links enter[CALL_KIND_NR];
	struct call_links leave[CALL_KIND_NR];
	int session[CALL_KIND_NR]; /* both, decided at the entry: descriptor plus 1, or 0 for none
				    */
};

#define THREAD_PROGRAMS_NR 8
#define PROCESS_MAPS_NR	   7

/* A process with entries in maps. */
struct listed_process {
	struct process_key key;
	u64 group; /* its tenants: core/tenant.h */
	u32 uid;
	u32 lives;
	s32 nr[TENANT_TABLE_NR]; /* its entries in the tables */
};

struct process_list {
	struct listed_process *items;
	u32 nr;
	u32 capacity;
};

/* See kernel_lines.c. */
struct kernel_sampling {
	int *events; /* one for each CPU that was online */
	u32 *random; /* for each of them */
	u32 nr_events;
	u32 nr_wanted; /* processes */
	struct bpf_link *link;
};

struct kernel {
	struct zernel_bpf *skel;
	struct kernel_sampling sampling;
	struct bpf_link *scheduler;
	struct opener *opener; /* NULL: the kernel has multi-uprobe links */
	struct library_links libraries[LIBRARY_MAX];
	struct bpf_link *threads[THREAD_PROGRAMS_NR];
	struct bpf_link *learn_exec;
	struct bpf_link *device_opened;
	struct bpf_link *device_exec;
	struct ring_buffer *observations;
	kernel_observation_fn on_observation;
	void *observation_ctx;
	struct ring_buffer *events;
	kernel_event_fn on_event;
	void *event_ctx;
	bool loaders_wanted;	  /* a process has its first launcher */
	struct process_list gone; /* exited processes whose map entries are to be deleted */
	u32 lacks;		  /* a bit for each enum feature that is left out */
	u32 refused;		  /* those of them whose programs the kernel refused */
	struct sched_ext_gap scheduler_gap; /* the reason without FEATURE_SCHEDULER */
	u32 session_type; /* attach type of session programs (entry and return); 0: not supported */
	u64 nr_torn;	  /* reads of a process that changed during each of them */
	u64 swept_ns;
	u64 swept_drops;
};

static inline bool kernel_has(const struct kernel *kernel, u32 feature)
{
	return feature >= FEATURE_NR || !(kernel->lacks & (1U << feature));
}

int kernel_load(struct kernel *kernel, kernel_log_fn log);

/* Returns a descriptor; reading it runs the program on tasks or files. */
int kernel_open_iterator(const struct bpf_program *prog, const struct bpf_iter_attach_opts *opts);

/* In kernel_opener.c. Call opener_new() before capabilities are dropped. */
int opener_new(struct opener **ret);
struct opener *opener_free(struct opener *opener);
/* Returns the descriptor of a perf event: a probe at an offset of a file. */
int opener_open(struct opener *opener, int file, unsigned long offset, bool returns);

void kernel_open_lines(struct kernel *kernel);
void kernel_close_lines(struct kernel *kernel);
void kernel_close_probes(struct kernel *kernel);
void kernel_close_signals(struct kernel *kernel);
void kernel_close_learning(struct kernel *kernel);
void kernel_close_devices(struct kernel *kernel);
/* Corrects the counts of all tenants. The list has the live processes with their tenants. */
void kernel_recount_tenants(struct kernel *kernel, const struct kernel_snapshot *snapshot,
			    const struct process_list *list);
/* The entries of a process that ended are deleted. */
void kernel_release_entries(struct kernel *kernel, const struct listed_process *process);
int kernel_look_at_files(struct kernel *kernel, pid_t pid);
/* Takes a snapshot without a sweep. */
int kernel_snapshot_take(struct kernel *kernel, struct kernel_snapshot *ret);
bool kernel_sweep_is_due(const struct kernel *kernel);
u32 kernel_nr_groups(const struct kernel *kernel);
int kernel_sweep_groups(struct kernel *kernel);
/* Two steps, because forgetting walks the maps: one walk for all exits that are read together. */
int kernel_note_gone(struct kernel *kernel, const struct process_state *process);
void kernel_forget_gone(struct kernel *kernel);
