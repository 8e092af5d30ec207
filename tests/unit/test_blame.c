/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "core/blame.h"

#define SPAN_NS (10 * NSEC_PER_SEC)

/* A job with several ranks, one GPU per rank: snapshots before and after a span. */
struct span {
	struct snapshot *before, *after;
};

static struct snapshot *make(u32 nr_ranks, u64 now_ns)
{
	const struct snapshot_limits limits = { 4, 8, 8, 8, 16 };
	struct snapshot *s;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	s->monotonic_ns = now_ns;
	for (u32 i = 0; i < nr_ranks; i++) {
		struct snapshot_process *process = snapshot_add_process(s, 100 + i);
		struct snapshot_gpu *gpu = snapshot_add_gpu(s, i);

		process->job = snapshot_add_job(s, "/job", "job");
		process->start_ns = 5 + i;
		process->nr_ranks = nr_ranks;
		process->rank = (s32)i;
		process->nr_memory = 1;
		process->memory[0].gpu = i;
		process->busy_ns = 1000;
		gpu->valid = SNAPSHOT_GPU_ACTIVE;
		gpu->active_at_ns = now_ns;
	}
	return s;
}

static struct span span_new(u32 nr_ranks)
{
	return (struct span){ make(nr_ranks, 1), make(nr_ranks, 1 + SPAN_NS) };
}

static void span_free(struct span span)
{
	snapshot_free(span.before);
	snapshot_free(span.after);
}

static struct blame blame_of(struct span span, u32 rank)
{
	struct blame blame;

	assert_int_equal(
		blame_process(span.before, span.after, &span.after->processes[rank], &blame), 0);
	return blame;
}

static void causes_are_differences_and_add_up(void **state)
{
	struct span span = span_new(1);
	struct snapshot_process *now = &span.after->processes[0];
	struct blame blame;

	span.before->processes[0].idle_ns[IDLE_DISK] = 7;
	now->busy_ns += 6000;
	now->idle_ns[IDLE_DISK] = 7 + 3000;
	now->idle_ns[IDLE_LOADER_RUNQUEUE] = 4000;
	blame = blame_of(span, 0);
	assert_int_equal(blame.wall_ns, SPAN_NS);
	assert_int_equal(blame.busy_ns, 6000);
	assert_int_equal(blame.idle_ns, 7000);
	assert_int_equal(blame.cause_ns[IDLE_DISK], 3000);
	assert_int_equal(blame_watched_ns(&blame), 13000);
	assert_int_equal(blame_largest_cause(&blame), IDLE_LOADER_RUNQUEUE);
	assert_int_equal(blame.waited, WAITED_UNKNOWN);
	span_free(span);
}

static void no_idle_time_has_no_cause(void **state)
{
	struct span span = span_new(1);
	struct blame blame = blame_of(span, 0);

	assert_int_equal(blame_largest_cause(&blame), IDLE_CAUSE_NR);
	assert_int_equal(blame_watched_ns(&blame), 0);
	assert_int_equal(blame.nr_steps, 0);
	assert_int_equal(blame.steps.count, 0);
	span_free(span);
}

static void a_reused_pid_is_another_process(void **state)
{
	struct span span = span_new(1);
	struct snapshot_process *now = &span.after->processes[0];
	struct blame blame;

	now->start_ns++;
	assert_int_equal(blame_process(span.before, span.after, now, &blame), -ESRCH);
	now->start_ns--;
	span.before->nr_processes = 0;
	assert_int_equal(blame_process(span.before, span.after, now, &blame), -ESRCH);
	span_free(span);
}

static void a_counter_that_decreased_gives_no_result(void **state)
{
	struct span span = span_new(1);
	struct snapshot_process *then = &span.before->processes[0];
	struct snapshot_process *now = &span.after->processes[0];
	u64 *const counters[] = {
		&then->busy_ns,	   &then->idle_ns[IDLE_OTHER],	      &then->open_ns[IDLE_CPU],
		&then->blocked_ns, &then->phase_ns[PHASE_COLLECTIVE], &span.before->monotonic_ns
	};
	struct blame blame;

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		u64 was = *counters[i];

		*counters[i] = ~0ULL;
		assert_int_equal(blame_process(span.before, span.after, now, &blame), -ESTALE);
		*counters[i] = was;
	}
	span.before->monotonic_ns = span.after->monotonic_ns;
	assert_int_equal(blame_process(span.before, span.after, now, &blame), -ESTALE);
	span_free(span);
}

