/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/memory/memory_usage.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "answers/usage.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/ask.h"

static void add_row(struct table *table, const struct usage_part *part, u64 begin_ns)
{
	table_cell(table, STYLE_PLAIN, "%.2f s", (double)begin_ns / 1e9);
	table_cell(table, STYLE_PLAIN, "%s", unit_bytes(part->allocated_most).text);
	table_cell(table, STYLE_PLAIN, "%s", unit_bytes(part->reserved_then).text);
	table_cell(table, STYLE_PLAIN, "%s", unit_bytes(usage_unused(part)).text);
	table_cell(table, STYLE_PLAIN, "%.0f%%", usage_unused_percent(part));
	table_cell(table, STYLE_PLAIN, "%s", unit_count(part->nr).text);
}

static int print_gpu(const struct usage_report *report, const struct usage_gpu *gpu,
		     const struct term *term)
{
	static const struct column columns[] = {
		{ "TIME", true },
		{ "ALLOCATED", true },
		{ "RESERVED", true },
		{ "UNUSED", true },
		{ "", true },
		{ "REPORTS", true },
		{},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);
	char sentence[USAGE_SENTENCE_LEN];

	usage_sentence(gpu, sentence);
	term_print(term, STYLE_TITLE, "%s\n", sentence);
	for (u32 i = 0; i < gpu->nr_parts; i++)
		if (gpu->is_known[i])
			add_row(table, &gpu->parts[i], i * report->part_ns);
	return table_print(table, term);
}

static int print_text(const struct usage_report *report, const struct term *term)
{
	int err = 0;

	for (u32 i = 0; i < report->nr_gpus && err == 0; i++)
		err = print_gpu(report, &report->gpus[i], term);
	if (!report->nr_gpus)
		term_print(
			term, STYLE_PLAIN,
			"PyTorch in process %u reported no allocation or release of GPU memory in "
			"%.1f s. Watch for a whole step. With backend:cudaMallocAsync, it reports "
			"none.\n",
			report->pid, (double)report->window_ns / 1e9);
	return err;
}

static int print_json(const struct usage_report *report, FILE *out)
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err = usage_to_json(report, &text, &length);

	if (err < 0)
		return err;
	return fprintf(out, "%s\n", text) > 0 ? 0 : -EIO;
}

static int print(const struct usage_report *report, const struct answer_call *request)
{
	int err = request->json ? print_json(report, stdout) : print_text(report, &request->term);

	if (err == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		err = -EIO;
	if (err < 0)
		log_error("cannot print the memory: %s", strerror(-err));
	return err == 0 && !report->nr_gpus ? -ENOENT : err;
}

int memory_usage(const struct answer_call *request, u64 seconds)
{
	CLEANUP(client_data_done) struct client_data data = {};
	CLEANUP(usage_free_cleanup) struct usage_report *report = NULL;
	u32 pid = 0;
	int err = ask_process(request->socket, request->who, &pid);

	if (err == 0)
		err = ask_watch(request->socket, "memory", pid, seconds, &data);
	if (err < 0)
		return err;
	err = usage_read(yyjson_obj_get(data.value, "usage"), &report);
	if (err < 0) {
		log_error("zerneld sent invalid sizes: %s. Run: zernel doctor", strerror(-err));
		return -EPROTO;
	}
	return print(report, request);
}
