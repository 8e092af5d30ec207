/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The places of frames and kernels that a process has chosen to be in each other's way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <cmocka.h>

#include "base/macros.h"
#include "daemon/lines_hash.h"

#define NR	2048
#define SLOTS	(2 * NR)
#define GOLDEN	0x9e3779b97f4a7c15ULL
/* Steps for all values. Half of the slots are free, so that a value takes one or two of them. */
#define STEPS	(8 * NR)
#define REPLIES 1000

static struct lines_hash hash;

static int make_hash(void **state)
{
	assert_int_equal(getrandom(&hash, sizeof(hash), 0), sizeof(hash));
	return 0;
}

/* Puts a value at its place or behind it. Returns the number of steps. */
static u32 put(bool *slots, u32 at)
{
	u32 nr = 1;

	for (; slots[at % SLOTS]; at++)
		nr++;
	slots[at % SLOTS] = true;
	return nr;
}

/* The inverse of an odd number modulo 2^64: a step of Newton's method doubles the right bits. */
static u64 inverse(u64 odd)
{
	u64 result = odd;

	for (int i = 0; i < 6; i++)
		result *= 2 - odd * result;
	return result;
}

static u32 put_frames(void (*make)(u32 i, struct python_frame *ret))
{
	bool slots[SLOTS] = {};
	u32 nr = 0;

	for (u32 i = 0; i < NR; i++) {
		struct python_frame frame = {};

		make(i, &frame);
		nr += put(slots, lines_hash_frame(&hash, 1234, &frame));
	}
	return nr;
}

/* The words of each frame have one sum without carries. */
static void make_same_sum(u32 i, struct python_frame *ret)
{
	*ret = (struct python_frame){ .code = 0x7f0000000000 ^ i, .lines = i };
}

static void make_same_sum_above(u32 i, struct python_frame *ret)
{
	*ret = (struct python_frame){ .code = 0x7f0000000000 ^ (u64)i << 40, .instruction = i };
}

/* The products with a known number have the same upper bits. */
static void make_same_product(u32 i, struct python_frame *ret)
{
	*ret = (struct python_frame){ .code = i * inverse(31 * GOLDEN) };
}

/* Only the highest bits differ. */
static void make_high_bits(u32 i, struct python_frame *ret)
{
	*ret = (struct python_frame){ .code = (u64)i << 53, .lines = (i & 1) << 31 };
}

static void make_rows(u32 i, struct python_frame *ret)
{
	*ret = (struct python_frame){ .code = 0x7f0000001000, .instruction = 2 * i, .lines = 7 };
}

static void chosen_frames_are_spread(void **state)
{
	static void (*const makes[])(u32 i, struct python_frame *ret) = {
		make_same_sum, make_same_sum_above, make_same_product, make_high_bits, make_rows,
	};

	for (u32 i = 0; i < ARRAY_SIZE(makes); i++) {
		u32 most = 0;

		/* A process is sampled often, so that rare numbers are drawn, too. */
		for (u32 reply = 0; reply < REPLIES; reply++) {
			u32 nr;

			make_hash(state);
			nr = put_frames(makes[i]);
			most = nr > most ? nr : most;
		}
		print_message("# frames %u: %u steps at most\n", i, most);
		assert_in_range(most, NR, STEPS);
	}
}

static void chosen_kernels_are_spread(void **state)
{
	bool slots[SLOTS] = {};
	u32 nr = 0;

	for (u64 i = 0; i < NR; i++)
		nr += put(slots, lines_hash_handle(&hash, (i + 1) * inverse(GOLDEN)));
	assert_in_range(nr, NR, STEPS);
}

static void replies_differ(void **state)
{
	const struct python_frame frame = { .code = 0x7f0000001000 };
	u32 before = lines_hash_frame(&hash, 1, &frame), nr_same = 0;

	for (int i = 0; i < 8; i++) {
		make_hash(state);
		nr_same += lines_hash_frame(&hash, 1, &frame) == before;
	}
	assert_true(nr_same < 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(chosen_frames_are_spread, make_hash),
		cmocka_unit_test_setup(chosen_kernels_are_spread, make_hash),
		cmocka_unit_test_setup(replies_differ, make_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