static void only_steps_in_the_span_count(void **state)
{
	struct span span = span_new(1);
	struct snapshot_process *then = &span.before->processes[0];
	struct snapshot_process *now = &span.after->processes[0];
	struct hist *old = snapshot_add_hist(span.before, &then->hists, HIST_STEP);
	struct hist *new = snapshot_add_hist(span.after, &now->hists, HIST_STEP);
	struct blame blame;

	hist_record(old, 90 * NSEC_PER_SEC);
	*new = *old;
	for (u32 i = 0; i < 100; i++)
		hist_record(new, 20 * NSEC_PER_MSEC);
	then->nr_steps = 1;
	now->nr_steps = 101;
	blame = blame_of(span, 0);
	assert_int_equal(blame.nr_steps, 100);
	assert_int_equal(blame.steps.count, 100);
	assert_int_equal(hist_mean(&blame.steps), 20 * NSEC_PER_MSEC);
	assert_int_equal(hist_index(hist_quantile(&blame.steps, 990)),
			 hist_index(20 * NSEC_PER_MSEC));
	/* If the steps decreased, only the steps are unknown. */
	hist_record(old, 1);
	then->nr_steps = 200;
	blame = blame_of(span, 0);
	assert_int_equal(blame.nr_steps, 0);
	assert_int_equal(blame.steps.count, 0);
	span_free(span);
}

static void add_culprit(struct snapshot_process *process, u32 cause, u64 ns, const char *name)
{
	struct snapshot_culprit *culprit = &process->culprits[process->nr_culprits++];

	culprit->cause = cause;
	culprit->ns = ns;
	snapshot_set_text(culprit->name, sizeof(culprit->name), name, strlen(name));
}

static void only_culprits_in_the_span_count(void **state)
{
	struct span span = span_new(1);
	struct snapshot_process *then = &span.before->processes[0];
	struct snapshot_process *now = &span.after->processes[0];
	struct blame blame;

	add_culprit(then, IDLE_RUNQUEUE, 900, "old");
	add_culprit(then, IDLE_RUNQUEUE, 500, "cc1");
	add_culprit(then, IDLE_RUNQUEUE, 90, "back");
	now->idle_ns[IDLE_RUNQUEUE] = 700;
	now->idle_ns[IDLE_DISK] = 60;
	add_culprit(now, IDLE_RUNQUEUE, 900, "old");
	add_culprit(now, IDLE_RUNQUEUE, 800, "cc1");
	add_culprit(now, IDLE_RUNQUEUE, 400, "ld");
	add_culprit(now, IDLE_DISK, 70, "cc1");
	add_culprit(now, IDLE_RUNQUEUE, 80, "back");
	blame = blame_of(span, 0);
	assert_int_equal(blame.nr_culprits, 3);
	assert_string_equal(blame.culprits[0].name, "ld");
	assert_int_equal(blame.culprits[0].ns, 400);
	assert_string_equal(blame.culprits[1].name, "cc1");
	assert_int_equal(blame.culprits[1].ns, 300);
	/* The same name with another cause is another culprit. Its time is limited by the cause. */
	assert_int_equal(blame.culprits[2].cause, IDLE_DISK);
	assert_int_equal(blame.culprits[2].ns, 60);
	span_free(span);
}

static void a_new_culprit_counts_only_its_certain_time(void **state)
{
	static const char *const names[CULPRITS_MAX] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	struct span span = span_new(1);
	struct snapshot_process *now = &span.after->processes[0];
	struct blame blame;

	for (u32 i = 0; i < CULPRITS_MAX; i++)
		add_culprit(&span.before->processes[0], IDLE_RUNQUEUE, 100 - i, names[i]);
	now->idle_ns[IDLE_RUNQUEUE] = 1000;
	add_culprit(now, IDLE_RUNQUEUE, 500, "new");
	blame = blame_of(span, 0);
	assert_int_equal(blame.nr_culprits, 1);
	assert_int_equal(blame.culprits[0].ns, 500 - 93);
	span_free(span);
}

