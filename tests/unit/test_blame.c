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
	u64 *const counters[] = { &then->busy_ns, &then->idle_ns[IDLE_OTHER],
				  &then->phase_ns[PHASE_COLLECTIVE], &span.before->monotonic_ns };
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

static void waiting_in_a_collective_is_busy_but_not_active(void **state)
{
	struct span span = span_new(2);
	struct blame blame;

	set_rank(span, 0, 400, 900, 600);
	blame = blame_of(span, 0);
	assert_int_equal(blame.waited, WAITED_MEASURED);
	assert_int_equal(blame.waited_ns, 300);
	/* The wait is never longer than the time in collectives, and never negative. */
	set_rank(span, 0, 400, 900, 100);
	assert_int_equal(blame_of(span, 0).waited_ns, 400);
	set_rank(span, 0, 400, 900, 1000);
	assert_int_equal(blame_of(span, 0).waited_ns, 0);
	span_free(span);
}

static void without_gpu_activity_the_wait_is_an_upper_bound(void **state)
{
	struct span span = span_new(2);

	set_rank(span, 0, 400, 900, 600);
	span.before->gpus[0].valid = 0;
	assert_int_equal(blame_of(span, 0).waited, WAITED_AT_MOST);
	assert_int_equal(blame_of(span, 0).waited_ns, 400);
	span.before->gpus[0].valid = SNAPSHOT_GPU_ACTIVE;
	/* Two ranks share the GPU, so its activity is the sum of both. */
	span.after->processes[1].memory[0].gpu = 0;
	assert_int_equal(blame_of(span, 0).waited, WAITED_AT_MOST);
	/* A rank whose GPU is unknown may share any GPU, and its own activity is unknown. */
	span.after->processes[1].memory[0].gpu = SNAPSHOT_GPU_UNKNOWN;
	assert_int_equal(blame_of(span, 0).waited, WAITED_AT_MOST);
	assert_int_equal(blame_of(span, 1).waited, WAITED_AT_MOST);
	span.after->processes[1].memory[0].gpu = 1;
	assert_int_equal(blame_of(span, 0).waited, WAITED_MEASURED);
	span.after->processes[0].nr_memory = 2;
	assert_int_equal(blame_of(span, 0).waited, WAITED_AT_MOST);
	span.after->processes[0].nr_memory = 1;
	span.before->gpus[0].active_ns = ~0ULL;
	assert_int_equal(blame_of(span, 0).waited, WAITED_AT_MOST);
	span_free(span);
}

/* The GPU was sampled some time before each snapshot, and these times differ. */
static void activity_is_scaled_from_its_samples_to_the_span(void **state)
{
	struct span span = span_new(2);

	set_rank(span, 0, SPAN_NS / 2, SPAN_NS, SPAN_NS / 4);
	span.after->gpus[0].active_at_ns -= SPAN_NS / 2;
	assert_int_equal(blame_of(span, 0).waited, WAITED_MEASURED);
	assert_int_equal(blame_of(span, 0).waited_ns, SPAN_NS / 2);
	span.after->gpus[0].active_at_ns = span.before->gpus[0].active_at_ns;
	assert_int_equal(blame_of(span, 0).waited, WAITED_AT_MOST);
	span_free(span);
}

static int straggler_of(struct span span, u32 nr, struct blame_straggler *ret)
{
	struct blame blames[8];

	for (u32 i = 0; i < nr; i++)
		blames[i] = blame_of(span, i);
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
	set_rank(span, 2, 50 * percent, 90 * percent, 60 * percent);
	assert_int_equal(straggler_of(span, 4, &straggler), 0);
	set_rank(span, 2, 50 * percent, 90 * percent, 59 * percent);
	assert_int_equal(straggler_of(span, 4, &straggler), -ENOENT);
	/* If one rank is not measured, all ranks are compared by their time in the phase. */
	set_rank(span, 2, 50 * percent, 90 * percent, 88 * percent);
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
		cmocka_unit_test(shares_are_rounded),
	};

	return cmocka_run_group_tests_name("blame", tests, NULL, NULL);
}
