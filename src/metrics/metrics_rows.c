/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdio.h>
#include "metrics/metrics.h"

#define L(label) (1U << LABEL_##label)

const struct metric_row metric_rows[METRIC_NR] = {
#define METRIC(id, name, kind, unit, labels, priority, help)                                       \
	[METRIC_##id] = { name, KIND_##kind, UNIT_##unit, labels, PRIORITY_##priority, help },
#include "abi/metrics.def"
};

const char *const metric_label_names[LABEL_NR] = {
#define LABEL(id, name, help) [LABEL_##id] = name,
#include "abi/metrics.def"
};

const char *const metric_priority_names[PRIORITY_NR] = {
#define PRIORITY(id, help) [PRIORITY_##id] = help,
#include "abi/metrics.def"
};

const char *const metric_unit_names[] = {
	[UNIT_NONE] = "",
	[UNIT_BYTES] = "bytes",
	[UNIT_SECONDS] = "seconds",
	[UNIT_RATIO] = "ratio",
};

/* 2^n for n from -63 to 63, as a constant expression. */
#define POWER(n) ((n) < 0 ? 1.0 / (double)(1ULL << (-(n) & 63)) : (double)(1ULL << ((n) & 63)))

/* 2^(i/4), as a constant expression. */
#define QUARTER(i)                                                                                 \
	(POWER(((i) + 400) / 4 - 100) * (((i) & 3) == 0	  ? 1.0                                    \
					 : ((i) & 3) == 1 ? 1.18920711500272107                    \
					 : ((i) & 3) == 2 ? 1.41421356237309505                    \
							  : 1.68179283050742909))

#define CLASSIC_BUCKET(...) +1
enum {
	NR_FEW = 1
#include "abi/metrics.def"
};
#define DENSE_BUCKET(...) +1
enum {
	NR_DENSE = 1
#include "abi/metrics.def"
};
_Static_assert(NR_FEW <= CLASSIC_BUCKETS_MAX && NR_DENSE <= CLASSIC_BUCKETS_MAX, "see metrics.h");

/* There are four slots per power of two. */
const struct metric_buckets metric_buckets[2] = {
	{
		.nr = NR_FEW,
		.slots = {
#define CLASSIC_BUCKET(n) 4 * (n) + HIST_SCHEMA_OFFSET,
#include "abi/metrics.def"
			HIST_OVERFLOW,
		},
		.bounds = {
#define CLASSIC_BUCKET(n) POWER(n),
#include "abi/metrics.def"
			INFINITY,
		},
	},
	{
		.nr = NR_DENSE,
		.slots = {
#define DENSE_BUCKET(i) (i) + HIST_SCHEMA_OFFSET,
#include "abi/metrics.def"
			HIST_OVERFLOW,
		},
		.bounds = {
#define DENSE_BUCKET(i) QUARTER(i),
#include "abi/metrics.def"
			INFINITY,
		},
	},
};

const u32 metric_quantiles[METRIC_QUANTILES_NR] = { 500, 990 };

const char *metric_label_value(const struct metric_labels *labels, enum metric_label label,
			       char number[static METRIC_NUMBER_LEN])
{
	switch (label) {
	case LABEL_JOB_NAME: return labels->job;
	case LABEL_RANK:
		if (!labels->has_rank)
			return "";
		snprintf(number, METRIC_NUMBER_LEN, "%d", labels->rank);
		return number;
	case LABEL_PID: snprintf(number, METRIC_NUMBER_LEN, "%u", labels->pid); return number;
	case LABEL_CGROUP: return labels->info->cgroup;
	case LABEL_NAMESPACE: return labels->info->names.namespace;
	case LABEL_POD: return labels->info->names.pod;
	case LABEL_CONTAINER: return labels->info->names.container_name;
	case LABEL_CLAIMED_NAME: return labels->info->names.claimed_name;
	case LABEL_CLAIMED_ACCOUNT: return labels->info->names.claimed_account;
	case LABEL_USER:
		if (labels->info->uid == SNAPSHOT_UID_UNKNOWN)
			return "";
		snprintf(number, METRIC_NUMBER_LEN, "%s", user_name(labels->info->uid).text);
		return number;
	case LABEL_UUID: return labels->uuid;
	case LABEL_MODEL: return labels->model;
	case LABEL_VERSION: return labels->version;
	case LABEL_KERNEL_RELEASE: return labels->kernel_release;
	case LABEL_GPU_ID:
		if (labels->gpu == SNAPSHOT_GPU_UNKNOWN)
			return "unknown";
		__attribute__((fallthrough));
	case LABEL_GPU: snprintf(number, METRIC_NUMBER_LEN, "%u", labels->gpu); return number;
	default: return labels->kind;
	}
}

/*
 * All formats use the sum of the buckets instead of hist->count. The kernel updates both
 * while they are read, and the parts of one histogram must be consistent.
 */
void metric_classic_counts(const struct metric_buckets *buckets, const struct hist *hist,
			   u64 ret[static CLASSIC_BUCKETS_MAX])
{
	u64 total = 0;
	u32 slot = 0;

	for (u32 i = 0; i < buckets->nr; i++) {
		for (; slot <= buckets->slots[i]; slot++)
			total += hist->buckets[slot];
		ret[i] = total;
	}
}

u64 metric_count(const struct hist *hist)
{
	u64 total = 0;

	for (u32 slot = 0; slot < HIST_SLOTS; slot++)
		total += hist->buckets[slot];
	return total;
}

double metric_value(enum metric_unit unit, u64 value)
{
	switch (unit) {
	case UNIT_SECONDS: return (double)value / (double)NSEC_PER_SEC;
	case UNIT_RATIO: return (double)value / 100.0;
	default: return (double)value;
	}
}
