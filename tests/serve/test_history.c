/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of ranks: sums, slots, resolutions, gaps, the bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <yyjson.h>
#include "serve/history.h"

#define BEGIN_S 1700000000ULL

struct node {
	struct rank_history *history;
	struct snapshot *snapshot;
	u32 nr_ranks;
};

static void add_rank(struct node *node, u32 rank)
{
	struct snapshot_process *process = snapshot_add_process(node->snapshot, 100 + rank);

	process->start_ns = 1 + rank;
	process->launcher_tid = process->pid;
	process->nr_ranks = 64;
	process->rank = (s32)rank;
	process->job = snapshot_add_job(node->snapshot, rank % 2 ? "/odd" : "/even", "job");
}

static void start(struct node *node, size_t bytes_max, u32 nr_ranks)
{
	const struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;

	*node = (struct node){ .nr_ranks = nr_ranks };
	assert_int_equal(rank_history_new(bytes_max, &node->history), 0);
	assert_int_equal(snapshot_new(&limits, &node->snapshot), 0);
	node->snapshot->time_ms = 1000 * BEGIN_S;
	node->snapshot->monotonic_ns = NSEC_PER_SEC;
	for (u32 rank = 0; rank < nr_ranks; rank++)
		add_rank(node, rank);
}

static void end(struct node *node)
{
	rank_history_free(node->history);
	snapshot_free(node->snapshot);
}

/* Time passes: 60 % busy, 30 % waiting for a disk, 10 % open, and a step of 100 ms per 100 ms. */
static int pass(struct node *node, u64 ms)
{
	struct snapshot *s = node->snapshot;

	s->time_ms += ms;
	s->monotonic_ns += ms * NSEC_PER_MSEC;
	for (u32 i = 0; i < s->nr_processes; i++) {
		struct snapshot_process *process = &s->processes[i];

		process->counted.busy_ns += 6 * ms * (NSEC_PER_MSEC / 10);
		process->counted.idle_ns[IDLE_LOADER_DISK] += 3 * ms * (NSEC_PER_MSEC / 10);
		process->counted.open_ns += ms * (NSEC_PER_MSEC / 10);
		process->counted.nr_steps += ms / 100;
		process->phase_ns[PHASE_GPU_COMPUTE] += ms * (NSEC_PER_MSEC / 2);
	}
	return rank_history_add(node->history, s);
}

static yyjson_doc *ask(struct node *node, struct rank_query query)
{
	yyjson_doc *doc;
	size_t length;
	char *text;

	assert_int_equal(rank_history_to_json(node->history, &query, &text, &length), 0);
	doc = yyjson_read(text, length, 0);
	free(text);
	assert_non_null(doc);
	return doc;
}

static u64 get(yyjson_doc *doc, const char *key)
{
	return yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(doc), key));
}

static yyjson_val *rank_of(yyjson_doc *doc, size_t i)
{
	return yyjson_arr_get(yyjson_obj_get(yyjson_doc_get_root(doc), "ranks"), i);
}

static u64 sum(yyjson_val *list)
{
	yyjson_arr_iter iter = yyjson_arr_iter_with(list);
	yyjson_val *value;
	u64 all = 0;

	while ((value = yyjson_arr_iter_next(&iter)))
		all += yyjson_get_uint(value);
	return all;
}

static void slots_add_up_to_the_counters(void **state)
{
	struct node node;
	yyjson_val *rank;
	yyjson_doc *doc;

	start(&node, RANK_HISTORY_BYTES_MAX, 1);
	assert_int_equal(pass(&node, 700), 0);
	for (u32 i = 0; i < 100; i++)
		assert_int_equal(pass(&node, 990 + i % 7 * 10), 0);
	doc = ask(&node, (struct rank_query){ .since = BEGIN_S });
	rank = rank_of(doc, 0);
	assert_int_equal(get(doc, "step"), 1);
	/* The snapshots are not at the borders of seconds: each full second has all of its time. */
	assert_int_equal(yyjson_get_uint(yyjson_arr_get(yyjson_obj_get(rank, "span_ms"), 50)),
			 1000);
	assert_int_equal(yyjson_get_uint(yyjson_arr_get(yyjson_obj_get(rank, "busy_ms"), 50)), 600);
	assert_in_range(sum(yyjson_obj_get(rank, "busy_ms")),
			node.snapshot->processes[0].counted.busy_ns / NSEC_PER_MSEC - 700,
			node.snapshot->processes[0].counted.busy_ns / NSEC_PER_MSEC);
	assert_int_equal(sum(yyjson_obj_get(rank, "steps")),
			 node.snapshot->processes[0].counted.nr_steps - 7);
	assert_non_null(yyjson_obj_get(yyjson_obj_get(rank, "idle_ms"), "loader_disk"));
	assert_null(yyjson_obj_get(yyjson_obj_get(rank, "idle_ms"), "cpu"));
	yyjson_doc_free(doc);
	end(&node);
}

