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
	puts("| metric | kind | labels | priority | meaning |\n|---|---|---|---|---|");
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
		printf(" | %u | %s |\n", row->priority + 1, row->help);
	}
}

static void print_limit(void)
{
	printf("What `/metrics` shows, in base units. Every family has its HELP and TYPE, also "
	       "without "
	       "series.\n\n"
	       "All series of a node together are at most `series_max` of section `[serve]` "
	       "(zernel.conf(5);\n"
	       "%d by default, at least %d). Beyond that the last priority is left out first, all "
	       "of a "
	       "process,\n"
	       "job or class at a time, and `zernel_series_left_out` says how many series are "
	       "missing. Each of\n"
	       "the first %d families, which dashboards already rely on, always keeps its first "
	       "series.\n\n"
	       "| priority | what |\n|---|---|\n",
	       METRICS_SERIES_MAX, METRICS_SERIES_LEAST, METRIC_LEGACY_NR);
	for (u32 i = 0; i < PRIORITY_NR; i++)
		printf("| %u | %s |\n", i + 1, metric_priority_names[i]);
	putchar('\n');
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
	print_limit();
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
	     "histograms and counters as long as the job has processes.\n"
	     "\n"
	     "Of up to 16 calls of a collective operation between two syncs each has its own "
	     "duration; of\n"
	     "more, some are timed and count for the others, which makes a duration too long by at "
	     "most the\n"
	     "time in which an eighth of the calls were made. The number of calls is exact. Calls "
	     "that no sync\n"
	     "has covered yet are in `zernel_collectives_total` and not yet in the durations.\n"
	     "\n"
	     "`packaging/prometheus/` has rules for recording and alerting.\n"
	     "\n"
	     "This page is made from `src/abi/metrics.def`, again by\n"
	     "`./dev shell out/gcc/src/metrics/metrics-md >docs/METRICS.md`.");
	return 0;
}
