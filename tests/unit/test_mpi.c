/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/mpi.h"

/* Handles of real libraries: MPICH 4.2, and Open MPI 5.0 in PIE and non-PIE programs. */
static void handles_are_recognized(void **state)
{
	static const struct {
		u64 handle;
		enum mpi_handle kind;
		u64 bytes;
	} vectors[] = {
		{ 0x4c000101, MPI_HANDLE_NUMBER, 1 },  /* MPI_CHAR */
		{ 0x4c000405, MPI_HANDLE_NUMBER, 4 },  /* MPI_INT */
		{ 0x4c00080b, MPI_HANDLE_NUMBER, 8 },  /* MPI_DOUBLE */
		{ 0x4c00100c, MPI_HANDLE_NUMBER, 16 }, /* MPI_LONG_DOUBLE */
		{ 0x8c000000, MPI_HANDLE_OPAQUE, 0 },  /* MPI_FLOAT_INT */
		{ 0xcc000001, MPI_HANDLE_OPAQUE, 0 },  /* created by the program */
		{ 0x44000000, MPI_HANDLE_OPAQUE, 0 },  /* MPI_COMM_WORLD, not a datatype */
		{ 0x559a2017be60, MPI_HANDLE_POINTER, 0 },
		{ 0x404060, MPI_HANDLE_POINTER, 0 },
		{ 0, MPI_HANDLE_EMPTY, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		assert_int_equal(mpi_datatype_kind(vectors[i].handle), vectors[i].kind);
		if (vectors[i].kind == MPI_HANDLE_NUMBER)
			assert_int_equal(mpich_datatype_bytes(vectors[i].handle), vectors[i].bytes);
	}
}

#define WORLD 0x559a2017bc60
#define HALF  0x559a30000000

static void assert_world(const struct mpi_world *world, s32 rank, u32 nr_ranks)
{
	assert_int_equal(world->comm, WORLD);
	assert_int_equal(world->rank, rank);
	assert_int_equal(world->nr_ranks, nr_ranks);
}

static void a_smaller_communicator_is_not_the_world(void **state)
{
	struct mpi_world world = {};

	mpi_rank_told(&world, WORLD, 3);
	mpi_size_told(&world, WORLD, 4);
	mpi_rank_told(&world, HALF, 0);
	mpi_size_told(&world, HALF, 2);
	assert_world(&world, 3, 4);
}

static void a_larger_communicator_replaces_the_world(void **state)
{
	struct mpi_world world = {};

	mpi_rank_told(&world, HALF, 1);
	mpi_size_told(&world, HALF, 2);
	mpi_size_told(&world, WORLD, 4);
	assert_world(&world, -1, 4);
	mpi_rank_told(&world, WORLD, 2);
	assert_world(&world, 2, 4);
}

static void an_equal_communicator_does_not_replace_the_world(void **state)
{
	struct mpi_world world = {};

	mpi_size_told(&world, WORLD, 4);
	mpi_rank_told(&world, WORLD, 1);
	mpi_size_told(&world, HALF, 4);
	mpi_rank_told(&world, HALF, 2);
	assert_world(&world, 1, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handles_are_recognized),
		cmocka_unit_test(a_smaller_communicator_is_not_the_world),
		cmocka_unit_test(a_larger_communicator_replaces_the_world),
		cmocka_unit_test(an_equal_communicator_does_not_replace_the_world),
	};

	return cmocka_run_group_tests_name("mpi", tests, NULL, NULL);
}
