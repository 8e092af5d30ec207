/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* Shared by kernel.c (loading, scheduler) and kernel_signals.c, and by nobody else. */
#include "collect/kernel.h"
#include "zernel.skel.h"

/* The links of one library: for each kind of call at its entry and its return. */
struct library_links {
	struct bpf_link *enter[CALL_KIND_NR];
	struct bpf_link *leave[CALL_KIND_NR];
};

#define THREAD_PROGRAMS_NR 7

struct kernel {
	struct zernel_bpf *skel;
	struct bpf_link *scheduler;
	struct library_links libraries[LIBRARY_MAX];
	struct bpf_link *threads[THREAD_PROGRAMS_NR];
	struct ring_buffer *events;
	kernel_event_fn on_event;
	void *event_ctx;
	bool has_scheduler;
};

void kernel_close_signals(struct kernel *kernel);
