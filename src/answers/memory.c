/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/memory.h"
#include <errno.h>
#include <stdlib.h>
#include "answers/choose.h"
#include "answers/sentence.h"
#include "base/units.h"

static int compare_holders(const void *a, const void *b)
{
	const struct memory_holder *x = a, *y = b;
	u64 bytes_x = x->memory->book.current_bytes, bytes_y = y->memory->book.current_bytes;

	if (x->memory->gpu != y->memory->gpu)
		return x->memory->gpu < y->memory->gpu ? -1 : 1;
	if (bytes_x != bytes_y)
		return bytes_x > bytes_y ? -1 : 1;
	return (x->process->pid > y->process->pid) - (x->process->pid < y->process->pid);
}

static int compare_ooms(const void *a, const void *b)
{
	const struct memory_oom *x = a, *y = b;
	u64 time_x = x->process->oom.time_ns, time_y = y->process->oom.time_ns;

	return (time_x < time_y) - (time_x > time_y);
}

struct memory_report *memory_free(struct memory_report *report)
{
	if (report) {
		free(report->holders);
		free(report->ooms);
	}
	free(report);
	return NULL;
}

int memory_new(const struct snapshot *s, const char *who, struct memory_report **ret)
{
	CLEANUP(memory_free_cleanup) struct memory_report *report = calloc(1, sizeof(*report));

	if (!report)
		return -ENOMEM;
	report->snapshot = s;
	report->holders = calloc((size_t)s->nr_processes * GPU_MAX + 1, sizeof(*report->holders));
	report->ooms = calloc(s->nr_processes + 1, sizeof(*report->ooms));
	if (!report->holders || !report->ooms)
		return -ENOMEM;
	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_process *process = &s->processes[i];

		if (!choose_is_meant(s, process, who))
			continue;
		for (u32 k = 0; k < process->nr_memory; k++)
			report->holders[report->nr_holders++] =
				(struct memory_holder){ process, &process->memory[k] };
		if (process->oom.nr)
			report->ooms[report->nr_ooms++].process = process;
	}
	qsort(report->holders, report->nr_holders, sizeof(*report->holders), compare_holders);
	qsort(report->ooms, report->nr_ooms, sizeof(*report->ooms), compare_ooms);
	*ret = TAKE_PTR(report);
	return 0;
}

const struct snapshot_gpu *memory_gpu(const struct snapshot *s, u32 gpu)
{
	for (u32 i = 0; i < s->nr_gpus; i++)
		if (s->gpus[i].gpu == gpu)
			return &s->gpus[i];
	return NULL;
}

u64 memory_unused(const struct snapshot_oom *oom)
{
	return oom->reserved_bytes > oom->allocated_bytes
		       ? oom->reserved_bytes - oom->allocated_bytes
		       : 0;
}

static void add_unused(struct sentence *sentence, const struct snapshot_oom *oom)
{
	u64 unused = memory_unused(oom);

	sentence_add(sentence,
		     " PyTorch had reserved %s and allocated %s of it; %s (%.0f %%) was unused",
		     unit_bytes(oom->reserved_bytes).text, unit_bytes(oom->allocated_bytes).text,
		     unit_bytes(unused).text,
		     oom->reserved_bytes ? 100.0 * (double)unused / (double)oom->reserved_bytes
					 : 0);
	/* PyTorch returns every block that is wholly unused before it reports the error. */
	if (unused >= oom->asked_bytes)
		sentence_add(
			sentence,
			", enough for the request, but in pieces that are too small or kept for "
			"another use (fragmentation)");
	sentence_add(sentence, ".");
}

static void add_others(struct sentence *sentence, const struct snapshot_oom *oom)
{
	if (!oom->others_ns)
		return;
	if (!oom->nr_holders) {
		sentence_add(sentence, " No other process that Zernel follows held memory of it.");
		return;
	}
	sentence_add(sentence,
		     " Other processes held %s of it:", unit_bytes(oom->others_bytes).text);
	for (u32 i = 0; i < oom->nr_others; i++) {
		const struct snapshot_oom_other *other = &oom->others[i];

		sentence_add(sentence, "%s ", i ? "," : "");
		if (other->pid)
			sentence_add(sentence, "%s (%u)", other->comm, other->pid);
		else
			sentence_add(sentence, "a process of another user");
		sentence_add(sentence, " %s", unit_bytes(other->bytes).text);
	}
	if (oom->nr_holders > oom->nr_others)
		sentence_add(sentence, " and %u more", oom->nr_holders - oom->nr_others);
	sentence_add(sentence, ".");
}

void memory_oom_sentence(const struct snapshot_process *process,
			 char ret[static MEMORY_SENTENCE_LEN])
{
	struct sentence sentence = { .text = ret, .size = MEMORY_SENTENCE_LEN };
	const struct snapshot_oom *oom = &process->oom;

	ret[0] = '\0';
	sentence_add(&sentence, "%s was out of memory at %s: it asked for %s on ",
		     choose_name(process).text, unit_local_time(oom->time_ms).text,
		     unit_bytes(oom->asked_bytes).text);
	if (oom->gpu == SNAPSHOT_GPU_UNKNOWN)
		sentence_add(&sentence, "an unknown GPU.");
	else
		sentence_add(&sentence, "GPU %u.", oom->gpu);
	add_unused(&sentence, oom);
	add_others(&sentence, oom);
	if (oom->nr > 1)
		sentence_add(&sentence, " It was the last of %llu errors.", oom->nr);
}
