/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/comm.h"
#include "property/random.h"

#define NR_GROUPS 20000

/* A complete split of `nr` ranks with the arguments in `member`. */
static struct comm_group whole_group(const struct comm_member *member, u32 nr)
{
	struct comm_group group = { .present = ~0ULL >> (COMM_MEMBERS_MAX - nr) };

	for (u32 i = 0; i < nr; i++)
		group.member[i] = member[i];
	return group;
}

static void assert_place(const struct comm_group *group, u32 parent_rank, u32 rank, u32 nr_ranks)
{
	struct comm_place place = comm_split(group, parent_rank);

	assert_int_equal(place.rank, rank);
	assert_int_equal(place.nr_ranks, nr_ranks);
}

static void a_split_orders_each_color_by_key(void **state)
{
	const struct comm_member members[] = {
		{ .color = 0, .key = 0 },
		{ .color = 1, .key = -1 },
		{ .color = 0, .key = -2 },
		{ .color = 1, .key = -3 },
	};
	struct comm_group group = whole_group(members, 4);

	assert_place(&group, 0, 1, 2);
	assert_place(&group, 1, 1, 2);
	assert_place(&group, 2, 0, 2);
	assert_place(&group, 3, 0, 2);
}

static void equal_keys_keep_the_order_of_the_parent(void **state)
{
	const struct comm_member members[] = { { 7, 5 }, { 7, 5 }, { 7, 4 }, { 7, 5 } };
	struct comm_group group = whole_group(members, 4);

	assert_place(&group, 0, 1, 4);
	assert_place(&group, 1, 2, 4);
	assert_place(&group, 2, 0, 4);
	assert_place(&group, 3, 3, 4);
}

static void a_rank_without_color_joins_no_communicator(void **state)
{
	const struct comm_member members[] = {
		{ COMM_NO_COLOR, 0 }, { 3, 0 }, { COMM_NO_COLOR, 0 }, { 3, 0 }
	};
	struct comm_group group = whole_group(members, 4);

	assert_place(&group, 0, 0, 0);
	assert_place(&group, 1, 0, 2);
	assert_place(&group, 2, 0, 0);
	assert_place(&group, 3, 1, 2);
}

static void extreme_keys_do_not_overflow(void **state)
{
	const struct comm_member members[] = {
		{ INT32_MAX, INT32_MAX },
		{ INT32_MAX, INT32_MIN },
		{ 0, INT32_MIN },
		{ INT32_MAX, 0 },
	};
	struct comm_group group = whole_group(members, 4);

	assert_place(&group, 0, 2, 3);
	assert_place(&group, 1, 0, 3);
	assert_place(&group, 2, 0, 1);
	assert_place(&group, 3, 1, 3);
}

static void a_group_is_complete_with_exactly_all_ranks(void **state)
{
	struct comm_group group = {};

	assert_false(comm_group_is_whole(&group, 0));
	assert_false(comm_group_is_whole(&group, 1));
	for (u32 nr = 1; nr <= COMM_MEMBERS_MAX; nr++) {
		group.present |= 1ULL << (nr - 1);
		assert_true(comm_group_is_whole(&group, nr));
		assert_false(comm_group_is_whole(&group, nr - 1));
		assert_false(comm_group_is_whole(&group, nr + 1));
	}
	group.present = ~2ULL;
	assert_false(comm_group_is_whole(&group, COMM_MEMBERS_MAX));
}

/* The place of `rank`, computed in the simplest possible way. */
static struct comm_place place_by_hand(const struct comm_group *group, u32 nr, u32 rank)
{
	const struct comm_member *me = &group->member[rank];
	struct comm_place place = {};

	if (me->color == COMM_NO_COLOR)
		return place;
	for (u32 i = 0; i < nr; i++) {
		const struct comm_member *other = &group->member[i];

		if (other->color != me->color)
			continue;
		place.nr_ranks++;
		if (other->key < me->key)
			place.rank++;
		else if (other->key == me->key && i < rank)
			place.rank++;
	}
	return place;
}

static void every_split_equals_a_simple_computation(void **state)
{
	struct random r = random_start();

	for (u32 n = 0; n < NR_GROUPS; n++) {
		u32 nr = 1 + random_below(&r, COMM_MEMBERS_MAX),
		    nr_colors = 1 + random_below(&r, 5);
		bool any_key = random_below(&r, 2);
		struct comm_member members[COMM_MEMBERS_MAX];
		struct comm_group group;
		u64 taken = 0;
		u32 nr_placed = 0;

		for (u32 i = 0; i < nr; i++)
			members[i] = (struct comm_member){
				.color = (s32)random_below(&r, nr_colors + 1) - 1,
				.key = any_key ? (s32)random_u64(&r) : (s32)random_below(&r, 5) - 2,
			};
		group = whole_group(members, nr);
		for (u32 i = 0; i < nr; i++) {
			struct comm_place place = place_by_hand(&group, nr, i);

			assert_place(&group, i, place.rank, place.nr_ranks);
			/* Within a color, each rank occurs once. */
			if (members[i].color != 0)
				continue;
			assert_false(taken >> place.rank & 1);
			taken |= 1ULL << place.rank;
			nr_placed++;
		}
		assert_true(!nr_placed || taken == ~0ULL >> (COMM_MEMBERS_MAX - nr_placed));
	}
}