/* In the span, the GPU of the rank was busy for `busy_ns` and active for `active_ns`. */
static void set_rank(struct span span, u32 rank, u64 collective_ns, u64 busy_ns, u64 active_ns)
{
	struct snapshot_process *now = &span.after->processes[rank];

	now->busy_ns = span.before->processes[rank].busy_ns + busy_ns;
	now->phase_ns[PHASE_COLLECTIVE] = collective_ns;
	span.after->gpus[rank].active_ns = span.before->gpus[rank].active_ns + active_ns;
}

/* The result for a rank that was compared with the other ranks. */
static struct blame compared(struct span span, u32 rank)
{
	struct blame blames[8];
	u32 nr = span.after->nr_processes;

	for (u32 i = 0; i < nr; i++)
		blames[i] = blame_of(span, i);
	blame_measure_waiting(blames, nr);
	return blames[rank];
}

static void waiting_in_a_collective_is_busy_but_not_active(void **state)
{
	struct span span = span_new(2);

	set_rank(span, 1, 0, 900, 900);
	set_rank(span, 0, 400, 900, 600);
	assert_int_equal(compared(span, 0).waited, WAITED_MEASURED);
	assert_int_equal(compared(span, 0).waited_ns, 300);
	/* The wait is never longer than the time in collectives, and never negative. */
	set_rank(span, 0, 400, 900, 100);
	assert_int_equal(compared(span, 0).waited_ns, 400);
	set_rank(span, 0, 400, 900, 1000);
	assert_int_equal(compared(span, 0).waited_ns, 0);
	span_free(span);
}

/* Activity is compared with the busy time by the same counters, where it exists. */
static void activity_is_compared_with_its_own_counter(void **state)
{
	struct span span = span_new(2);

	set_rank(span, 1, 0, 900, 900);
	set_rank(span, 0, 400, 900, 600);
	for (u32 i = 0; i < 2; i++) {
		struct snapshot_gpu *gpu = i ? span.after->gpus : span.before->gpus;

		gpu->valid |= SNAPSHOT_GPU_BUSY_TIME;
		gpu->busy_counter = GPU_COUNTER_GPM;
		gpu->busy_at_ns = gpu->active_at_ns;
		gpu->busy_ns = i * 700;
	}
	assert_int_equal(compared(span, 0).waited_ns, 100);
	span.after->gpus[0].busy_since_ns = 1;
	assert_int_equal(compared(span, 0).waited_ns, 300);
	span_free(span);
}

/* Kernels that leave a part of the GPU free look like waiting. */
static void kernels_that_do_not_fill_the_gpu_give_an_upper_bound(void **state)
{
	struct span span = span_new(2);

	set_rank(span, 0, 400, 1000, 600);
	set_rank(span, 1, 400, 1000, 899);
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	assert_int_equal(compared(span, 0).waited_ns, 400);
	set_rank(span, 1, 400, 1000, 900);
	assert_int_equal(compared(span, 0).waited, WAITED_MEASURED);
	assert_int_equal(compared(span, 1).waited, WAITED_MEASURED);
	/* The kernels of another job, or of another stage, say nothing. */
	span.after->processes[1].job = 0;
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	span.after->processes[1].job = span.after->processes[0].job;
	span.after->processes[1].collectives.nr[DETAIL_SEND - COLLECTIVE_FIRST] = 1;
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	span_free(span);
}

