/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/nice.h"
#include <stddef.h>

const struct nice_rule nice_rules[CLASS_SLOTS] = {
	[CLASS_FEEDER] = { -15, 1 * NSEC_PER_MSEC },
	[CLASS_WANTED_LOADER] = { -14, 0 },
	[CLASS_LATE_LOADER] = { -14, 0 },
};

/* The scheduler asks for the same evidence: see holds_gpu() in bpf/sched/classes.bpf.h. */
static const struct process_state *evident(const struct process_state *process)
{
	return process && process->holds_gpu ? process : NULL;
}

struct nice_sample nice_look(const struct thread_record *thread,
			     const struct process_state *process,
			     const struct process_state *consumer, u64 now)
{
	bool is_loader = thread->role == ROLE_LOADER;
	const struct process_state *user = evident(is_loader ? consumer : process);
	struct nice_sample sample = {
		.view = { .now = now },
		.cpu_ns = thread->cpu_ns,
		.sync_spin_ns = thread->sync_spin_ns,
		.sync_sleep_ns = thread->sync_sleep_ns,
	};

	if (!user)
		return sample;
	sample.view.role = thread->role;
	sample.view.last_sync_ns = user->task.signals.last_sync_ns;
	sample.view.cycle_ns = step_cycle_ns(&user->step);
	sample.view.device_busy = phase_is_busy(user->task.phase);
	sample.view.polls = thread->role == ROLE_LAUNCHER && thread->polls;
	sample.view.in_collective = user->task.phase == PHASE_COLLECTIVE;
	/* A sample cannot see the moment at which a launcher waits. */
	sample.view.awaited = thread->role == ROLE_CRITICAL;
	sample.view.consumer_waits = is_loader && user->data_wait_since_ns;
	sample.view.consumer_waited =
		is_loader && user->data_waited_ns && now < user->data_waited_ns + LATE_MAX_NS;
	return sample;
}

static bool has_passed(u64 since_ns, u64 length_ns, u64 now)
{
	return !since_ns || now >= since_ns + length_ns;
}

/* Before the first sample, all that the thread did so far counts. */
static u64 passed_ns(const struct nice_sample *last, const struct nice_sample *sample)
{
	return last->view.now ? sample->view.now - last->view.now : 0;
}

static bool spins(const struct nice_sample *last, const struct nice_sample *sample)
{
	u64 spun_ns = sample->sync_spin_ns - last->sync_spin_ns;
	u64 slept_ns = sample->sync_sleep_ns - last->sync_sleep_ns;

	return spun_ns > slept_ns && spun_ns > passed_ns(last, sample) / NICE_SPIN_PART;
}

static bool polls(const struct nice_sample *last, const struct nice_sample *sample)
{
	if (sample->view.polls)
		return true;
	return sample->view.role == ROLE_COLLECTIVE_HELPER && last->view.now &&
	       sample->cpu_ns - last->cpu_ns > passed_ns(last, sample) / NICE_POLL_PART;
}

/*
 * The class of a sample. A helper counts as just woken, because it slept since the last sample.
 * Its first sample does not show whether it polls instead.
 */
static u32 class_of_sample(const struct nice_sample *last, const struct nice_sample *sample,
			   u32 rules_off)
{
	struct class_view view = sample->view;

	view.woken = view.role == ROLE_COLLECTIVE_HELPER && last->view.now;
	return class_of(&view, rules_off);
}

u32 nice_decide(struct nice_state *state, const struct nice_sample *sample, u32 rules_off)
{
	u64 now = sample->view.now;
	u32 class = class_of_sample(&state->last, sample, rules_off);

	if (spins(&state->last, sample) || polls(&state->last, sample))
		state->spun_ns = now;
	state->last = *sample;
	if (!has_passed(state->spun_ns, NICE_SPUN_HOLD_NS, now)) {
		state->promoted_ns = 0;
		state->class = CLASS_SPINNER;
	} else if (nice_rules[class].nice) {
		state->promoted_ns = now;
		state->class = class;
	} else if (has_passed(state->promoted_ns, NICE_HOLD_NS, now)) {
		state->promoted_ns = 0;
		state->class = CLASS_ORDINARY;
	}
	return state->class;
}
