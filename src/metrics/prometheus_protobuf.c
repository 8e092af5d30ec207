/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes families as Prometheus protobuf messages, each with its length in front. A
 * histogram has native buckets, which map one to one to the buckets of struct hist, and
 * classic buckets for scrapers without native histograms.
 */
#include <errno.h>
#include <pb_encode.h>
#include <stdio.h>
#include "base/cleanup.h"
#include "metrics/metrics.pb.h"
#include "metrics/prometheus_internal.h"

/*
 * Width of the zero bucket, which marks a native histogram: 2^-128, as the Prometheus
 * clients use.
 */
#define ZERO_THRESHOLD 0x1p-128

/* The data that the message of one series points to. */
struct cell {
	Number number;
	Summary summary;
	Histogram histogram;
	LabelPair labels[LABEL_NR];
	char numbers[LABEL_NR][METRIC_NUMBER_LEN];
	Quantile quantiles[METRIC_QUANTILES_NR];
	Bucket buckets[CLASSIC_BUCKETS_MAX];
	BucketSpan spans[HIST_SLOTS / 2];
	int64_t deltas[HIST_SLOTS];
};

static void fill_labels(Metric *metric, struct cell *cell, const struct metric_series *series)
{
	u32 wanted = metric_rows[series->metric].labels, nr = 0;

	for (u32 label = 0; label < LABEL_NR; label++) {
		if (!(wanted & 1U << label))
			continue;
		/* The messages are used for decoding too, so their pointers are not const. */
		cell->labels[nr].name = (char *)metric_label_names[label];
		cell->labels[nr].value =
			(char *)metric_label_value(&series->labels, label, cell->numbers[nr]);
		nr++;
	}
	metric->label = cell->labels;
	metric->label_count = (pb_size_t)nr;
}

static void fill_summary(Metric *metric, struct cell *cell, const struct metric_series *series)
{
	for (u32 i = 0; i < METRIC_QUANTILES_NR; i++) {
		u64 value = hist_quantile(series->hist, metric_quantiles[i]);

		cell->quantiles[i] = (Quantile){ metric_quantiles[i] / 1000.0,
						 metric_value(UNIT_SECONDS, value) };
	}
	cell->summary = (Summary){
		.sample_count = metric_count(series->hist),
		.sample_sum = metric_value(UNIT_SECONDS, series->hist->sum),
		.quantile = cell->quantiles,
		.quantile_count = METRIC_QUANTILES_NR,
	};
	metric->summary = &cell->summary;
}

/*
 * Writes the spans of non-empty buckets, and the difference of each bucket to the previous
 * one. Values above the last bound are counted in the first bucket after it.
 */
static void fill_native(Histogram *histogram, struct cell *cell, const struct hist *hist)
{
	BucketSpan *span = NULL;
	s32 next = 0;
	u64 before = 0;
	u32 nr = 0;

	for (u32 slot = 1; slot < HIST_SLOTS; slot++) {
		s32 index = (s32)slot - HIST_SCHEMA_OFFSET;

		if (!hist->buckets[slot])
			continue;
		if (!span || index != next) {
			span = span ? span + 1 : cell->spans;
			*span = (BucketSpan){ .offset = index - next };
		}
		span->length++;
		cell->deltas[nr++] = (int64_t)(hist->buckets[slot] - before);
		before = hist->buckets[slot];
		next = index + 1;
	}
	histogram->positive_span = cell->spans;
	histogram->positive_span_count = (pb_size_t)(span ? span - cell->spans + 1 : 0);
	histogram->positive_delta = cell->deltas;
	histogram->positive_delta_count = (pb_size_t)nr;
}

static void fill_histogram(Metric *metric, struct cell *cell, const struct metric_buckets *buckets,
			   const struct metric_series *series)
{
	u64 counts[CLASSIC_BUCKETS_MAX];

	metric_classic_counts(buckets, series->hist, counts);
	for (u32 i = 0; i < buckets->nr; i++)
		cell->buckets[i] = (Bucket){ counts[i], buckets->bounds[i] };
	cell->histogram = (Histogram){
		.sample_count = counts[buckets->nr - 1],
		.sample_sum = metric_value(UNIT_SECONDS, series->hist->sum),
		.bucket = cell->buckets,
		.bucket_count = (pb_size_t)buckets->nr,
		.schema = HIST_SCHEMA,
		.zero_threshold = ZERO_THRESHOLD,
		.zero_count = series->hist->buckets[0],
	};
	fill_native(&cell->histogram, cell, series->hist);
	metric->histogram = &cell->histogram;
}

static void fill(Metric *metric, struct cell *cell, const struct metric_buckets *buckets,
		 const struct metric_series *series)
{
	const struct metric_row *row = &metric_rows[series->metric];

	fill_labels(metric, cell, series);
	cell->number.value = metric_value(row->unit, series->value);
	switch (row->kind) {
	case KIND_GAUGE: metric->gauge = &cell->number; break;
	case KIND_COUNTER: metric->counter = &cell->number; break;
	case KIND_SUMMARY: fill_summary(metric, cell, series); break;
	case KIND_HISTOGRAM: fill_histogram(metric, cell, buckets, series); break;
	}
}

static int put_family(pb_ostream_t *out, const struct metric_buckets *buckets,
		      const struct metric_row *row, const struct metric_series *series, size_t nr)
{
	static const MetricType types[] = {
		[KIND_GAUGE] = MetricType_GAUGE,
		[KIND_COUNTER] = MetricType_COUNTER,
		[KIND_SUMMARY] = MetricType_SUMMARY,
		[KIND_HISTOGRAM] = MetricType_HISTOGRAM,
	};
	CLEANUP_FREE Metric *metrics = calloc(nr + 1, sizeof(*metrics));
	CLEANUP_FREE struct cell *cells = calloc(nr + 1, sizeof(*cells));
	MetricFamily family = {
		.name = (char *)row->name,
		.help = (char *)row->help,
		.type = types[row->kind],
		.metric = metrics,
		.metric_count = (pb_size_t)nr,
		.unit = row->unit == UNIT_NONE ? NULL : (char *)metric_unit_names[row->unit],
	};

	if (!metrics || !cells)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		fill(&metrics[i], &cells[i], buckets, &series[i]);
	return pb_encode_delimited(out, MetricFamily_fields, &family) ? 0 : -ENOMEM;
}

static bool put_bytes(pb_ostream_t *stream, const pb_byte_t *bytes, size_t nr)
{
	return fwrite(bytes, 1, nr, stream->state) == nr;
}

int prometheus_protobuf(const struct metrics *metrics, char **ret, size_t *ret_len)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0, i = 0;
	FILE *file = open_memstream(&text, &length);
	pb_ostream_t out = { .callback = put_bytes, .state = file, .max_size = SIZE_MAX };
	int err = file ? 0 : -ENOMEM;

	for (u32 metric = 0; err == 0 && metric < METRIC_NR; metric++) {
		size_t end = metrics_family_end(metrics, metric, i);

		err = put_family(&out, metrics->buckets, &metric_rows[metric], &metrics->series[i],
				 end - i);
		i = end;
	}
	if (file && fclose(file) != 0)
		err = -ENOMEM;
	if (err < 0)
		return err;
	*ret = TAKE_PTR(text);
	*ret_len = length;
	return 0;
}