static void without_gpu_activity_the_wait_is_an_upper_bound(void **state)
{
	struct span span = span_new(3);

	set_rank(span, 0, 400, 900, 600);
	set_rank(span, 2, 0, 900, 900);
	span.before->gpus[0].valid = 0;
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	assert_int_equal(compared(span, 0).waited_ns, 400);
	span.before->gpus[0].valid = SNAPSHOT_GPU_ACTIVE;
	/* Two ranks share the GPU, so its activity is the sum of both. */
	span.after->processes[1].memory[0].gpu = 0;
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	/* A rank whose GPU is unknown may share any GPU, and its own activity is unknown. */
	span.after->processes[1].memory[0].gpu = SNAPSHOT_GPU_UNKNOWN;
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	assert_int_equal(compared(span, 1).waited, WAITED_AT_MOST);
	span.after->processes[1].memory[0].gpu = 1;
	assert_int_equal(compared(span, 0).waited, WAITED_MEASURED);
	span.after->processes[0].nr_memory = 2;
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	span.after->processes[0].nr_memory = 1;
	span.before->gpus[0].active_ns = ~0ULL;
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	span_free(span);
}

/* The GPU was sampled some time before each snapshot, and these times differ. */
static void activity_is_scaled_from_its_samples_to_the_span(void **state)
{
	struct span span = span_new(2);

	set_rank(span, 1, 0, SPAN_NS, SPAN_NS);
	set_rank(span, 0, SPAN_NS / 2, SPAN_NS, SPAN_NS / 4);
	span.after->gpus[0].active_at_ns -= SPAN_NS / 2;
	assert_int_equal(compared(span, 0).waited, WAITED_MEASURED);
	assert_int_equal(compared(span, 0).waited_ns, SPAN_NS / 2);
	span.after->gpus[0].active_at_ns = span.before->gpus[0].active_at_ns;
	assert_int_equal(compared(span, 0).waited, WAITED_AT_MOST);
	span_free(span);
}

static int straggler_of(struct span span, u32 nr, struct blame_straggler *ret)
{
	struct blame blames[8];

	for (u32 i = 0; i < nr; i++)
		blames[i] = blame_of(span, i);
	blame_measure_waiting(blames, nr);
	return blame_find_straggler(blames, nr, nr - 1, ret);
}

static void the_straggler_waits_least(void **state)
{
	const u64 percent = SPAN_NS / 100;
	struct blame_straggler straggler;
	struct span span = span_new(4);

	for (u32 i = 0; i < 4; i++)
		set_rank(span, i, 50 * percent, 90 * percent, 50 * percent);
	assert_int_equal(straggler_of(span, 4, &straggler), -ENOENT);
	set_rank(span, 2, 50 * percent, 90 * percent, 88 * percent);
	assert_int_equal(straggler_of(span, 4, &straggler), 0);
	assert_int_equal(straggler.at, 2);
	assert_int_equal(straggler.nr_ranks, 4);
	assert_int_equal(straggler.lead_ns, 38 * percent);
	assert_true(straggler.is_measured);
	/* The limit is 10 % of the span. */
	for (u32 i = 0; i < 4; i++)
		set_rank(span, i, 50 * percent, 90 * percent, (i == 2 ? 88 : 78) * percent);
	assert_int_equal(straggler_of(span, 4, &straggler), 0);
	for (u32 i = 0; i < 4; i++)
		set_rank(span, i, 50 * percent, 90 * percent, (i == 2 ? 88 : 79) * percent);
	assert_int_equal(straggler_of(span, 4, &straggler), -ENOENT);
	/* If one rank is not measured, all ranks are compared by their time in the phase. */
	set_rank(span, 1, 5 * percent, 90 * percent, 10 * percent);
	span.after->gpus[3].valid = 0;
	assert_int_equal(straggler_of(span, 4, &straggler), 0);
	assert_int_equal(straggler.at, 1);
	assert_false(straggler.is_measured);
	span_free(span);
}

static void only_ranks_of_one_job_are_compared(void **state)
{
	const u64 percent = SPAN_NS / 100;
	struct blame_straggler straggler;
	struct span span = span_new(2);

	set_rank(span, 0, 60 * percent, 90 * percent, 40 * percent);
	set_rank(span, 1, 60 * percent, 90 * percent, 85 * percent);
	assert_int_equal(straggler_of(span, 2, &straggler), 0);
	assert_int_equal(straggler.at, 1);
	span.after->processes[0].nr_ranks = 8;
	assert_int_equal(straggler_of(span, 2, &straggler), -ENOENT);
	span.after->processes[0].nr_ranks = 2;
	span.after->processes[0].job = 0;
	assert_int_equal(straggler_of(span, 2, &straggler), -ENOENT);
	span_free(span);
}

