/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/procdb_table.h"
#include "base/cleanup.h"
#include "core/process.h"

static void add_profile(struct table *table, const struct procdb_profile *p, u64 now_s)
{
	bool predicted = procdb_profile_is_confident(p);
	char executable[17];

	procdb_text_executable(p, executable);
	table_cell(table, STYLE_TITLE, "%.15s", p->key.comm);
	table_cell(table, STYLE_PLAIN, "%s", *executable ? executable : "-");
	table_cell(table, STYLE_PLAIN, "%s", role_label(p->key.role));
	table_cell(table, STYLE_PLAIN, "%s", tier_label(tier_dominant(&p->votes)));
	table_cell(table, STYLE_PLAIN, "%u%%", procdb_text_sure(p) / 10);
	table_cell(table, STYLE_PLAIN, "%u", p->nr_observations);
	table_cell(table, STYLE_PLAIN, "%s", unit_ns(p->behaviour.runtime_avg_ns).text);
	table_cell(table, STYLE_PLAIN, "%llu", p->behaviour.wakeup_freq);
	table_cell(table, STYLE_PLAIN, "%llu", p->behaviour.switch_rate);
	table_cell(table, STYLE_PLAIN, "%s",
		   unit_age(now_s > p->last_seen_s ? now_s - p->last_seen_s : 0).text);
	table_cell(table, predicted ? STYLE_GOOD : STYLE_PLAIN, "%s", predicted ? "yes" : "no");
}

int procdb_table(const struct term *term, const struct procdb_list *list, u64 now_s)
{
	static const struct column columns[] = {
		{ "NAME" },	     { "EXECUTABLE" },	     { "ROLE" },
		{ "TIER" },	     { "CONFIDENCE", true }, { "OBSERVED", true },
		{ "RUNTIME", true }, { "WAKEUP/s", true },   { "SWITCH/s", true },
		{ "AGE", true },     { "PREDICTED" },	     {},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);

	for (size_t i = 0; i < list->nr; i++)
		add_profile(table, list->profiles[i], now_s);
	return table_print(table, term);
}
