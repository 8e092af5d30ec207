/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An MPI program that counts its own calls: all-reduces, broadcasts and barriers of known
 * sizes, with a small datatype, a large one and a derived one. Checks its results and
 * prints, for each rank, its own counts as one line of JSON.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS	 6
#define BARRIERS 4
#define ELEMENTS 1000

enum operation {
	ALL_REDUCE,
	BROADCAST,
	BARRIER,
	OPERATION_NR,
};

static const char *const labels[OPERATION_NR] = { "all_reduce", "broadcast", "barrier" };

struct counts {
	unsigned long count[OPERATION_NR], bytes[OPERATION_NR];
};

static void count(struct counts *counts, enum operation operation, unsigned long bytes)
{
	counts->count[operation]++;
	counts->bytes[operation] += bytes;
}

static void fail(const char *what)
{
	fprintf(stderr, "mpi: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void reduce(struct counts *counts, int rank, int nr_ranks)
{
	static float mine[ELEMENTS], sum[ELEMENTS];
	double one = 1, all = 0;

	for (int i = 0; i < ELEMENTS; i++)
		mine[i] = (float)rank;
	MPI_Allreduce(mine, sum, ELEMENTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	count(counts, ALL_REDUCE, sizeof(mine));
	MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	count(counts, ALL_REDUCE, sizeof(one));
	if (sum[ELEMENTS - 1] != (float)(nr_ranks * (nr_ranks - 1) / 2) || (int)all != nr_ranks)
		fail("wrong sum");
}

/* Three of every four ints: the sent bytes are the size of the type, not its extent. */
static void broadcast(struct counts *counts, int rank)
{
	int values[4 * 5] = {};
	MPI_Datatype triple, spaced;

	MPI_Type_contiguous(3, MPI_INT, &triple);
	MPI_Type_create_resized(triple, 0, 4 * sizeof(int), &spaced);
	MPI_Type_commit(&spaced);
	if (rank == 0)
		values[18] = 42;
	MPI_Bcast(values, 5, spaced, 0, MPI_COMM_WORLD);
	count(counts, BROADCAST, 5 * 3 * sizeof(int));
	if (values[18] != 42)
		fail("wrong broadcast");
	MPI_Type_free(&spaced);
	MPI_Type_free(&triple);
}

/* Rank and size in another communicator must not replace those of the process. */
static void ask_half(int rank)
{
	MPI_Comm half;
	int size, mine;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	MPI_Comm_rank(half, &mine);
	MPI_Comm_size(half, &size);
	if (mine >= size)
		fail("wrong rank");
	MPI_Comm_free(&half);
}

/* Prints with one write, so that lines of several ranks do not mix. */
static void print(const struct counts *counts, int rank, int nr_ranks)
{
	char line[512];
	int n = snprintf(line, sizeof(line),
			 "{\"pid\": %d, \"rank\": %d, \"nr_ranks\": %d, \"collectives\": {",
			 getpid(), rank, nr_ranks);

	for (int i = 0; i < OPERATION_NR; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "%s\"%s\": {\"count\": %lu, \"bytes\": %lu}", i ? ", " : "",
			      labels[i], counts->count[i], counts->bytes[i]);
	printf("%s}}\n", line);
}

int main(int argc, char **argv)
{
	struct counts counts = {};
	int rank, nr_ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nr_ranks);
	for (int i = 0; i < ROUNDS; i++) {
		reduce(&counts, rank, nr_ranks);
		broadcast(&counts, rank);
	}
	ask_half(rank);
	for (int i = 0; i < BARRIERS; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		count(&counts, BARRIER, 0);
	}
	print(&counts, rank, nr_ranks);
	MPI_Finalize();
	return 0;
}