static void stages_of_a_pipeline_are_not_compared(void **state)
{
	const u64 percent = SPAN_NS / 100;
	struct blame_straggler straggler;
	struct span span = span_new(4);

	for (u32 i = 0; i < 4; i++)
		set_rank(span, i, (i == 1 ? 5 : 50) * percent, 90 * percent, 0);
	assert_int_equal(straggler_of(span, 4, &straggler), 0);
	assert_int_equal(straggler.at, 1);
	for (u32 i = 0; i < 4; i++) {
		u64 *nr = span.after->processes[i].collectives.nr;

		nr[DETAIL_SEND - COLLECTIVE_FIRST] = nr[DETAIL_RECV - COLLECTIVE_FIRST] = 8;
		nr[DETAIL_ALL_REDUCE - COLLECTIVE_FIRST] = 15;
	}
	assert_int_equal(straggler_of(span, 4, &straggler), -ENOENT);
	/* Ranks that mostly meet all ranks are compared, and so are calls in the span alone. */
	for (u32 i = 0; i < 4; i++)
		span.before->processes[i].collectives.nr[DETAIL_SEND - COLLECTIVE_FIRST] = 1;
	assert_int_equal(straggler_of(span, 4, &straggler), 0);
	span_free(span);
}

/* In the span, the process has these times; a counter of its GPU counted `counter_ns`. */
static void set_open(struct span span, u64 busy_ns, u64 idle_ns, u64 open_ns, u64 counter_ns)
{
	struct snapshot_process *now = &span.after->processes[0];

	now->busy_ns = span.before->processes[0].busy_ns + busy_ns;
	now->idle_ns[IDLE_DISK] = idle_ns;
	now->open_ns[IDLE_CPU] = open_ns;
	for (u32 i = 0; i < 2; i++) {
		struct snapshot_gpu *gpu = i ? span.after->gpus : span.before->gpus;

		gpu->valid = SNAPSHOT_GPU_BUSY_TIME;
		gpu->busy_ns = 77 + i * counter_ns;
		gpu->busy_since_ns = 1;
		gpu->busy_at_ns = (i ? span.after : span.before)->monotonic_ns;
		gpu->busy_counter = GPU_COUNTER_GPM;
	}
}

static void assert_percent(u64 ns, double least, double most)
{
	double percent = 100 * (double)ns / (double)SPAN_NS;

	if (percent < least || percent > most)
		fail_msg("%.2f %% is not from %.2f to %.2f", percent, least, most);
}

static void open_time_gives_a_range(void **state)
{
	const u64 percent = SPAN_NS / 100;
	struct span span = span_new(1);
	struct snapshot_process *now = &span.after->processes[0];
	struct blame blame;

	set_open(span, 10 * percent, 20 * percent, 50 * percent, 0);
	span.after->gpus[0].valid = 0;
	now->open_ns[IDLE_LOCK] = 20 * percent;
	now->blocked_ns = 10 * percent;
	blame = blame_of(span, 0);
	assert_int_equal(blame_watched_ns(&blame), SPAN_NS);
	assert_int_equal(blame.idle_min_ns, 20 * percent);
	assert_int_equal(blame.idle_max_ns, 80 * percent);
	assert_false(blame.is_measured);
	/* The middle of the range is divided by what the launcher did. */
	assert_int_equal(blame.idle_ns, 50 * percent);
	assert_int_equal(blame.cause_ns[IDLE_DISK], 20 * percent);
	assert_int_equal(blame.cause_ns[IDLE_CPU], 20 * percent);
	assert_int_equal(blame.launching_ns, 20 * percent);
	assert_int_equal(blame.cause_ns[IDLE_LOCK], 10 * percent);
	span_free(span);
}

