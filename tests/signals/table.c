/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for people: tables with columns as wide as their content. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "signals/report.h"

#define MAX_COLUMNS 12
#define CELL_SIZE   32

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

struct table {
	FILE *out;
	bool is_terminal;
	u32 nr_columns, nr_cells, capacity;
	int width[MAX_COLUMNS]; /* negative: aligned to the left, for words */
	char (*cells)[CELL_SIZE];
};

__attribute__((format(printf, 2, 3))) static void cell(struct table *table, const char *format, ...)
{
	int *width = &table->width[table->nr_cells % table->nr_columns];
	va_list args;
	int length;

	if (table->nr_cells == table->capacity) {
		u32 capacity = table->capacity ? 2 * table->capacity : 64;
		void *cells = reallocarray(table->cells, capacity, CELL_SIZE);

		if (!cells)
			return;
		table->cells = cells;
		table->capacity = capacity;
	}
	va_start(args, format);
	vsnprintf(table->cells[table->nr_cells], CELL_SIZE, format, args);
	va_end(args);
	length = (int)strlen(table->cells[table->nr_cells++]);
	if (length > abs(*width))
		*width = *width < 0 ? -length : length;
}

/* A heading that starts with '<' aligns its column to the left. */
static struct table table_new(FILE *out, bool is_terminal, const char *const *headings)
{
	struct table table = { .out = out, .is_terminal = is_terminal };

	while (headings[table.nr_columns])
		table.nr_columns++;
	for (u32 i = 0; i < table.nr_columns; i++) {
		bool is_left = headings[i][0] == '<';

		table.width[i] = is_left ? -1 : 1;
		cell(&table, "%s", headings[i] + is_left);
	}
	return table;
}

/* Prints nothing if there is no row below the headings. */
static void table_end(struct table *table)
{
	for (u32 i = 0; i < table->nr_cells && table->nr_cells > table->nr_columns; i++) {
		u32 column = i % table->nr_columns;
		bool is_heading = table->is_terminal && i < table->nr_columns;

		fprintf(table->out, "%s%s%*s%s%s", column ? "  " : "", is_heading ? BOLD : "",
			table->width[column], table->cells[i], is_heading ? PLAIN : "",
			column + 1 == table->nr_columns ? "\n" : "");
	}
	if (table->nr_cells > table->nr_columns)
		fputc('\n', table->out);
	free(table->cells);
}

static void cell_ms(struct table *table, u64 ns)
{
	cell(table, "%.3f", (double)ns / NSEC_PER_MSEC);
}

static void print_processes(const struct report *report, bool is_terminal, FILE *out)
{
	static const char *const headings[] = { "pid",	    "<comm", "rank",   "<phase",
						"launches", "syncs", "copies", NULL };
	struct table table = table_new(out, is_terminal, headings);

	for (u32 i = 0; i < report->nr_processes; i++) {
		const struct report_process *process = &report->processes[i];
		const struct process_state *state = &process->state;

		cell(&table, "%u", state->task.pid);
		cell(&table, "%.16s", state->comm);
		if (state->nr_ranks)
			cell(&table, "%d/%u", state->rank, state->nr_ranks);
		else
			cell(&table, "-");
		cell(&table, "%s", process->has_ended ? "ended" : phase_label(state->task.phase));
		cell(&table, "%llu", launches_by_program(state));
		cell(&table, "%llu", calls_by_program(state->nr_syncs));
		cell(&table, "%llu", calls_by_program(state->nr_copies));
	}
	table_end(&table);
}

static void print_phases(const struct report *report, bool is_terminal, FILE *out)
{
	const char *headings[PHASE_NR + 2] = { "pid" };
	struct table table;

	for (u32 phase = 0; phase < PHASE_NR; phase++)
		headings[phase + 1] = phase_label(phase);
	table = table_new(out, is_terminal, headings);
	for (u32 i = 0; i < report->nr_processes; i++) {
		const struct task_state *task = &report->processes[i].state.task;

		cell(&table, "%u", task->pid);
		for (u32 phase = 0; phase < PHASE_NR; phase++)
			cell_ms(&table, task->phase_ns[phase]);
	}
	fputs("Time in each phase, ms:\n", out);
	table_end(&table);
}

/* The label of a distribution. */
static const char *hist_label(u32 kind)
{
	static const char *const labels[HIST_COLLECTIVE] = {
		[HIST_SYNC_WAIT] = "sync wait",
		[HIST_LOADER_WAIT] = "loader wait",
		[HIST_RUNQUEUE_WAIT] = "run queue wait",
		[HIST_LAUNCH] = "launch",
		[HIST_STEP] = "step",
	};

	return kind < HIST_COLLECTIVE ? labels[kind] : operation_label(kind - HIST_COLLECTIVE);
}

