/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/snapshot.h"

static struct snapshot *make(u32 nr)
{
	struct snapshot_limits limits = { nr, nr, nr, nr, nr, nr };
	struct snapshot *s = NULL;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	return s;
}

static void test_items_that_do_not_fit_are_counted(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make(1);
	struct snapshot_process *process = snapshot_add_process(s, 7);

	assert_int_equal(process->pid, 7);
	assert_null(snapshot_add_process(s, 8));
	assert_non_null(snapshot_add_thread(s, 7, ROLE_LOADER));
	assert_null(snapshot_add_thread(s, 8, ROLE_LOADER));
	assert_non_null(snapshot_add_gpu(s, 0));
	assert_null(snapshot_add_gpu(s, 1));
	assert_int_equal(snapshot_add_comm(s, 7)->pid, 7);
	assert_null(snapshot_add_comm(s, 8));
	assert_int_equal(snapshot_add_job(s, "/a", "a"), 1);
	assert_int_equal(snapshot_add_job(s, "/a", "a"), 1);
	assert_int_equal(snapshot_add_job(s, "/b", "b"), 0);
	assert_non_null(snapshot_add_hist(s, &process->hists, HIST_SYNC_WAIT));
	assert_non_null(snapshot_add_hist(s, &process->hists, HIST_SYNC_WAIT));
	assert_null(snapshot_add_hist(s, &process->hists, HIST_LOADER_WAIT));
	for (u32 drop = DROP_SNAPSHOT_PROCESSES; drop < DROP_STACKS; drop++)
		assert_int_equal(s->nr_dropped[drop], 1);
	assert_int_equal(s->nr_role[ROLE_LOADER], 2);
}

static void test_snapshot_limits_are_enforced(void **state)
{
	struct snapshot_limits limits = SNAPSHOT_LIMITS_MAX;
	struct snapshot *s = NULL;

	limits.nr_threads++;
	assert_int_equal(snapshot_new(&limits, &s), -E2BIG);
	assert_null(s);
	s = make(0);
	assert_null(snapshot_add_process(s, 1));
	snapshot_free(s);
}

static struct snapshot_process *add_worker(struct snapshot *s, u32 pid, const char *cgroup,
					   u32 nr_samples)
{
	struct snapshot_process *process = snapshot_add_process(s, pid);

	process->job = snapshot_add_job(s, cgroup, cgroup);
	process->collectives.nr[0] = nr_samples;
	process->collectives.bytes[0] = 100ULL * nr_samples;
	for (u32 i = 0; i < nr_samples; i++)
		hist_record(snapshot_add_hist(s, &process->hists, HIST_SYNC_WAIT), 1000 + i);
	return process;
}

static u64 count(const struct snapshot *s, const struct snapshot_hists *hists)
{
	const struct hist *hist = snapshot_hist(s, hists, HIST_SYNC_WAIT);

	return hist ? hist->count : 0;
}

static void check_gone(const struct snapshot_collectives *gone, u64 nr)
{
	assert_int_equal(gone->nr[0], nr);
	assert_int_equal(gone->bytes[0], 100 * nr);
}

/* The sum over the processes of a job, including exited ones, never decreases. */
static void test_values_of_exited_processes_stay(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *one = make(8), *two = make(8);
	struct snapshot *spare;

	add_worker(one, 1, "/job", 10);
	add_worker(one, 2, "/job", 20);
	add_worker(one, 3, "/other", 40);
	one->nr_dropped[DROP_SNAPSHOT_GPUS] = 5;

	add_worker(two, 1, "/job", 11);
	snapshot_carry(two, one);
	assert_int_equal(count(two, &two->jobs[0].gone), 20);
	assert_int_equal(count(two, &two->gone), 60);
	check_gone(&two->jobs[0].gone_collectives, 20);
	check_gone(&two->gone_collectives, 60);
	assert_int_equal(two->nr_dropped[DROP_SNAPSHOT_GPUS], 5);

	/* The next snapshot carries the same values over again, once. */
	spare = one;
	snapshot_clear(spare);
	add_worker(spare, 1, "/job", 12)->start_ns = 99; /* another process with the same pid */
	snapshot_carry(spare, two);
	assert_int_equal(count(spare, &spare->jobs[0].gone), 31);
	assert_int_equal(count(spare, &spare->gone), 71);
	check_gone(&spare->jobs[0].gone_collectives, 31);
	check_gone(&spare->gone_collectives, 71);

	/* A job without processes is removed; the totals of the node stay. */
	snapshot_clear(two);
	snapshot_carry(two, spare);
	assert_int_equal(two->nr_jobs, 0);
	assert_int_equal(count(two, &two->gone), 83);
	check_gone(&two->gone_collectives, 83);
}