static void a_counter_narrows_the_range(void **state)
{
	const u64 percent = SPAN_NS / 100;
	struct span span = span_new(1);
	struct blame blame;

	set_open(span, 10 * percent, 20 * percent, 70 * percent, 35 * percent);
	blame = blame_of(span, 0);
	assert_true(blame.is_measured);
	assert_percent(blame.idle_min_ns, 64.7, 65);
	assert_percent(blame.idle_max_ns, 65, 65.3);
	assert_percent(blame.cause_ns[IDLE_CPU], 44.9, 45.1);
	assert_percent(blame.cause_ns[IDLE_DISK], 20, 20);
	/* Utilization counts whole percent. */
	span.before->gpus[0].busy_counter = span.after->gpus[0].busy_counter =
		GPU_COUNTER_UTILIZATION;
	blame = blame_of(span, 0);
	assert_percent(blame.idle_min_ns, 63.9, 64.1);
	assert_percent(blame.idle_max_ns, 65.9, 66.1);
	/* Between the sample and the snapshot, the GPU may have worked or not. */
	span.before->gpus[0].busy_at_ns -= 2 * percent;
	span.after->gpus[0].busy_at_ns -= 3 * percent;
	span.before->monotonic_ns += 5 * percent;
	span.after->monotonic_ns += 5 * percent;
	span.before->gpus[0].busy_at_ns += 5 * percent;
	span.after->gpus[0].busy_at_ns += 5 * percent;
	blame = blame_of(span, 0);
	assert_percent(blame.idle_min_ns, 60.9, 61.1);
	assert_percent(blame.idle_max_ns, 67.9, 68.1);
	span_free(span);
}

static void a_counter_that_does_not_fit_is_ignored(void **state)
{
	const u64 percent = SPAN_NS / 100;
	struct span span = span_new(2);
	struct snapshot_gpu *then = span.before->gpus, *now = span.after->gpus;
	u64 *const fields[] = { &then->busy_since_ns, &then->busy_ns, &then->busy_at_ns };

	set_open(span, 10 * percent, 20 * percent, 70 * percent, 35 * percent);
	assert_true(blame_of(span, 0).is_measured);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		u64 was = *fields[i];

		*fields[i] = SPAN_NS * 2;
		assert_false(blame_of(span, 0).is_measured);
		*fields[i] = was;
	}
	then->busy_counter = GPU_COUNTER_ENGINE;
	assert_false(blame_of(span, 0).is_measured);
	then->busy_counter = GPU_COUNTER_GPM;
	/* A sum cannot grow faster than time. */
	now->busy_ns += SPAN_NS;
	assert_false(blame_of(span, 0).is_measured);
	now->busy_ns -= SPAN_NS;
	/* Another process may use the GPU. */
	span.before->processes[1].memory[0].gpu = SNAPSHOT_GPU_UNKNOWN;
	assert_false(blame_of(span, 0).is_measured);
	span.before->processes[1].memory[0].gpu = 1;
	assert_true(blame_of(span, 0).is_measured);
	/* A counter that stopped early covers almost nothing. */
	now->busy_at_ns = then->busy_at_ns + 1000;
	now->busy_ns = then->busy_ns;
	assert_false(blame_of(span, 0).is_measured);
	assert_false(blame_of(span, 0).disagrees);
	span_free(span);
}

static void a_counter_may_contradict_the_account(void **state)
{
	const u64 percent = SPAN_NS / 100;
	struct span span = span_new(1);
	struct blame blame;

	/* A small difference belongs to the range. */
	set_open(span, 60 * percent, 40 * percent, 0, 65 * percent);
	blame = blame_of(span, 0);
	assert_false(blame.disagrees);
	assert_percent(blame.idle_min_ns, 35, 35.3);
	assert_percent(blame.idle_max_ns, 40, 40);
	assert_percent(blame.idle_ns, 37, 38);
	/* The same, but the GPU was idle in time that the account has as busy: no cause is added.
	 */
	set_open(span, 60 * percent, 40 * percent, 0, 55 * percent);
	blame = blame_of(span, 0);
	assert_percent(blame.idle_max_ns, 44.7, 45);
	assert_percent(blame.idle_ns, 40, 40);
	assert_false(blame.disagrees);
	/* A difference of more than 10 points is a contradiction. */
	set_open(span, 60 * percent, 40 * percent, 0, 49 * percent);
	blame = blame_of(span, 0);
	assert_true(blame.disagrees);
	assert_false(blame.is_measured);
	assert_int_equal(blame.idle_ns, 40 * percent);
	assert_percent(blame.counter_idle_ns, 50.9, 51.1);
	set_open(span, 60 * percent, 40 * percent, 0, 51 * percent);
	assert_false(blame_of(span, 0).disagrees);
	span_free(span);
}