static void older_than_15_minutes_has_10_seconds(void **state)
{
	struct node node;
	yyjson_doc *doc;

	start(&node, RANK_HISTORY_BYTES_MAX, 2);
	for (u32 i = 0; i < 3600; i++)
		assert_int_equal(pass(&node, 1000), 0);
	doc = ask(&node, (struct rank_query){ .since = BEGIN_S });
	assert_int_equal(get(doc, "step"), 10);
	assert_int_equal(
		yyjson_get_uint(yyjson_arr_get(yyjson_obj_get(rank_of(doc, 0), "busy_ms"), 100)),
		6000);
	yyjson_doc_free(doc);
	doc = ask(&node, (struct rank_query){ .job = "/odd" });
	assert_int_equal(get(doc, "step"), 1);
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(rank_of(doc, 0), "pid")), 101);
	assert_null(rank_of(doc, 1));
	yyjson_doc_free(doc);
	end(&node);
}

static void a_gap_has_no_data(void **state)
{
	struct node node;
	yyjson_val *busy;
	yyjson_doc *doc;

	start(&node, RANK_HISTORY_BYTES_MAX, 1);
	pass(&node, 1000);
	pass(&node, 1000);
	/* It is not known how this time was divided. */
	pass(&node, 60000);
	pass(&node, 1000);
	doc = ask(&node, (struct rank_query){ .since = BEGIN_S });
	busy = yyjson_obj_get(rank_of(doc, 0), "busy_ms");
	assert_int_equal(yyjson_arr_size(busy), 62);
	assert_true(yyjson_is_null(yyjson_arr_get(busy, 30)));
	assert_int_equal(sum(busy), 1200);
	yyjson_doc_free(doc);
	end(&node);
}

static void a_counter_that_decreases_starts_anew(void **state)
{
	struct node node;
	yyjson_doc *doc;

	start(&node, RANK_HISTORY_BYTES_MAX, 1);
	pass(&node, 1000);
	pass(&node, 1000);
	node.snapshot->processes[0].counted = (struct snapshot_account){};
	pass(&node, 1000);
	pass(&node, 1000);
	doc = ask(&node, (struct rank_query){ .since = BEGIN_S });
	assert_int_equal(sum(yyjson_obj_get(rank_of(doc, 0), "busy_ms")), 1200);
	yyjson_doc_free(doc);
	end(&node);
}

static void many_ranks_for_hours_keep_the_bound(void **state)
{
	struct node node;
	size_t largest = 0;

	start(&node, RANK_HISTORY_BYTES_MAX, 64);
	for (u32 i = 0; i < 13 * 3600 / 5; i++) {
		assert_int_equal(pass(&node, 5000), 0);
		if (rank_history_bytes(node.history) > largest)
			largest = rank_history_bytes(node.history);
	}
	print_message("# 64 ranks, 13 hours: %zu bytes, %zu for each rank, %llu parts thinned\n",
		      largest, largest / 64, rank_history_nr_thinned(node.history));
	assert_true(largest <= RANK_HISTORY_BYTES_MAX);
	assert_int_equal(rank_history_nr_thinned(node.history), 0);
	end(&node);
}

static void ended_ranks_are_thinned_first(void **state)
{
	struct node node;
	yyjson_doc *doc;

	start(&node, 300 << 10, 2);
	for (u32 i = 0; i < 4000; i++)
		pass(&node, 1000);
	node.snapshot->nr_processes = 1;
	for (u32 i = 0; i < 12000; i++)
		assert_int_equal(pass(&node, 1000), 0);
	assert_true(rank_history_bytes(node.history) <= 300 << 10);
	for (u32 rank = 10; rank < 13; rank++)
		add_rank(&node, rank);
	for (u32 i = 0; i < 3000; i++)
		assert_int_equal(pass(&node, 1000), 0);
	assert_true(rank_history_bytes(node.history) <= 300 << 10);
	assert_true(rank_history_nr_thinned(node.history) > 0);
	doc = ask(&node, (struct rank_query){ .since = BEGIN_S });
	/* The ended rank lost all; the first rank still has its hours. */
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(rank_of(doc, 0), "pid")), 100);
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(rank_of(doc, 1), "pid")), 110);
	yyjson_doc_free(doc);
	end(&node);
}

