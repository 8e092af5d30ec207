/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "property/property.h"

#include "core/process.h"

#define STEPS 64

/* A process in any state, and the number of phase changes that a listener has seen. */
struct life {
	struct phase_config config;
	struct process_state process;
	u64 now;
	u64 nr_seen;
	u64 nr_counted; /* last value that readers have seen */
};

static bool has_expired(const struct life *life)
{
	const struct task_state *task = &life->process.task;

	return task->phase == PHASE_OPTIMIZER && !task->inferred &&
	       life->now > task->phase_since_ns + life->config.optimizer_burst_max_ns;
}

/*
 * A random event: a call, a check of the inferred evidence, the start or the end
 * of a wait for data.
 */
static void happen(struct random *r, struct life *life)
{
	struct process_state *process = &life->process;
	u32 what = random_below(r, 8);

	if (what < 4) {
		static const u32 calls[] = { BOUNDARY_LAUNCH, BOUNDARY_COLLECTIVE,
					     BOUNDARY_COLLECTIVE_DONE, BOUNDARY_SYNC_DONE };

		boundary_cross(&life->config, &process->task, calls[what], life->now);
	} else if (what == 4) {
		process->window.io_wait_ns = random_below(r, 2) * PROCESS_WINDOW_NS;
		process_infer(&life->config, process, random_below(r, 101), true, life->now);
	} else if (what == 5 && process->data_wait_since_ns) {
		process->woken_with_data = (u8)random_below(r, 2);
		process_data_ready(&life->config, process, life->now);
	} else if (!process->data_wait_since_ns) {
		process_data_wait(&life->config, process, life->now);
	}
}

/*
 * The counter is incremented at each end of a phase. It is decremented only if a
 * wait is revoked.
 */
static bool live(struct random *r, struct life *life)
{
	struct task_state before = life->process.task, *task = &life->process.task;
	bool waits = process_may_take_back(&life->process), expires = has_expired(life);

	happen(r, life);
	if (waits && !life->process.data_wait_since_ns && !life->process.woken_with_data) {
		life->nr_seen--;
		return task->nr_transitions == before.nr_transitions - 1;
	}
	if (task->phase_since_ns == before.phase_since_ns)
		return task->nr_transitions == before.nr_transitions;
	life->nr_seen += expires ? 1 + (task->phase != PHASE_UNKNOWN) : 1;
	return true;
}

static bool every_phase_change_is_counted_holds(struct random *r)
{
	struct life life = { .config = PHASE_CONFIG_DEFAULT,
			     .process.task.signals = { .is_ml = 1, .last_sync_ns = 1 },
			     .now = NSEC_PER_SEC };

	life.config.phase_stability_count = random_below(r, 3);
	for (u32 i = 0; i < STEPS; i++) {
		life.now += 1 + random_below(r, (u32)(2 * life.config.optimizer_burst_max_ns));
		if (!live(r, &life) || life.process.task.nr_transitions != life.nr_seen)
			return false;
	}
	return true;
}
PROPERTY(every_phase_change_is_counted, STEPS)

/* Prometheus would treat a decrease as a counter reset and count everything again. */
static bool the_counter_for_readers_never_decreases_holds(struct random *r)
{
	struct life life = { .config = PHASE_CONFIG_DEFAULT,
			     .process.task.signals = { .is_ml = 1, .last_sync_ns = 1 },
			     .now = NSEC_PER_SEC };

	for (u32 i = 0; i < STEPS; i++) {
		u64 nr;

		life.now += 1 + random_below(r, (u32)(2 * life.config.optimizer_burst_max_ns));
		happen(r, &life);
		nr = process_nr_transitions(&life.process);
		if (nr < life.nr_counted)
			return false;
		life.nr_counted = nr;
	}
	return true;
}
PROPERTY(the_counter_for_readers_never_decreases, STEPS)

int main(void)
{
	const struct CMUnitTest process_properties[] = {
		cmocka_unit_test(every_phase_change_is_counted),
		cmocka_unit_test(the_counter_for_readers_never_decreases),
	};

	return cmocka_run_group_tests(process_properties, NULL, NULL);
}
