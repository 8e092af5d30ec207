/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/phases.h"

#include <unistd.h>

/* Contains the burst bound of a detector with default settings. */
static const struct phase_config defaults = PHASE_CONFIG_DEFAULT;

void phases_begin(struct phases *phases, struct truth *truth, enum phase phase)
{
	u64 now = truth_now_ns();

	*phases = (struct phases){
		.truth = truth,
		.phase = phase,
		.since_ns = now,
		.born_ns = now,
	};
}

void phases_begin_launcher(struct phases *phases, struct truth *truth, enum phase phase)
{
	phases_begin(phases, truth, phase);
	phases->is_launcher = true;
	phases->times_fd = times_open();
	phases->times = times_read(phases->times_fd);
}

static bool is_busy(enum phase phase)
{
	return phase == PHASE_GPU_COMPUTE || phase == PHASE_COLLECTIVE;
}

static u64 at_most(u64 value, u64 most)
{
	return value < most ? value : most;
}

static void idle_log(struct phases *phases, u64 now_ns, struct times times)
{
	u64 length = now_ns - phases->since_ns;
	u64 cpu = at_most(times.cpu_ns - phases->times.cpu_ns, length);
	u64 delay = times.delay_ns > phases->times.delay_ns
			    ? times.delay_ns - phases->times.delay_ns
			    : 0;

	truth_log(phases->truth, TRUTH_IDLE, (u16)phases->phase, phases->since_ns, now_ns, cpu,
		  at_most(delay, length - cpu), 0);
}

/*
 * Reads the thread's own times, unless the GPU has work before and after. Reading takes
 * some time, so when the GPU gets work next, the phase changes after the read.
 */
static u64 launcher_look(struct phases *phases, enum phase next, u64 now_ns)
{
	struct times times;

	if (is_busy(phases->phase) && is_busy(next))
		return now_ns;
	if (is_busy(next)) {
		times = times_read(phases->times_fd);
		now_ns = truth_now_ns();
	} else {
		times = times_at(phases->times_fd, now_ns);
	}
	if (!is_busy(phases->phase))
		idle_log(phases, now_ns, times);
	phases->times = times;
	return now_ns;
}

static void span_close(struct phases *phases, u64 now_ns)
{
	u64 since = phases->since_ns;
	u64 bound = since + defaults.optimizer_burst_max_ns;

	if (phases->phase == PHASE_OPTIMIZER && now_ns > bound) {
		truth_log(phases->truth, TRUTH_PHASE, PHASE_OPTIMIZER, since, bound, 0, 0, 0);
		truth_log(phases->truth, TRUTH_PHASE, PHASE_UNKNOWN, bound, now_ns, 0, 0, 0);
	} else {
		truth_log(phases->truth, TRUTH_PHASE, (u16)phases->phase, since, now_ns, 0, 0, 0);
	}
}

void phases_set(struct phases *phases, enum phase phase, u64 now_ns)
{
	if (phase == phases->phase)
		return;
	if (phases->is_launcher)
		now_ns = launcher_look(phases, phase, now_ns);
	span_close(phases, now_ns);
	phases->phase = phase;
	phases->since_ns = now_ns;
}

void phases_end(struct phases *phases, enum truth_role role, u64 now_ns)
{
	if (phases->is_launcher)
		launcher_look(phases, phases->phase, now_ns);
	span_close(phases, now_ns);
	truth_log(phases->truth, TRUTH_THREAD, (u16)role, phases->born_ns, now_ns, 0, 0, 0);
	if (phases->is_launcher && phases->times_fd >= 0)
		close(phases->times_fd);
}