static void more_ranks_than_fit(void **state)
{
	struct node node;

	start(&node, 1 << 20, 300);
	for (u32 i = 0; i < 20; i++)
		pass(&node, 1000);
	assert_int_equal(pass(&node, 1000), -ENOMEM);
	assert_true(rank_history_bytes(node.history) <= 1 << 20);
	end(&node);
}

/* Ranks beyond the bound have no history, and those of one user take no place of another one. */
static void ranks_have_a_bound(void **state)
{
	u32 own = RANK_HISTORY_RANKS_MAX * 3 / 4;
	struct node node;

	start(&node, RANK_HISTORY_BYTES_MAX, RANK_HISTORY_RANKS_MAX + 1);
	assert_int_equal(pass(&node, 1000), -E2BIG);
	assert_int_equal(rank_history_nr_ranks(node.history), own);
	for (u32 i = own; i <= RANK_HISTORY_RANKS_MAX; i++)
		node.snapshot->processes[i].uid++;
	assert_int_equal(pass(&node, 1000), -E2BIG);
	assert_int_equal(rank_history_nr_ranks(node.history), RANK_HISTORY_RANKS_MAX);
	node.snapshot->nr_processes--;
	assert_int_equal(pass(&node, 1000), 0);
	assert_int_equal(rank_history_nr_ranks(node.history), RANK_HISTORY_RANKS_MAX);
	end(&node);
}

/* A bar of the chart is the mean step: steps that a slot shares with its neighbor must not distort
 * it. */
static void a_slot_has_the_time_of_its_steps(void **state)
{
	struct snapshot_process *process;
	struct node node;
	struct hist *steps;
	yyjson_doc *doc;
	yyjson_val *list;

	start(&node, RANK_HISTORY_BYTES_MAX, 1);
	process = &node.snapshot->processes[0];
	steps = snapshot_add_hist(node.snapshot, &process->hists, HIST_STEP);
	assert_non_null(steps);
	for (u32 i = 0; i < 200; i++) {
		u64 ms = 950 + 13 * i % 100;

		steps->count += ms / 100;
		steps->sum += ms / 100 * 100 * NSEC_PER_MSEC;
		assert_int_equal(pass(&node, ms), 0);
	}
	doc = ask(&node, (struct rank_query){ .since = BEGIN_S });
	list = yyjson_obj_get(rank_of(doc, 0), "step_us");
	assert_true(yyjson_arr_size(list) > 150);
	for (size_t i = 5; i < 150; i++)
		assert_int_equal(yyjson_get_uint(yyjson_arr_get(list, i)), 100000);
	yyjson_doc_free(doc);
	end(&node);
}

static void points_are_bounded(void **state)
{
	struct node node;
	yyjson_doc *doc;
	u64 nr = 0;

	start(&node, RANK_HISTORY_BYTES_MAX, 64);
	for (u32 i = 0; i < 2 * 3600; i++)
		pass(&node, 1000);
	doc = ask(&node, (struct rank_query){ .since = BEGIN_S, .step = 1 });
	for (u32 i = 0; i < 64; i++)
		nr += yyjson_arr_size(yyjson_obj_get(rank_of(doc, i), "busy_ms"));
	assert_in_range(nr, RANK_HISTORY_POINTS_MAX / 4, RANK_HISTORY_POINTS_MAX + 64);
	yyjson_doc_free(doc);
	end(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_add_up_to_the_counters),
		cmocka_unit_test(a_slot_has_the_time_of_its_steps),
		cmocka_unit_test(older_than_15_minutes_has_10_seconds),
		cmocka_unit_test(a_gap_has_no_data),
		cmocka_unit_test(a_counter_that_decreases_starts_anew),
		cmocka_unit_test(many_ranks_for_hours_keep_the_bound),
		cmocka_unit_test(ended_ranks_are_thinned_first),
		cmocka_unit_test(more_ranks_than_fit),
		cmocka_unit_test(ranks_have_a_bound),
		cmocka_unit_test(points_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
