/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Scopes that a framework names for its profiler. In PyTorch, the name of a scope is the
 * operation followed by the class. "enumerate(DataLoader)#<iterator>.__next__" lasts from
 * the moment a training loop asks for a batch until it has the batch, no matter whether
 * processes, threads or the caller itself prepare it. Compiled for BPF and user space.
 */
#include "abi/types.h"

/* The number of bytes that are read from a name. */
#define SCOPE_NAME_BYTES 22

/* The start of a std::string. */
struct cxx_string {
	u64 text; /* address */
	u64 length;
};

/* A scope is an object. The end of a scope is reported for a member within this many bytes. */
#define SCOPE_OBJECT_BYTES 64

static inline bool scope_is_loader(const char name[SCOPE_NAME_BYTES])
{
	static const char loader[] = "enumerate(DataLoader)#";

	_Static_assert(sizeof(loader) == SCOPE_NAME_BYTES + 1, "all bytes read are compared");
	for (u32 i = 0; i < SCOPE_NAME_BYTES; i++)
		if (name[i] != loader[i])
			return false;
	return true;
}

/* True if `member` is inside the scope object at address `object`. */
static inline bool scope_holds(u64 object, u64 member)
{
	return object && member - object < SCOPE_OBJECT_BYTES;
}
