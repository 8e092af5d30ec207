/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot as series of the catalogue in abi/metrics.def, before any format. Every
 * format shows the same series with the same counts.
 */
#include "base/macros.h"
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

/* What is left out when there are too many series: the last first. */
enum metric_priority {
#define PRIORITY(id, ...) PRIORITY_##id,
#include "abi/metrics.def"
	PRIORITY_NR,
};

/* The families that dashboards already rely on are the first of the catalogue. */
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
extern const char *const metric_priority_names[PRIORITY_NR]; /* what has it, for people */
extern const char *const metric_unit_names[];		     /* empty for none */

/* Upper bounds of the classic buckets: powers of two of a second, the last is infinite. */
#define CLASSIC_BUCKET(...) +1
enum {
	CLASSIC_BUCKETS_NR = 1
#include "abi/metrics.def"
};
extern const double metric_bucket_bounds[CLASSIC_BUCKETS_NR];

/* The quantiles of a summary, in per mille. */
#define METRIC_QUANTILES_NR 2
extern const u32 metric_quantiles[METRIC_QUANTILES_NR];

/* All that can be in labels; each metric shows those of its row. */
struct metric_labels {
	const char *job;
	const struct snapshot_process *process;
	const char *uuid; /* of a GPU */
	const char *version;
	const char *kernel_release;
	const char *kind; /* operation, role, phase, class or reason */
	u32 gpu;
};

struct metric_series {
	enum metric metric;
	u32 unit; /* what it is about: series of one unit and priority are shown or left out
		     together */
	struct metric_labels labels;
	u64 value;		 /* of a gauge or counter, in what the unit is kept as */
	const struct hist *hist; /* of a summary or histogram */
	struct hist *owned;	 /* the same, when it is not the snapshot's */
};

/* Room for the decimal digits of a label. */
#define METRIC_NUMBER_LEN 16

/* By default; a summary or histogram is as many series as it has lines as text. */
#define METRICS_SERIES_MAX   400
/* Fewer than that cannot have something of every family that dashboards rely on. */
#define METRICS_SERIES_LEAST 100

/* In the order of the catalogue; of one metric, in the order of the snapshot. */
struct metrics {
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
 * The snapshot must outlive it. At most `series_max` series, by their priorities; of
 * processes the oldest come first, so that one that was shown stays until its end. Whatever
 * there is too much of, a family that dashboards rely on keeps its first series.
 */
int metrics_new(const struct snapshot *snapshot, u32 series_max, struct metrics **ret);
struct metrics *metrics_free(struct metrics *metrics);
DEFINE_CLEANUP(struct metrics, metrics_free);

/* `number` is room for it where need be. */
const char *metric_label_value(const struct metric_labels *labels, enum metric_label label,
			       char number[static METRIC_NUMBER_LEN]);

/* How many there are up to each bound; the last is all. */
void metric_classic_buckets(const struct hist *hist, u64 ret[static CLASSIC_BUCKETS_NR]);

/* A value in base units. */
double metric_value(enum metric_unit unit, u64 value);
