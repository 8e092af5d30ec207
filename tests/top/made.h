/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Creates snapshots, and reads lines of a canvas as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top/top.h"

static inline struct snapshot *made_snapshot(u64 second)
{
	const struct snapshot_limits limits = {
		.nr_jobs = 8,
		.nr_processes = 80,
		.nr_threads = 200,
		.nr_gpus = 8,
		.nr_hists = 400,
	};
	struct snapshot *snapshot;

	assert_int_equal(snapshot_new(&limits, &snapshot), 0);
	snapshot->monotonic_ns = (1000 + second) * NSEC_PER_SEC;
	return snapshot;
}

static inline struct snapshot_process *made_process(struct snapshot *snapshot, u32 pid, u32 job,
						    const char *comm)
{
	struct snapshot_process *process = snapshot_add_process(snapshot, pid);

	process->job = job;
	process->start_ns = pid;
	snapshot_set_text(process->comm, sizeof(process->comm), comm, strlen(comm));
	return process;
}

/* The caller frees the text. Trailing spaces are removed; characters beyond ASCII become `#`. */
static inline char *made_line(const struct canvas *canvas, u32 y)
{
	char *text = calloc(canvas->width + 1, 1);

	assert_non_null(text);
	for (u32 x = 0; x < canvas->width; x++) {
		wchar_t character = canvas->cells[y * canvas->width + x].character;

		text[x] = character < 0x80 ? (char)(character ?: '_') : '#';
	}
	for (u32 x = canvas->width; x > 0 && text[x - 1] == ' '; x--)
		text[x - 1] = '\0';
	return text;
}

static inline void assert_line(const struct canvas *canvas, u32 y, const char *expected)
{
	char *text = made_line(canvas, y);

	assert_string_equal(text, expected);
	free(text);
}
