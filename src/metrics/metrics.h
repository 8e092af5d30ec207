/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Converts a snapshot to the series of abi/metrics.def, independent of a format. Every
 * format has the same series with the same counts.
 */
#include "base/macros.h"
#include "base/user.h"
#include "core/snapshot.h"

enum metric {
#define METRIC(id, ...) METRIC_##id,
#include "abi/metrics.def"
	METRIC_NR,
};

enum metric_label {
#define LABEL(id, ...) LABEL_##id,
#include "abi/metrics.def"
	LABEL_NR,
};

enum metric_kind {
	KIND_GAUGE,
	KIND_COUNTER,
	KIND_SUMMARY,
	KIND_HISTOGRAM,
};

enum metric_unit {
	UNIT_NONE,
	UNIT_BYTES,
	UNIT_SECONDS, /* values are nanoseconds */
	UNIT_RATIO,   /* values are per cent */
};

/* When there are too many series, those of the last priority are left out first. */
enum metric_priority {
#define PRIORITY(id, ...) PRIORITY_##id,
#include "abi/metrics.def"
	PRIORITY_NR,
};

/* The families that existing dashboards use are the first rows of abi/metrics.def. */
#define METRIC_LEGACY_NR (METRIC_DIST_SYNC_WAIT + 1)

struct metric_row {
	const char *name;
	enum metric_kind kind;
	enum metric_unit unit;
	u32 labels; /* a bit for each enum metric_label */
	enum metric_priority priority;
	const char *help;
};
extern const struct metric_row metric_rows[METRIC_NR];
extern const char *const metric_label_names[LABEL_NR];
extern const char *const metric_priority_names[PRIORITY_NR]; /* the series that have it, as text */
extern const char *const metric_unit_names[];		     /* empty for UNIT_NONE */

/* The most classic buckets of a histogram, with the last one, which has no upper bound. */
#define CLASSIC_BUCKETS_MAX 64

/* Classic buckets: the last slot of each one, and its upper bound in seconds. */
struct metric_buckets {
	u32 nr;
	u32 slots[CLASSIC_BUCKETS_MAX];
	double bounds[CLASSIC_BUCKETS_MAX];
};
/* The few buckets of abi/metrics.def, and dense ones: eight in each power of ten. */
extern const struct metric_buckets metric_buckets[2];

/* The quantiles of a summary, in per mille. */
#define METRIC_QUANTILES_NR 2
extern const u32 metric_quantiles[METRIC_QUANTILES_NR];

/* The values of all labels; each metric uses the labels of its row. */
struct metric_labels {
	const char *job;
	const struct snapshot_job *info; /* for the labels of zernel_job_info */
	const char *uuid;		 /* of a GPU */
	const char *model;
	const char *version;
	const char *kernel_release;
	const char *kind; /* operation, role, phase, cause, class or reason */
	u32 gpu;
	u32 pid;
	bool has_rank;
	s32 rank;
};

struct metric_series {
	enum metric metric;
	u32 unit; /* its series of one priority are shown or left out together */
	struct metric_labels labels;
	u64 value;		 /* of a gauge or counter, in the internal form of the unit */
	const struct hist *hist; /* of a summary or histogram */
	struct hist *owned;	 /* the same pointer when `hist` is not part of the snapshot */
};

/* Buffer size for a label value that is not in the snapshot: a decimal number or the name of a
 * user. */
#define METRIC_NUMBER_LEN USER_NAME_LEN

/* The default limit. A summary or histogram counts as one series per line of its text form. */
#define METRICS_SERIES_MAX   400
/* The smallest limit that has room for a series of every family that dashboards use. */
#define METRICS_SERIES_LEAST 100

/* What an operator can choose. */
struct metrics_config {
	u32 series_max;
	bool without_legacy; /* without the families that existing dashboards use */
	bool dense_buckets;
};

/* Series in the order of abi/metrics.def; series of one metric in the order of the snapshot. */
struct metrics {
	struct metrics_config config;
	const struct metric_buckets *buckets;
	struct metric_series *series;
	size_t nr;
	size_t nr_allocated;
	u32 nr_units;
	u32 nr_counted; /* series as Prometheus counts them */
	u32 nr_left_out;
	u32 nr_left_out_of[METRIC_NR];
	bool failed; /* out of memory */
};

/*
 * The snapshot must outlive the result. The result has at most config->series_max series, chosen
 * by priority. The oldest processes come first, so that a process that is shown stays until
 * it exits. Each family that dashboards use keeps its first series in any case.
 */
int metrics_new(const struct snapshot *snapshot, const struct metrics_config *config,
		struct metrics **ret);
struct metrics *metrics_free(struct metrics *metrics);
DEFINE_CLEANUP(struct metrics, metrics_free);

/* `number` is a buffer for values that are numbers. */
const char *metric_label_value(const struct metric_labels *labels, enum metric_label label,
			       char number[static METRIC_NUMBER_LEN]);

/* The count up to each bound; the last one is the total. */
void metric_classic_counts(const struct metric_buckets *buckets, const struct hist *hist,
			   u64 ret[static CLASSIC_BUCKETS_MAX]);
/* All values of a histogram. */
u64 metric_count(const struct hist *hist);

/* A value in base units. */
double metric_value(enum metric_unit unit, u64 value);
