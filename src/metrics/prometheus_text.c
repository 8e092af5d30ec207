/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "metrics/prometheus_internal.h"

/* An additional label, or none when `name` is NULL. */
struct extra_label {
	const char *name;
	const char *value;
};

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '\\': fputs("\\\\", out); break;
		case '"': fputs("\\\"", out); break;
		case '\n': fputs("\\n", out); break;
		default: fputc(*text, out);
		}
	}
}

static void put_label(FILE *out, const char *name, const char *value, char *separator)
{
	fprintf(out, "%c%s=\"", *separator, name);
	put_escaped(out, value);
	fputc('"', out);
	*separator = ',';
}

/* Writes the name and the labels, up to the value. */
static void put_name(FILE *out, const struct metric_series *series, const char *suffix,
		     struct extra_label extra)
{
	const struct metric_row *row = &metric_rows[series->metric];
	char number[METRIC_NUMBER_LEN], separator = '{';

	fprintf(out, "%s%s", row->name, suffix);
	for (u32 label = 0; label < LABEL_NR; label++)
		if (row->labels & 1U << label)
			put_label(out, metric_label_names[label],
				  metric_label_value(&series->labels, label, number), &separator);
	if (extra.name)
		put_label(out, extra.name, extra.value, &separator);
	fputs(separator == ',' ? "} " : " ", out);
}

/* Writes the exact decimal value of the integer, without rounding. */
static void put_value(FILE *out, enum metric_unit unit, u64 value)
{
	static const struct {
		u64 one;
		int nr_digits;
	} scales[] = {
		[UNIT_NONE] = { 1, 0 },
		[UNIT_BYTES] = { 1, 0 },
		[UNIT_SECONDS] = { NSEC_PER_SEC, 9 },
		[UNIT_RATIO] = { 100, 2 },
	};
	u64 rest = value % scales[unit].one;
	int nr_digits = scales[unit].nr_digits;

	fprintf(out, "%llu", value / scales[unit].one);
	for (; rest && rest % 10 == 0; rest /= 10)
		nr_digits--;
	if (rest)
		fprintf(out, ".%0*llu", nr_digits, rest);
	fputc('\n', out);
}

static void put_sum_and_count(FILE *out, const struct metric_series *series)
{
	put_name(out, series, "_sum", (struct extra_label){});
	put_value(out, UNIT_SECONDS, series->hist->sum);
	put_name(out, series, "_count", (struct extra_label){});
	put_value(out, UNIT_NONE, metric_count(series->hist));
}

static void put_summary(FILE *out, const struct metric_series *series)
{
	char quantile[METRIC_NUMBER_LEN];

	for (u32 i = 0; i < METRIC_QUANTILES_NR; i++) {
		snprintf(quantile, sizeof(quantile), "%g", metric_quantiles[i] / 1000.0);
		put_name(out, series, "", (struct extra_label){ "quantile", quantile });
		put_value(out, UNIT_SECONDS, hist_quantile(series->hist, metric_quantiles[i]));
	}
	put_sum_and_count(out, series);
}

/*
 * Writes a bound as OpenMetrics requires, in both formats: a bucket must be the same series
 * in both.
 */
static void bound_text(double bound, char text[static 32])
{
	if (isinf(bound)) {
		strcpy(text, "+Inf");
		return;
	}
	snprintf(text, 30, "%.17g", bound);
	if (!strpbrk(text, ".e"))
		strcat(text, ".0");
}

static void put_histogram(FILE *out, const struct metric_buckets *buckets,
			  const struct metric_series *series)
{
	u64 counts[CLASSIC_BUCKETS_MAX];
	char bound[32];

	metric_classic_counts(buckets, series->hist, counts);
	for (u32 i = 0; i < buckets->nr; i++) {
		bound_text(buckets->bounds[i], bound);
		put_name(out, series, "_bucket", (struct extra_label){ "le", bound });
		put_value(out, UNIT_NONE, counts[i]);
	}
	put_sum_and_count(out, series);
}

/* In OpenMetrics, the family name of a counter has no suffix _total. */
static void put_header(FILE *out, const struct metric_row *row, bool openmetrics)
{
	static const char *const kinds[] = {
		[KIND_GAUGE] = "gauge",
		[KIND_COUNTER] = "counter",
		[KIND_SUMMARY] = "summary",
		[KIND_HISTOGRAM] = "histogram",
	};
	size_t length = strlen(row->name);

	if (openmetrics && row->kind == KIND_COUNTER)
		length -= strlen("_total");
	fprintf(out, "# HELP %.*s %s\n", (int)length, row->name, row->help);
	fprintf(out, "# TYPE %.*s %s\n", (int)length, row->name, kinds[row->kind]);
	if (openmetrics && row->unit != UNIT_NONE)
		fprintf(out, "# UNIT %.*s %s\n", (int)length, row->name,
			metric_unit_names[row->unit]);
}

static void put_series(FILE *out, const struct metrics *metrics, const struct metric_series *series)
{
	const struct metric_row *row = &metric_rows[series->metric];

	switch (row->kind) {
	case KIND_SUMMARY: put_summary(out, series); break;
	case KIND_HISTOGRAM: put_histogram(out, metrics->buckets, series); break;
	default:
		put_name(out, series, "", (struct extra_label){});
		put_value(out, row->unit, series->value);
	}
}

int prometheus_text(const struct metrics *metrics, bool openmetrics, char **ret, size_t *ret_len)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0, i = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return -ENOMEM;
	/* A family without series still has its header. */
	for (u32 metric = 0; metric < METRIC_NR; metric++) {
		size_t end = metrics_family_end(metrics, metric, i);

		put_header(out, &metric_rows[metric], openmetrics);
		for (; i < end; i++)
			put_series(out, metrics, &metrics->series[i]);
	}
	if (openmetrics)
		fputs("# EOF\n", out);
	if (fclose(out) != 0)
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	*ret_len = length;
	return 0;
}