static void print_waits(const struct report *report, bool is_terminal, FILE *out)
{
	static const char *const headings[] = { "pid",	   "<distribution", "count", "p50, ms",
						"p99, ms", "sum, ms",	    NULL };
	struct table table = table_new(out, is_terminal, headings);

	for (u32 i = 0; i < report->nr_processes; i++) {
		for (u32 kind = 0; kind < HIST_KIND_NR; kind++) {
			const struct hist *hist = &report->processes[i].hists[kind];

			if (!hist->count)
				continue;
			cell(&table, "%u", report->processes[i].state.task.pid);
			cell(&table, "%s", hist_label(kind));
			cell(&table, "%llu", hist->count);
			cell_ms(&table, hist_quantile(hist, 500));
			cell_ms(&table, hist_quantile(hist, 990));
			cell_ms(&table, hist->sum);
		}
	}
	table_end(&table);
}

static void add_book(struct table *table, u32 pid, u32 level, const char *device,
		     const struct memory_book *book)
{
	if (!book->nr_allocs)
		return;
	cell(table, "%u", pid);
	cell(table, "%s", level == LEVEL_RUNTIME ? "runtime" : "driver");
	cell(table, "%s", device);
	cell(table, "%llu", book->current_bytes);
	cell(table, "%llu", book->peak_bytes);
	cell(table, "%llu", book->nr_allocs);
	cell(table, "%llu", book->nr_frees);
}

static void print_books(const struct report *report, bool is_terminal, FILE *out)
{
	static const char *const headings[] = { "pid",	      "<level", "<memory", "current bytes",
						"peak bytes", "allocs", "frees",   NULL };
	struct table table = table_new(out, is_terminal, headings);

	for (u32 i = 0; i < report->nr_processes; i++) {
		const struct process_state *state = &report->processes[i].state;

		for (u32 level = 0; level < LEVEL_NR; level++) {
			for (u32 device = 0; device < GPU_MAX; device++) {
				char name[CELL_SIZE];

				snprintf(name, sizeof(name), "device %u", device);
				add_book(&table, state->task.pid, level, name,
					 &state->books[level][device]);
			}
			add_book(&table, state->task.pid, level, "pinned host",
				 &state->host_books[level]);
		}
	}
	table_end(&table);
}

static void print_collectives(const struct report *report, bool is_terminal, FILE *out)
{
	static const char *const headings[] = { "pid", "<collective", "count", "bytes", NULL };
	struct table table = table_new(out, is_terminal, headings);

	for (u32 i = 0; i < report->nr_processes; i++) {
		const struct process_state *state = &report->processes[i].state;

		for (u32 op = 0; op < COLLECTIVE_NR; op++) {
			if (!state->nr_collectives[op])
				continue;
			cell(&table, "%u", state->task.pid);
			cell(&table, "%s", operation_label(op));
			cell(&table, "%llu", state->nr_collectives[op]);
			cell(&table, "%llu", state->collective_bytes[op]);
		}
	}
	table_end(&table);
}

/* A framework has dozens of threads without an ML role; they are only counted. */
static void print_threads(const struct report *report, bool is_terminal, FILE *out)
{
	static const char *const headings[] = {
		"tid", "pid", "<comm", "<role", "run queue wait, ms", "I/O wait, ms", NULL
	};
	struct table table = table_new(out, is_terminal, headings);
	u32 nr_other = 0;

	for (u32 i = 0; i < report->nr_threads; i++) {
		const struct thread_record *thread = &report->threads[i];

		nr_other += thread->role == ROLE_OTHER;
		if (thread->role == ROLE_OTHER)
			continue;
		cell(&table, "%u", thread->tid);
		cell(&table, "%u", thread->tgid);
		cell(&table, "%.16s", thread->comm);
		cell(&table, "%s", role_label(thread->role));
		cell_ms(&table, thread->runqueue_wait_ns);
		cell_ms(&table, thread->io_wait_ns);
	}
	table_end(&table);
	fprintf(out, "threads with the role other: %u\n", nr_other);
}

void table_print(const struct report *report, bool is_terminal, FILE *out)
{
	print_processes(report, is_terminal, out);
	print_phases(report, is_terminal, out);
	print_waits(report, is_terminal, out);
	print_collectives(report, is_terminal, out);
	print_books(report, is_terminal, out);
	print_threads(report, is_terminal, out);
	fprintf(out,
		"dropped: %llu events, %llu processes, %llu frames, %llu samples, %llu "
		"communicators, "
		"%llu memory entries, %llu BPF program runs, %llu maps\n",
		report->drops.nr_events, report->drops.nr_processes, report->drops.nr_frames,
		report->drops.nr_samples, report->drops.nr_comms, report->drops.nr_memory,
		report->drops.nr_bpf_program_runs, report->nr_lost_maps);
}