static struct comm ready(u32 made_by, u32 nr_ranks, u64 since_ns)
{
	return (struct comm){
		.state = COMM_READY,
		.made_by = made_by,
		.nr_ranks = nr_ranks,
		.since_ns = since_ns,
		.identity = since_ns,
	};
}

static void the_world_is_the_largest_then_the_oldest(void **state)
{
	const struct comm none = {};
	struct comm world = ready(DETAIL_ONE_RANK, 4, 100);
	struct comm larger = ready(DETAIL_ALL_RANKS, 8, 200);
	struct comm later = ready(DETAIL_ONE_RANK, 4, 200);
	struct comm split = ready(DETAIL_SPLIT, 16, 50);
	struct comm unknown = ready(DETAIL_ONE_RANK, 0, 50);
	struct comm joining = larger;

	joining.state = COMM_JOINING;
	assert_true(comm_is_world_before(&world, &none));
	assert_true(comm_is_world_before(&larger, &world));
	assert_false(comm_is_world_before(&world, &larger));
	assert_true(comm_is_world_before(&world, &later));
	assert_false(comm_is_world_before(&later, &world));
	assert_false(comm_is_world_before(&split, &world));
	assert_false(comm_is_world_before(&split, &none));
	assert_false(comm_is_world_before(&unknown, &none));
	assert_false(comm_is_world_before(&joining, &world));
}

static void ranks_of_one_communicator_share_its_identity(void **state)
{
	struct comm a = ready(DETAIL_ONE_RANK, 4, 100), b = a, c = ready(DETAIL_ONE_RANK, 4, 200);

	assert_true(comm_is_same(&a, &b));
	assert_false(comm_is_same(&a, &c));
	b.state = COMM_FREE;
	assert_false(comm_is_same(&b, &a));
	/* Communicators without an identity are never the same. */
	a.identity = c.identity = 0;
	assert_true(comm_is_same(&a, &a));
	assert_false(comm_is_same(&a, &c));
}

static int compare_u64(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void identities_differ_and_are_never_0(void **state)
{
	static u64 identity[NR_GROUPS];

	for (u32 i = 0; i < NR_GROUPS; i++) {
		identity[i] = comm_mix(i % 100, i / 100);
		assert_true(identity[i] != 0);
	}
	qsort(identity, NR_GROUPS, sizeof(*identity), compare_u64);
	for (u32 i = 1; i < NR_GROUPS; i++)
		assert_true(identity[i] != identity[i - 1]);
}

static void an_nccl_call_in_progress_was_accepted(void **state)
{
	assert_true(collective_accepted(RUNTIME_NCCL, 0));
	assert_true(collective_accepted(RUNTIME_RCCL, NCCL_IN_PROGRESS));
	assert_true(collective_accepted(RUNTIME_MPI, 0));
	assert_false(collective_accepted(RUNTIME_MPI, NCCL_IN_PROGRESS));
	assert_false(collective_accepted(RUNTIME_NCCL, 4));
	assert_false(collective_accepted(RUNTIME_NCCL, -1));
}

static void a_shrink_excludes_ranks_in_any_order(void **state)
{
	static const struct {
		u32 rank, nr_ranks, nr;
		s32 excluded[COMM_MEMBERS_MAX];
		struct comm_place place;
	} cases[] = {
		{ 5, 8, 2, { 6, 1 }, { 4, 6 } },
		{ 0, 8, 2, { 6, 1 }, { 0, 6 } },
		{ 7, 8, 0, { 0 }, { 7, 8 } },
		/* The list says nothing beyond its length. */
		{ 3, 4, 1, { 3 + 1, 0, 0 }, { 3, 3 } },
		{ 3, 4, 3, { 0, 1, 2 }, { 0, 1 } },
		/* Lists that cannot be right. */
		{ 3, 4, 4, { 0, 1, 2, 3 }, { 0, 0 } },
		{ 1, 4, 3, { -1, -2, -3 }, { 0, 0 } },
		{ 1, 400, COMM_MEMBERS_MAX + 1, { 0 }, { 0, 0 } },
		{ 0, 0, 0, { 0 }, { 0, 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct comm_place place = comm_shrink(cases[i].rank, cases[i].nr_ranks,
						      cases[i].excluded, cases[i].nr);

		if (place.rank != cases[i].place.rank || place.nr_ranks != cases[i].place.nr_ranks)
			fail_msg("case %zu: rank %u of %u", i, place.rank, place.nr_ranks);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_split_orders_each_color_by_key),
		cmocka_unit_test(equal_keys_keep_the_order_of_the_parent),
		cmocka_unit_test(a_rank_without_color_joins_no_communicator),
		cmocka_unit_test(extreme_keys_do_not_overflow),
		cmocka_unit_test(a_group_is_complete_with_exactly_all_ranks),
		cmocka_unit_test(every_split_equals_a_simple_computation),
		cmocka_unit_test(a_shrink_excludes_ranks_in_any_order),
		cmocka_unit_test(the_world_is_the_largest_then_the_oldest),
		cmocka_unit_test(ranks_of_one_communicator_share_its_identity),
		cmocka_unit_test(identities_differ_and_are_never_0),
		cmocka_unit_test(an_nccl_call_in_progress_was_accepted),
	};

	return cmocka_run_group_tests_name("comm", tests, NULL, NULL);
}
