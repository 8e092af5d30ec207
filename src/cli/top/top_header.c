/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines above the table: the node, its scheduler, its GPUs and the cost of Zernel. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "cli/term.h"
#include "cli/top/top.h"

#define GPU_WIDTH 40
#define BAR_WIDTH 9
/* A terminal with fewer lines gets one line above the table. */
#define LOW	  10

/* The position after the last part of a line. */
struct line {
	struct canvas *canvas;
	u32 y;
	u32 x;
};

#define PUT(line, style, ...)                                                                      \
	((line)->x += canvas_print((line)->canvas, (line)->y, (line)->x, (line)->canvas->width,    \
				   style, __VA_ARGS__))

static void draw_host(const struct snapshot *s, struct canvas *canvas, u32 y)
{
	struct line line = { canvas, y, 0 };
	time_t seconds = (time_t)(s->time_ms / 1000);
	char text[16] = "";
	struct tm tm;

	PUT(&line, CANVAS_TITLE, "%s", s->host);
	PUT(&line, CANVAS_DIM, "  Linux %s, zerneld %s", s->kernel, s->version);
	if (localtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%H:%M:%S", &tm) &&
	    line.x + strlen(text) + 2 <= canvas->width)
		canvas_print(canvas, y, canvas->width - (u32)strlen(text), canvas->width,
			     CANVAS_DIM, "%s", text);
}

static u64 per_second(u64 number, u64 ns)
{
	return ns ? (u64)((double)number * 1e9 / (double)ns + 0.5) : 0;
}

static void draw_scheduler(const struct top_model *model, struct canvas *canvas, u32 y)
{
	static const enum canvas_style styles[SCHED_STATE_NR] = {
		[SCHED_OFF] = CANVAS_WARNING,
		[SCHED_ATTACHED] = CANVAS_GOOD,
		[SCHED_EJECTED] = CANVAS_BAD,
		[SCHED_WAITING] = CANVAS_GOOD,
	};
	const struct snapshot_sched *sched = &model->snapshot->sched;
	const struct top_node_counters *window = &model->window;
	struct line line = { canvas, y, 0 };
	u64 total = 0;

	PUT(&line, CANVAS_DIM, "scheduler ");
	PUT(&line, sched->state < SCHED_STATE_NR ? styles[sched->state] : CANVAS_BAD, "%s",
	    snapshot_sched_state_label(sched->state));
	if (sched->reason[0])
		PUT(&line, CANVAS_BAD, " (%s)", sched->reason);
	if (sched->actuator == ACTUATOR_NICE)
		PUT(&line, CANVAS_GOOD, "  nice: %llu threads", sched->nr_nice_threads);
	for (u32 i = 0; i < CLASS_NR; i++)
		total += window->nr_decisions[i];
	if (!total)
		return;
	PUT(&line, CANVAS_PLAIN, "  %s/s:", unit_count(per_second(total, window->time_ns)).text);
	for (u32 i = 0; i < CLASS_NR; i++) {
		u64 rate = per_second(window->nr_decisions[i], window->time_ns);

		if (window->nr_decisions[i])
			PUT(&line, CANVAS_PLAIN, " %s %s", sched_class_label(i),
			    unit_count(rate).text);
	}
}

static enum canvas_style load_style(u32 percent)
{
	return percent >= 80 ? CANVAS_GOOD : percent >= 40 ? CANVAS_WARNING : CANVAS_BAD;
}

static void draw_bar(struct line *line, enum canvas_style style, u32 percent)
{
	char bar[BAR_WIDTH + 1];
	u32 filled = (percent * BAR_WIDTH + 50) / 100;

	filled = filled > BAR_WIDTH ? BAR_WIDTH : filled;
	memset(bar, '|', sizeof(bar));
	bar[filled] = '\0';
	PUT(line, CANVAS_DIM, "[");
	PUT(line, style, "%s", bar);
	PUT(line, CANVAS_DIM, "%*s]", (int)(BAR_WIDTH - filled), "");
}

