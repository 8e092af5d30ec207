/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "core/phase.h"
#include "truth/truth.h"
#include "work/times.h"

/*
 * Logs the phases of one thread as truth. Each call passes the time of the phase
 * change. The logged spans cover the thread's life without gaps or overlaps. An
 * optimizer step ends at its burst bound; after that the phase is Unknown. For a
 * launcher, its activity while its GPU had no work is logged as well.
 */
struct phases {
	struct truth *truth;
	enum phase phase;
	u64 since_ns;
	u64 born_ns;
	bool is_launcher;
	int times_fd;
	struct times times; /* at the start of the phase */
};

void phases_begin(struct phases *phases, struct truth *truth, enum phase phase);
/* The same for a launcher. */
void phases_begin_launcher(struct phases *phases, struct truth *truth, enum phase phase);
void phases_set(struct phases *phases, enum phase phase, u64 now_ns);

/* Ends the thread's life at `now_ns` and logs it. */
void phases_end(struct phases *phases, enum truth_role role, u64 now_ns);