/* A pending sleep is booked in a later span: the account then has more time than passed. */
static void time_that_only_the_account_has_widens_the_range(void **state)
{
	const u64 percent = SPAN_NS / 100;
	struct span span = span_new(1);
	struct blame blame;

	set_open(span, 10 * percent, 20 * percent, 75 * percent, 35 * percent);
	blame = blame_of(span, 0);
	assert_percent(blame.idle_min_ns, 64.7, 65);
	assert_percent(blame.idle_max_ns, 70, 70.3);
	set_open(span, 10 * percent, 20 * percent, 65 * percent, 35 * percent);
	blame = blame_of(span, 0);
	assert_percent(blame.idle_min_ns, 59.7, 60);
	assert_percent(blame.idle_max_ns, 65, 65.3);
	span_free(span);
}

static void a_culprit_gets_its_part_of_open_time(void **state)
{
	struct span span = span_new(1);
	struct snapshot_process *now = &span.after->processes[0];
	struct blame blame;

	now->idle_ns[IDLE_RUNQUEUE] = 1000;
	now->open_ns[IDLE_RUNQUEUE] = 2000;
	add_culprit(now, IDLE_RUNQUEUE, 1500, "cc1");
	blame = blame_of(span, 0);
	assert_int_equal(blame.cause_ns[IDLE_RUNQUEUE], 2000);
	assert_int_equal(blame.culprits[0].ns, 1000);
	span_free(span);
}

static void shares_are_rounded(void **state)
{
	assert_int_equal(blame_permille(1, 3), 333);
	assert_int_equal(blame_permille(2, 3), 667);
	assert_int_equal(blame_permille(0, 0), 0);
	assert_int_equal(blame_permille(3600 * NSEC_PER_SEC, 3600 * NSEC_PER_SEC), 1000);
	assert_int_equal(blame_permille(~0ULL, ~0ULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(causes_are_differences_and_add_up),
		cmocka_unit_test(no_idle_time_has_no_cause),
		cmocka_unit_test(a_reused_pid_is_another_process),
		cmocka_unit_test(a_counter_that_decreased_gives_no_result),
		cmocka_unit_test(only_steps_in_the_span_count),
		cmocka_unit_test(only_culprits_in_the_span_count),
		cmocka_unit_test(a_new_culprit_counts_only_its_certain_time),
		cmocka_unit_test(waiting_in_a_collective_is_busy_but_not_active),
		cmocka_unit_test(without_gpu_activity_the_wait_is_an_upper_bound),
		cmocka_unit_test(activity_is_scaled_from_its_samples_to_the_span),
		cmocka_unit_test(the_straggler_waits_least),
		cmocka_unit_test(only_ranks_of_one_job_are_compared),
		cmocka_unit_test(activity_is_compared_with_its_own_counter),
		cmocka_unit_test(kernels_that_do_not_fill_the_gpu_give_an_upper_bound),
		cmocka_unit_test(stages_of_a_pipeline_are_not_compared),
		cmocka_unit_test(open_time_gives_a_range),
		cmocka_unit_test(a_counter_narrows_the_range),
		cmocka_unit_test(a_counter_that_does_not_fit_is_ignored),
		cmocka_unit_test(a_counter_may_contradict_the_account),
		cmocka_unit_test(time_that_only_the_account_has_widens_the_range),
		cmocka_unit_test(a_culprit_gets_its_part_of_open_time),
		cmocka_unit_test(shares_are_rounded),
	};

	return cmocka_run_group_tests_name("blame", tests, NULL, NULL);
}
