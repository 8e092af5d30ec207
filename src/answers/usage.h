/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The answer to "how much of the GPU memory that PyTorch has reserved does it use": what its
 * allocator reported over some seconds, in parts of the same length.
 */
#include <stdbool.h>
#include <yyjson.h>
#include "abi/signals.h"
#include "abi/usage.h"
#include "base/macros.h"

struct usage_gpu {
	u32 gpu; /* number on this machine, or SNAPSHOT_GPU_UNKNOWN */
	u32 nr_parts;
	u64 nr_reports;
	struct usage_part parts[USAGE_PARTS];
	bool is_known[USAGE_PARTS]; /* nothing is known before the first report */
};

struct usage_report {
	u32 pid;
	u64 window_ns;
	u64 part_ns;
	u32 nr_gpus;
	struct usage_gpu gpus[GPU_MAX];
};

/* Reads the reply of zerneld. -EPROTO: it is not valid. */
int usage_read(yyjson_val *value, struct usage_report **ret);
struct usage_report *usage_free(struct usage_report *report);
DEFINE_CLEANUP(struct usage_report, usage_free);

/* Reserved memory that was not allocated at the moment when most was allocated. */
u64 usage_unused(const struct usage_part *part);
double usage_unused_percent(const struct usage_part *part);

#define USAGE_SENTENCE_LEN 512

/* What the time says about one GPU. */
void usage_sentence(const struct usage_gpu *gpu, char ret[static USAGE_SENTENCE_LEN]);

/* The whole report on one line. */
int usage_to_json(const struct usage_report *report, char **ret, size_t *ret_length);
