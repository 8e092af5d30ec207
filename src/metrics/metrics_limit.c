/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "metrics/metrics_limit.h"
#include <errno.h>
#include <stdlib.h>
#include "base/cleanup.h"

enum verdict {
	VERDICT_NONE,
	VERDICT_KEPT,
	VERDICT_LEFT_OUT,
};

/* The number of lines in the text format. */
static u32 series_cost(const struct metrics *m, const struct metric_series *series)
{
	switch (metric_rows[series->metric].kind) {
	case KIND_SUMMARY: return METRIC_QUANTILES_NR + 2;
	case KIND_HISTOGRAM: return m->buckets->nr + 2;
	default: return 1;
	}
}

static enum metric_priority priority_of(const struct metric_series *series)
{
	return metric_rows[series->metric].priority;
}

/* Decides for all series with the unit and the priority of series `at`. */
static void judge(struct metrics *m, unsigned char *verdicts, size_t at, u32 series_max)
{
	const struct metric_series *one = &m->series[at];
	enum verdict verdict;
	size_t first = at;
	u32 cost = 0;

	while (first > 0 && m->series[first - 1].unit == one->unit)
		first--;
	for (size_t i = first; i < m->nr && m->series[i].unit == one->unit; i++)
		if (priority_of(&m->series[i]) == priority_of(one))
			cost += series_cost(m, &m->series[i]);
	verdict = m->nr_counted + cost <= series_max ? VERDICT_KEPT : VERDICT_LEFT_OUT;
	if (verdict == VERDICT_KEPT)
		m->nr_counted += cost;
	for (size_t i = first; i < m->nr && m->series[i].unit == one->unit; i++)
		if (priority_of(&m->series[i]) == priority_of(one))
			verdicts[i] = verdict;
}

/* The first series of each family that dashboards use has precedence over all other series. */
static void judge_legacy(struct metrics *m, unsigned char *verdicts, u32 series_max)
{
	for (u32 metric = 0; metric < METRIC_LEGACY_NR; metric++) {
		size_t at = 0;

		while (at < m->nr && m->series[at].metric != metric)
			at++;
		if (at < m->nr && !verdicts[at])
			judge(m, verdicts, at, series_max);
	}
}

int metrics_limit(struct metrics *m, u32 series_max)
{
	CLEANUP_FREE unsigned char *verdicts = calloc(m->nr + 1, sizeof(*verdicts));
	size_t nr = 0;

	if (!verdicts)
		return -ENOMEM;
	judge_legacy(m, verdicts, series_max);
	for (u32 priority = 0; priority < PRIORITY_NR; priority++)
		for (size_t i = 0; i < m->nr; i++)
			if (!verdicts[i] && priority_of(&m->series[i]) == priority)
				judge(m, verdicts, i, series_max);
	for (size_t i = 0; i < m->nr; i++) {
		const struct metric_series series = m->series[i];

		if (verdicts[i] == VERDICT_KEPT) {
			m->series[nr++] = series;
			continue;
		}
		m->nr_left_out += series_cost(m, &series);
		m->nr_left_out_of[series.metric] += series_cost(m, &series);
		free(series.owned);
	}
	m->nr = nr;
	return 0;
}
