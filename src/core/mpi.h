/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What MPI handles say. The standard leaves open what a handle is, and the two
 * families of implementations differ: to Open MPI it is a pointer to an object
 * whose layout has not changed in many versions (5.0 was looked at; a debug build
 * differs), to MPICH and its many children a number that holds the size of a
 * predefined datatype.
 *
 * The objects of Open MPI are read through the handle and never compared with the
 * library's symbols: an executable may have its own copy of them, and datatypes
 * that the program made have no symbol. Compiled for BPF and user space.
 */
#include "abi/types.h"

/* Where a datatype of Open MPI keeps its size, a u64. */
#define OPEN_MPI_DATATYPE_SIZE_AT 24

enum mpi_handle {
	MPI_HANDLE_EMPTY,
	MPI_HANDLE_NUMBER,  /* MPICH's, the size is in it */
	MPI_HANDLE_OPAQUE,  /* MPICH's, the size is not in it: the program made the datatype */
	MPI_HANDLE_POINTER, /* Open MPI's */
};

/* MPICH: two bits say how a handle was made (1: built in), four what it is (3: a datatype). */
#define MPICH_MADE_SHIFT	30
#define MPICH_BUILT_IN_DATATYPE 0x13

static inline enum mpi_handle mpi_datatype_kind(u64 handle)
{
	if (!handle)
		return MPI_HANDLE_EMPTY;
	/* Programs without position independence have their copies of Open MPI's below 1 GiB. */
	if (handle >> 32 || !(handle >> MPICH_MADE_SHIFT))
		return MPI_HANDLE_POINTER;
	return handle >> 26 == MPICH_BUILT_IN_DATATYPE ? MPI_HANDLE_NUMBER : MPI_HANDLE_OPAQUE;
}

/* Of MPI_HANDLE_NUMBER. */
static inline u64 mpich_datatype_bytes(u64 handle)
{
	return (handle >> 8) & 0xff;
}

/*
 * Who a process is among how many: what it was told of the largest communicator it
 * asked about, or of the first of several that are as large. That is the world,
 * unless a program never asks for it.
 */
struct mpi_world {
	u64 comm;
	s32 rank; /* below 0 when it was not told */
	u32 nr_ranks;
};

static inline void mpi_rank_told(struct mpi_world *world, u64 comm, s32 rank)
{
	if (world->comm && world->comm != comm)
		return;
	world->comm = comm;
	world->rank = rank;
}

static inline void mpi_size_told(struct mpi_world *world, u64 comm, u32 nr_ranks)
{
	if (world->comm != comm) {
		if (nr_ranks <= world->nr_ranks)
			return;
		world->comm = comm;
		world->rank = -1;
	}
	world->nr_ranks = nr_ranks;
}
