/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints docs/METRICS.md from the catalogue. Not installed. */
#include <math.h>
#include <stdio.h>
#include "metrics/metrics.h"

static const char *const kind_names[] = {
	[KIND_GAUGE] = "gauge",
	[KIND_COUNTER] = "counter",
	[KIND_SUMMARY] = "summary",
	[KIND_HISTOGRAM] = "histogram",
};

static void print_metrics(void)
{
	puts("| metric | kind | labels | meaning |\n|---|---|---|---|");
	for (u32 i = 0; i < METRIC_NR; i++) {
		const struct metric_row *row = &metric_rows[i];
		const char *separator = "";

		printf("| `%s` | %s | ", row->name, kind_names[row->kind]);
		for (u32 label = 0; label < LABEL_NR; label++) {
			if (!(row->labels & 1U << label))
				continue;
			printf("%s%s", separator, metric_label_names[label]);
			separator = ", ";
		}
		printf(" | %s |\n", row->help);
	}
}

static void print_labels(void)
{
	puts("\n| label | meaning |\n|---|---|");
#define LABEL(id, name, help) printf("| `%s` | %s |\n", name, help);
#include "abi/metrics.def"
}

int main(void)
{
	puts("<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"
	     "# Metrics\n");
	printf("What `/metrics` shows, in base units. All series of a node together are at most "
	       "%d:\n"
	       "what is more is left out, whole processes at a time and the youngest first, and\n"
	       "`zernel_series_left_out` says how much.\n\n",
	       METRICS_SERIES_MAX);
	print_metrics();
	print_labels();
	printf("\nA summary has the quantiles 0.5 and 0.99, which cannot be added up: it is there "
	       "for\n"
	       "dashboards that know it. A histogram adds up over ranks and nodes. Both come from "
	       "the same\n"
	       "counts, and are off by at most 9.1 %%.\n"
	       "\n"
	       "Scraped as protobuf, histograms are native, schema %d: Prometheus 2.40 or newer "
	       "with\n"
	       "`--enable-feature=native-histograms`. As text they have these bounds, in seconds:",
	       HIST_SCHEMA);
	for (u32 i = 0; i < CLASSIC_BUCKETS_NR && !isinf(metric_bucket_bounds[i]); i++)
		printf(" %.3g", metric_bucket_bounds[i]);
	puts(".\n"
	     "\n"
	     "`job_name` is the job on the machine; `job` is Prometheus' own label, `zernel` with\n"
	     "`packaging/prometheus/scrape.yml`. What gone processes of a job measured stays in "
	     "its\n"
	     "histograms as long as the job has processes.\n"
	     "\n"
	     "`packaging/prometheus/` has rules for recording and alerting.\n"
	     "\n"
	     "This page is made from `src/abi/metrics.def`, again by\n"
	     "`./dev shell out/gcc/src/metrics/metrics-md >docs/METRICS.md`.");
	return 0;
}
