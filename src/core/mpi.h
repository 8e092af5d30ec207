/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Decoding of MPI handles. The standard does not define what a handle is, and the two
 * families of implementations differ. In Open MPI, a handle is a pointer to an object
 * whose layout has not changed in many versions (checked with 5.0; a debug build
 * differs). In MPICH and its derivatives, it is a number that contains the size of a
 * predefined datatype.
 *
 * Open MPI objects are read through the handle. The handle is not compared with symbols
 * of the library, because an executable may have its own copy of these objects, and
 * datatypes that the program created have no symbol. Compiled for BPF and user space.
 */
#include "abi/types.h"

/* The offset of the size (a u64) in an Open MPI datatype object. */
#define OPEN_MPI_DATATYPE_SIZE_AT 24

enum mpi_handle {
	MPI_HANDLE_EMPTY,
	MPI_HANDLE_NUMBER,  /* MPICH, built-in datatype: contains the size */
	MPI_HANDLE_OPAQUE,  /* MPICH, any other handle: does not contain the size */
	MPI_HANDLE_POINTER, /* Open MPI */
};

/* MPICH: the top two bits are the origin (1: built in), the next four the kind (3: datatype). */
#define MPICH_MADE_SHIFT	30
#define MPICH_BUILT_IN_DATATYPE 0x13

static inline enum mpi_handle mpi_datatype_kind(u64 handle)
{
	if (!handle)
		return MPI_HANDLE_EMPTY;
	/* A non-PIE program has its copies of the Open MPI objects below 1 GiB. */
	if (handle >> 32 || !(handle >> MPICH_MADE_SHIFT))
		return MPI_HANDLE_POINTER;
	return handle >> 26 == MPICH_BUILT_IN_DATATYPE ? MPI_HANDLE_NUMBER : MPI_HANDLE_OPAQUE;
}

/* Only for MPI_HANDLE_NUMBER. */
static inline u64 mpich_datatype_bytes(u64 handle)
{
	return (handle >> 8) & 0xff;
}

/*
 * The rank of a process and the number of ranks, as MPI returned them for the largest
 * communicator that the program asked about. If several have the same size, the first
 * counts. This is the world, unless the program never asks about the world.
 */
struct mpi_world {
	u64 comm;
	s32 rank; /* negative if not known */
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
