/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/memory/memory_print.h"
#include <errno.h>
#include "base/cleanup.h"
#include "cli/stacks.h"

static void print_gpus(const struct snapshot *s, const struct term *term)
{
	for (u32 i = 0; i < s->nr_gpus; i++) {
		const struct snapshot_gpu *gpu = &s->gpus[i];

		if (!(gpu->valid & SNAPSHOT_GPU_MEMORY_USED))
			continue;
		term_print(term, STYLE_TITLE, "GPU %u: %s used", gpu->gpu,
			   unit_bytes(gpu->memory_used_bytes).text);
		if (gpu->valid & SNAPSHOT_GPU_MEMORY_TOTAL)
			term_print(term, STYLE_TITLE, " of %s",
				   unit_bytes(gpu->memory_total_bytes).text);
		term_print(term, STYLE_DIM, ", by the driver\n");
	}
}

static int print_holders(const struct memory_report *report, const struct term *term)
{
	static const struct column columns[] = {
		{ "GPU", true },    { "PID", true },   { "COMMAND" },
		{ "HELD", true },   { "PEAK", true },  { "OF GPU", true },
		{ "ALLOCS", true }, { "FREES", true }, {},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);

	for (u32 i = 0; i < report->nr_holders; i++) {
		const struct memory_holder *holder = &report->holders[i];
		const struct memory_book *book = &holder->memory->book;
		const struct snapshot_gpu *gpu = memory_gpu(report->snapshot, holder->memory->gpu);

		if (holder->memory->gpu == SNAPSHOT_GPU_UNKNOWN)
			table_cell(table, STYLE_DIM, "?");
		else
			table_cell(table, STYLE_PLAIN, "%u", holder->memory->gpu);
		table_cell(table, STYLE_PLAIN, "%u", holder->process->pid);
		table_cell(table, STYLE_PLAIN, "%s", holder->process->comm);
		table_cell(table, STYLE_PLAIN, "%s", unit_bytes(book->current_bytes).text);
		table_cell(table, STYLE_PLAIN, "%s", unit_bytes(book->peak_bytes).text);
		if (gpu && gpu->valid & SNAPSHOT_GPU_MEMORY_TOTAL && gpu->memory_total_bytes)
			table_cell(table, STYLE_PLAIN, "%.1f%%",
				   100.0 * (double)book->current_bytes /
					   (double)gpu->memory_total_bytes);
		else
			table_cell(table, STYLE_DIM, "-");
		table_cell(table, STYLE_PLAIN, "%s", unit_count(book->nr_allocs).text);
		table_cell(table, STYLE_PLAIN, "%s", unit_count(book->nr_frees).text);
	}
	return table_print(table, term);
}

void memory_print_ooms(const struct memory_report *report, const struct term *term)
{
	char sentence[MEMORY_SENTENCE_LEN];

	for (u32 i = 0; i < report->nr_ooms; i++) {
		const struct memory_oom *oom = &report->ooms[i];

		memory_oom_sentence(oom->process, sentence);
		term_print(term, STYLE_WARNING, "%s\n", sentence);
		if (!oom->stack)
			continue;
		term_print(term, STYLE_PLAIN, "Stack of thread %u, innermost call first:\n",
			   oom->stack->tid);
		stack_print(oom->stack, term);
	}
}

static int print_text(const struct memory_report *report, const struct term *term)
{
	int err = 0;

	print_gpus(report->snapshot, term);
	if (report->nr_holders)
		err = print_holders(report, term);
	else
		term_print(term, STYLE_PLAIN, "%s\n",
			   report->snapshot->nr_processes ? "No matching process holds GPU memory "
							    "by calls that Zernel follows."
							  : "No process uses a GPU.");
	memory_print_ooms(report, term);
	return err;
}

static int print_json(const struct memory_report *report, FILE *out)
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err = memory_to_json(report, &text, &length);

	if (err < 0)
		return err;
	return fprintf(out, "%s\n", text) > 0 ? 0 : -EIO;
}

int memory_print(const struct memory_report *report, bool json, const struct term *term)
{
	int err = json ? print_json(report, term->out) : print_text(report, term);

	if (err < 0)
		return err;
	return report->nr_holders || report->nr_ooms ? 0 : -ENOENT;
}