/* "gpu0 [||||||   ] 61% [|        ] 3.0G": 38 columns. Unknown values are left out. */
static void draw_gpu(const struct snapshot_gpu *gpu, struct canvas *canvas, u32 y, u32 x)
{
	struct line line = { canvas, y, x };
	const u32 both = SNAPSHOT_GPU_MEMORY_USED | SNAPSHOT_GPU_MEMORY_TOTAL;

	PUT(&line, CANVAS_DIM, "gpu%-2u", gpu->gpu);
	if (gpu->valid & SNAPSHOT_GPU_BUSY) {
		draw_bar(&line, load_style(gpu->busy_percent), gpu->busy_percent);
		PUT(&line, CANVAS_PLAIN, "%3u%% ", gpu->busy_percent);
	} else {
		PUT(&line, CANVAS_DIM, "%*s- ", BAR_WIDTH + 5, "busy ");
	}
	if ((gpu->valid & both) == both && gpu->memory_total_bytes)
		draw_bar(&line, CANVAS_PLAIN,
			 (u32)(100.0 * (double)gpu->memory_used_bytes /
			       (double)gpu->memory_total_bytes));
	if (gpu->valid & SNAPSHOT_GPU_MEMORY_USED)
		PUT(&line, CANVAS_PLAIN, " %s",
		    top_compact(unit_bytes(gpu->memory_used_bytes)).text);
}

/* Uses at most `height` lines. The last line counts the GPUs that do not fit. */
static u32 draw_gpus(const struct snapshot *s, struct canvas *canvas, u32 y, u32 height)
{
	u32 columns = canvas->width >= GPU_WIDTH ? canvas->width / GPU_WIDTH : 1;
	u32 lines = (s->nr_gpus + columns - 1) / columns, shown = s->nr_gpus;

	if (lines > height) {
		lines = height;
		shown = lines ? (lines - 1) * columns : 0;
	}
	for (u32 i = 0; i < shown; i++)
		draw_gpu(&s->gpus[i], canvas, y + i / columns,
			 i % columns * (canvas->width / columns));
	if (lines && shown < s->nr_gpus)
		canvas_print(canvas, y + lines - 1, 0, canvas->width, CANVAS_DIM,
			     "... and %u more GPUs", s->nr_gpus - shown);
	return lines;
}

static void draw_cost(const struct top_model *model, struct canvas *canvas, u32 y)
{
	const struct snapshot *s = model->snapshot;
	const struct top_node_counters *window = &model->window;
	struct line line = { canvas, y, 0 };
	u64 lost = 0;

	if (s->is_own) {
		PUT(&line, CANVAS_DIM, "only your own processes");
		return;
	}
	PUT(&line, CANVAS_DIM, "zernel uses ");
	if (window->time_ns)
		PUT(&line, CANVAS_PLAIN, "%.1f%% of a CPU, ",
		    100.0 * (double)window->cpu_ns / (double)window->time_ns);
	if (window->time_ns && window->bpf_run_ns)
		PUT(&line, CANVAS_PLAIN, "%.1f%% in BPF programs, ",
		    100.0 * (double)window->bpf_run_ns / (double)window->time_ns);
	PUT(&line, CANVAS_PLAIN, "%s", unit_bytes(s->cost.rss_bytes).text);
	for (u32 i = 0; i < DROP_NR; i++)
		lost += s->nr_dropped[i];
	if (lost)
		PUT(&line, CANVAS_WARNING, "  dropped %s: see zernel status",
		    unit_count(lost).text);
}

u32 top_draw_header(const struct top_model *model, struct canvas *canvas)
{
	u32 y = 0;

	if (!model->snapshot)
		return 0;
	draw_host(model->snapshot, canvas, y++);
	if (canvas->height < LOW)
		return y;
	draw_scheduler(model, canvas, y++);
	y += draw_gpus(model->snapshot, canvas, y, canvas->height / 2 - 3);
	draw_cost(model, canvas, y++);
	return y;
}
