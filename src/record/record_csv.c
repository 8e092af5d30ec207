/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include "base/cleanup.h"
#include "record/record_export.h"
#include "ipc/snapshot_json.h"

/* A text can contain any byte except zero. */
static void put_text(FILE *out, const char *text)
{
	fputs(",\"", out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void put_number(FILE *out, u64 number)
{
	fprintf(out, ",%llu", number);
}

static void put_rank(FILE *out, const struct snapshot_process *process)
{
	if (process->nr_ranks)
		fprintf(out, ",%" PRId32, process->rank);
	else
		fputc(',', out);
}

static u64 memory_of(const struct snapshot_process *process)
{
	u64 bytes = 0;

	for (u32 i = 0; i < process->nr_memory; i++)
		bytes += process->memory[i].book.current_bytes;
	return bytes;
}

/* The count and the sum of a histogram. */
static void put_hist(FILE *out, const struct hist *hist)
{
	put_number(out, hist ? hist->count : 0);
	put_number(out, hist ? hist->sum : 0);
}

static void put_header(FILE *out)
{
	fputs("time_ms,monotonic_ns,host,job,rank,pid,comm,phase,transitions", out);
	for (u32 i = 0; i < PHASE_NR; i++)
		fprintf(out, ",%s_ns", phase_label(i));
	fputs(",steps,busy_ns", out);
	for (u32 i = 0; i < IDLE_CAUSE_NR; i++)
		fprintf(out, ",idle_%s_ns", idle_cause_label(i));
	for (u32 i = 0; i < IDLE_CAUSE_NR; i++)
		fprintf(out, ",open_%s_ns", idle_cause_label(i));
	fputs(",blocked_ns,step_basis", out);
	fputs(",memory_bytes", out);
	for (u32 i = 0; i < HIST_KIND_NR; i++)
		fprintf(out, ",%s_count,%s_ns", snapshot_hist_label(i), snapshot_hist_label(i));
	fputc('\n', out);
}

static void put_row(FILE *out, const struct snapshot *s, const struct snapshot_process *process)
{
	const struct snapshot_job *job = snapshot_job(s, process);

	fprintf(out, "%llu,%llu", s->time_ms, s->monotonic_ns);
	put_text(out, s->host);
	put_text(out, job ? job->name : "");
	put_rank(out, process);
	put_number(out, process->pid);
	put_text(out, process->comm);
	fprintf(out, ",%s", phase_label(process->phase));
	put_number(out, process->nr_transitions);
	for (u32 i = 0; i < PHASE_NR; i++)
		put_number(out, process->phase_ns[i]);
	put_number(out, process->nr_steps);
	put_number(out, process->busy_ns);
	for (u32 i = 0; i < IDLE_CAUSE_NR; i++)
		put_number(out, process->idle_ns[i]);
	for (u32 i = 0; i < IDLE_CAUSE_NR; i++)
		put_number(out, process->open_ns[i]);
	put_number(out, process->blocked_ns);
	fprintf(out, ",%s", step_basis_label(process->step_basis));
	put_number(out, memory_of(process));
	for (u32 i = 0; i < HIST_KIND_NR; i++)
		put_hist(out, snapshot_hist(s, &process->hists, i));
	fputc('\n', out);
}

static int put_snapshot(FILE *out, const struct record_frame *frame)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
	int err = snapshot_from_json(frame->text, frame->length, &s);

	if (err < 0)
		return err;
	for (u32 i = 0; i < s->nr_processes; i++)
		put_row(out, s, &s->processes[i]);
	return 0;
}

int record_to_csv(struct record_reader *reader, FILE *out)
{
	struct record_frame frame;
	int n;

	put_header(out);
	while ((n = record_read(reader, &frame)) > 0) {
		int err = frame.kind == RECORD_FRAME_SNAPSHOT ? put_snapshot(out, &frame) : 0;

		if (err < 0)
			return err;
	}
	if (n == 0 && (fflush(out) != 0 || ferror(out)))
		return errno ? -errno : -EIO;
	return n;
}
