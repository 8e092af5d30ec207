/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "signals/sequences.h"

int ncclCommInitRank(void **ret, int nr_ranks, ncclUniqueId id, int rank)
{
	*ret = ret;
	return 0;
}

int ncclCommSplit(void *comm, int color, int key, void **ret, void *config)
{
	*ret = ret;
	return 0;
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream)
{
	return 0;
}
