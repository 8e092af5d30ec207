/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A collective library that accepts every call, as a hostile process could load it. */
#include <stddef.h>

typedef struct {
	char bytes[128];
} ncclUniqueId;

/* The handle is the address of the variable. */
int ncclCommInitRank(void **ret, int nr_ranks, ncclUniqueId id, int rank);
int ncclCommSplit(void *comm, int color, int key, void **ret, void *config);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream);
