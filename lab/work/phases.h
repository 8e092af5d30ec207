/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "core/phase.h"
#include "truth/truth.h"
#include "work/times.h"

/*
 * The phases of one thread as truth. Each call names the instant the phase
 * changed; spans are written so that they tile the thread's life, and an
 * optimizer step is cut at its burst bound, after which the phase is Unknown.
 * Of a launcher, what it did while its device had nothing to do is written as well.
 */
struct phases {
	struct truth *truth;
	enum phase phase;
	u64 since_ns;
	u64 born_ns;
	bool is_launcher;
	int times_fd;
	struct times times; /* when the phase began */
};

void phases_begin(struct phases *phases, struct truth *truth, enum phase phase);
/* The same, for the thread that launches. */
void phases_begin_launcher(struct phases *phases, struct truth *truth, enum phase phase);
void phases_set(struct phases *phases, enum phase phase, u64 now_ns);

/* Ends the thread's life at `now_ns` and writes it. */
void phases_end(struct phases *phases, enum truth_role role, u64 now_ns);
