/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Scopes that a framework names for its profiler. PyTorch's begin with what is done
 * and go on with the class that does it: "enumerate(DataLoader)#<iterator>.__next__"
 * lasts from the moment a training loop asks for a batch until it has it, whether
 * processes, threads or the caller itself prepare it. Compiled for BPF and user space.
 */
#include "abi/types.h"

/* As much of a name as is read, and where std::string says it is. */
#define SCOPE_NAME_BYTES 22

struct cxx_string {
	u64 text; /* address */
	u64 length;
};

/* A scope is an object, and what is told to end is a member: not further behind its start. */
#define SCOPE_OBJECT_BYTES 64

static inline bool scope_is_loader(const char name[SCOPE_NAME_BYTES])
{
	static const char loader[] = "enumerate(DataLoader)#";

	_Static_assert(sizeof(loader) == SCOPE_NAME_BYTES + 1, "read as much as is compared");
	for (u32 i = 0; i < SCOPE_NAME_BYTES; i++)
		if (name[i] != loader[i])
			return false;
	return true;
}

/* `member` lies in the scope that begins at `object`. */
static inline bool scope_holds(u64 object, u64 member)
{
	return object && member - object < SCOPE_OBJECT_BYTES;
}
