/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The answer to "who holds the memory of a GPU, and why was there not enough". It depends only on
 * one snapshot. The memory of a process is what it has got from the driver by the calls that Zernel
 * follows: PyTorch calls this reserved. What PyTorch has allocated of it is known from its own
 * report of an out-of-memory error. The stack of an error is not in the snapshot: the caller adds
 * it.
 */
#include <stddef.h>
#include <yyjson.h>
#include "answers/lines.h"
#include "base/cleanup.h"
#include "core/snapshot.h"

/* A process on a GPU. */
struct memory_holder {
	const struct snapshot_process *process;
	const struct snapshot_memory *memory;
};

/* A process with an error. */
struct memory_oom {
	const struct snapshot_process *process;
	const struct lines_stack *stack; /* of the thread that asked; NULL: not known */
};

struct memory_report {
	const struct snapshot *snapshot;
	struct memory_holder *holders; /* by GPU, then by bytes, largest first */
	struct memory_oom *ooms;       /* the latest first */
	u32 nr_holders;
	u32 nr_ooms;
};

/* `who` is an operand as in choose.h, or NULL. The snapshot must outlive the report. */
int memory_new(const struct snapshot *snapshot, const char *who, struct memory_report **ret);
struct memory_report *memory_free(struct memory_report *report);
DEFINE_CLEANUP(struct memory_report, memory_free);

/* The GPU with this number, or NULL. */
const struct snapshot_gpu *memory_gpu(const struct snapshot *snapshot, u32 gpu);

/* Reserved memory that the allocator had not given out. */
u64 memory_unused(const struct snapshot_oom *oom);

#define MEMORY_SENTENCE_LEN 1024

/* What an error says about its cause. */
void memory_oom_sentence(const struct snapshot_process *process,
			 char ret[static MEMORY_SENTENCE_LEN]);

/* Adds the member `oom` of a process with an error. */
void memory_oom_to_json(const struct snapshot_process *process, yyjson_mut_doc *doc,
			yyjson_mut_val *object);
/* The whole report on one line. */
int memory_to_json(const struct memory_report *report, char **ret, size_t *ret_length);