static void add_changing(struct snapshot *s, u32 pid, u64 nr_transitions)
{
	snapshot_set_transitions(s, snapshot_add_process(s, pid), nr_transitions);
}

/* Each transition of a process is counted once and stays counted after its exit. */
static void test_transitions_of_exited_processes_stay(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *one = make(8), *two = make(8);

	add_changing(one, 1, 100);
	add_changing(one, 2, 20);
	assert_int_equal(one->nr_transitions, 120);
	/* Its exit event has the final number. */
	snapshot_set_transitions(one, &one->processes[1], 23);

	add_changing(two, 1, 105);
	add_changing(two, 3, 7);
	snapshot_carry(two, one);
	assert_int_equal(two->nr_transitions, 105 + 23 + 7);

	snapshot_clear(one);
	snapshot_carry(one, two);
	assert_int_equal(one->nr_processes, 0);
	assert_int_equal(one->nr_transitions, 105 + 23 + 7);
}

static void test_text_is_always_utf8(void **state)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac" },
		{ "a\xff"
		  "b",
		  "a\xef\xbf\xbd"
		  "b" },
		{ "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd" }, /* an overlong encoding of zero */
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* a surrogate */
		{ "\xf4\x90\x80\x80",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* too large */
		{ "cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd" },
	};
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snapshot_set_text(text, sizeof(text), rows[i].from, strlen(rows[i].from));
		assert_string_equal(text, rows[i].to);
	}
	/* A character that does not fit completely is left out. */
	snapshot_set_text(text, 4, "ab\xc3\xa4", 4);
	assert_string_equal(text, "ab");
	snapshot_set_text(text, sizeof(text), "no end", 2);
	assert_string_equal(text, "no");
}

static void test_every_enum_value_has_a_label(void **state)
{
	const struct {
		const char *(*label)(u32 i);
		u32 nr;
	} rows[] = {
		{ snapshot_drop_label, DROP_NR },
		{ snapshot_sched_state_label, SCHED_STATE_NR },
		{ cpu_limit_label, CPU_LIMIT_NR },
		{ snapshot_hist_label, HIST_KIND_NR },
		{ idle_cause_label, IDLE_CAUSE_NR },
		{ sched_class_label, CLASS_NR },
		{ sched_decision_label, DECISION_NR },
		{ sched_rule_label, RULE_NR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (u32 a = 0; a < rows[i].nr; a++) {
			assert_non_null(rows[i].label(a));
			for (u32 b = 0; b < a; b++)
				assert_string_not_equal(rows[i].label(a), rows[i].label(b));
		}
		assert_string_equal(rows[i].label(rows[i].nr), "unknown");
		assert_string_equal(rows[i].label(~0U), "unknown");
	}
}

/* The texts that list the rules contain every rule, in order. */
static void test_all_rules_are_named(void **state)
{
	char names[256] = "";
	u32 found;

	for (u32 rule = 0; rule < RULE_NR; rule++) {
		const char *label = sched_rule_label(rule);

		assert_int_equal(sched_rule_find(label, strlen(label), &found), 0);
		assert_int_equal(found, rule);
		strcat(strcat(names, rule ? ", " : ""), label);
	}
	assert_string_equal(names, SCHED_RULE_NAMES);
}

static void test_a_loader_is_as_proven_as_its_consumer(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
	struct snapshot_process *job, *loader;

	assert_int_equal(snapshot_new(&SNAPSHOT_LIMITS_DEFAULT, &s), 0);
	loader = snapshot_add_process(s, 8);
	job = snapshot_add_process(s, 7);
	loader->consumer_pid = 7;
	assert_false(snapshot_is_unproven(s, job)); /* a snapshot of an older zerneld */
	job->gpu_evidence = GPU_EVIDENCE_DEVICE;
	loader->gpu_evidence = GPU_EVIDENCE_NONE;
	assert_false(snapshot_is_unproven(s, job));
	assert_false(snapshot_is_unproven(s, loader));
	job->gpu_evidence = GPU_EVIDENCE_NONE;
	loader->gpu_evidence = GPU_EVIDENCE_DEVICE;
	assert_true(snapshot_is_unproven(s, job));
	assert_true(snapshot_is_unproven(s, loader));
	loader->consumer_pid = 9; /* it has exited */
	assert_false(snapshot_is_unproven(s, loader));
}

static void test_users_with_most_refusals_are_named(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make(1);

	for (u32 i = 1; i <= SNAPSHOT_QUOTAS_MAX; i++)
		snapshot_add_quota(s, &(struct snapshot_quota){ .uid = i, .nr_processes = 2 * i });
	/* The same user for another reason, a user with fewer refusals, and one with more. */
	snapshot_add_quota(s, &(struct snapshot_quota){ .uid = 3, .nr_scans = 100 });
	snapshot_add_quota(s, &(struct snapshot_quota){ .uid = 77, .nr_memory = 1 });
	snapshot_add_quota(s, &(struct snapshot_quota){ .uid = 78, .nr_memory = 31 });
	assert_int_equal(s->nr_over_quota, SNAPSHOT_QUOTAS_MAX);
	assert_int_equal(s->over_quota[0].uid, 3);
	assert_int_equal(s->over_quota[0].nr_processes, 6);
	assert_int_equal(s->over_quota[0].nr_scans, 100);
	assert_int_equal(s->over_quota[1].uid, SNAPSHOT_QUOTAS_MAX);
	assert_int_equal(s->over_quota[2].uid, 78);
	assert_int_equal(s->over_quota[SNAPSHOT_QUOTAS_MAX - 1].uid, 2);
}

/* A process of rank 0 that has ended `nr` steps and whose GPU was idle for two causes. */
static struct snapshot_process *add_rank(struct snapshot *s, u32 pid, u64 nr, u64 cpu_ns,
					 u64 other_ns)
{
	struct snapshot_process *process = add_worker(s, pid, "/job", 0);

	process->nr_ranks = 4;
	process->nr_steps = nr;
	process->busy_ns = 10 * nr;
	process->open_ns[IDLE_LOCK] = nr;
	process->open_ns[IDLE_CPU] = nr;
	process->idle_ns[IDLE_CPU] = cpu_ns;
	process->idle_ns[IDLE_OTHER] = other_ns;
	return process;
}

static void check_account(const struct snapshot_account *account, u64 nr, u64 cpu_ns, u64 other_ns)
{
	assert_int_equal(account->nr_steps, nr);
	assert_int_equal(account->busy_ns, 10 * nr);
	assert_int_equal(account->open_ns, 2 * nr);
	assert_int_equal(account->idle_ns[IDLE_CPU], cpu_ns);
	assert_int_equal(account->idle_ns[IDLE_OTHER], other_ns);
}

/* The cause of a long sleep may change when it ends; its counter does not decrease. */
static void test_idle_time_that_moves_is_not_counted_back(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *none = make(8), *one = make(8), *two = make(8), *three = make(8);
	struct snapshot_process *process = add_rank(one, 1, 1, 100, 50);

	snapshot_carry(one, none);
	check_account(&process->counted, 1, 100, 50);
	process = add_rank(two, 1, 2, 140, 20);
	snapshot_carry(two, one);
	check_account(&process->counted, 2, 140, 50);
	process = add_rank(three, 1, 3, 150, 60);
	snapshot_carry(three, two);
	check_account(&process->counted, 3, 150, 60);
}

static void test_accounts_of_exited_ranks_stay(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *none = make(8), *one = make(8), *two = make(8), *three = make(8);
	const struct snapshot_ranks *gone;

	add_rank(one, 1, 5, 100, 50);
	add_rank(one, 2, 7, 10, 0)->rank = 1;
	snapshot_carry(one, none);
	add_rank(two, 3, 1, 1, 1);
	snapshot_carry(two, one);
	gone = &two->jobs[0].gone_ranks;
	assert_int_equal(gone->nr, 2);
	check_account(&gone->ranks[0].account, 5, 100, 50);
	assert_int_equal(gone->ranks[1].rank, 1);
	check_account(&gone->ranks[1].account, 7, 10, 0);
	add_rank(three, 4, 1, 1, 1);
	snapshot_carry(three, two);
	check_account(&three->jobs[0].gone_ranks.ranks[0].account, 6, 101, 51);
}

/* What a process counted before its rank was known stays where it was, and is not counted twice. */
static void test_a_rank_that_becomes_known_moves_no_counter_back(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *none = make(8), *one = make(8), *two = make(8), *three = make(8);
	struct snapshot_process *process;

	add_rank(one, 1, 5, 100, 50)->nr_ranks = 0;
	snapshot_carry(one, none);
	process = add_rank(two, 1, 8, 110, 50);
	process->rank = 3;
	snapshot_carry(two, one);
	check_account(&process->counted, 3, 10, 0);
	assert_int_equal(two->jobs[0].gone_ranks.nr, 1);
	assert_false(two->jobs[0].gone_ranks.ranks[0].is_known);
	check_account(&two->jobs[0].gone_ranks.ranks[0].account, 5, 100, 50);
	process = add_rank(three, 1, 9, 120, 60);
	process->rank = 3;
	snapshot_carry(three, two);
	check_account(&process->counted, 4, 20, 10);
	check_account(&three->jobs[0].gone_ranks.ranks[0].account, 5, 100, 50);
}

/* A job cannot fill memory with ranks; the sum over its ranks is still exact. */
static void test_many_exited_ranks_are_added_up(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *a = make(8), *b = make(8);
	struct snapshot *before = a, *now = b;
	const struct snapshot_ranks *gone;
	u64 nr_steps = 0;

	for (u32 i = 0; i < 3 * SNAPSHOT_RANKS_MAX; i++) {
		struct snapshot *spare = before;

		snapshot_clear(now);
		add_rank(now, 100 + i, 2, 0, 0)->rank = (s32)i;
		snapshot_carry(now, before);
		before = now;
		now = spare;
	}
	gone = &before->jobs[0].gone_ranks;
	assert_int_equal(gone->nr, SNAPSHOT_RANKS_MAX + 1);
	for (u32 i = 0; i < gone->nr; i++)
		nr_steps += gone->ranks[i].account.nr_steps;
	assert_int_equal(nr_steps, 2 * (3 * SNAPSHOT_RANKS_MAX - 1));
}

static void test_the_time_of_the_last_step_is_kept(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *one = make(8), *two = make(8), *three = make(8);
	struct snapshot_process *process = add_rank(two, 1, 5, 0, 0);

	two->monotonic_ns = 100;
	three->monotonic_ns = 200;
	snapshot_carry(two, one);
	assert_int_equal(process->stepped_ns, 100);
	process = add_rank(three, 1, 5, 0, 0);
	snapshot_carry(three, two);
	assert_int_equal(process->stepped_ns, 100);
	snapshot_clear(one);
	one->monotonic_ns = 300;
	process = add_rank(one, 1, 6, 0, 0);
	snapshot_carry(one, three);
	assert_int_equal(process->stepped_ns, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_time_that_moves_is_not_counted_back),
		cmocka_unit_test(test_accounts_of_exited_ranks_stay),
		cmocka_unit_test(test_a_rank_that_becomes_known_moves_no_counter_back),
		cmocka_unit_test(test_many_exited_ranks_are_added_up),
		cmocka_unit_test(test_the_time_of_the_last_step_is_kept),
		cmocka_unit_test(test_items_that_do_not_fit_are_counted),
		cmocka_unit_test(test_snapshot_limits_are_enforced),
		cmocka_unit_test(test_values_of_exited_processes_stay),
		cmocka_unit_test(test_transitions_of_exited_processes_stay),
		cmocka_unit_test(test_text_is_always_utf8),
		cmocka_unit_test(test_every_enum_value_has_a_label),
		cmocka_unit_test(test_all_rules_are_named),
		cmocka_unit_test(test_a_loader_is_as_proven_as_its_consumer),
		cmocka_unit_test(test_users_with_most_refusals_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
