/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Scopes that a framework names for its profiler. In PyTorch, the name of a scope is the
 * operation followed by the class. "enumerate(DataLoader)#<iterator>.__next__" lasts from
 * the moment a training loop asks for a batch until it has the batch, no matter whether
 * processes, threads or the caller itself prepare it. "Optimizer.step#<class>.step" is a
 * step of an optimizer, which may contain steps of other optimizers. Compiled for BPF and
 * user space.
 */
#include <stdbool.h>
#include "abi/types.h"

enum scope {
	SCOPE_LOADER,
	SCOPE_STEP,
	SCOPE_ZERO_GRAD,
	SCOPE_NR, /* any other scope */
};

/* The number of bytes that are read from a name, with the zero at their end. */
#define SCOPE_NAME_BYTES 24

/*
 * The start of a std::string. In the old C++ ABI of GCC it is only the address. The text is
 * followed by a zero in both.
 */
struct cxx_string {
	u64 text; /* address */
	u64 length;
};

/* A scope is an object. The end of a scope is reported for a member within this many bytes. */
#define SCOPE_OBJECT_BYTES 64

static const char scope_prefixes[SCOPE_NR][SCOPE_NAME_BYTES] = {
	[SCOPE_LOADER] = "enumerate(DataLoader)#",
	[SCOPE_STEP] = "Optimizer.step#",
	[SCOPE_ZERO_GRAD] = "Optimizer.zero_grad#",
};

static inline bool scope_begins_with(const char *name, const char prefix[SCOPE_NAME_BYTES])
{
	for (u32 i = 0; i < SCOPE_NAME_BYTES && prefix[i]; i++)
		if (name[i] != prefix[i])
			return false;
	return true;
}

/* The scope of this name, of which at least SCOPE_NAME_BYTES can be read or which ends before. */
static inline u32 scope_of(const char *name)
{
	for (u32 i = 0; i < SCOPE_NR; i++)
		if (scope_begins_with(name, scope_prefixes[i]))
			return i;
	return SCOPE_NR;
}

/* True if `member` is inside the scope object at address `object`. */
static inline bool scope_holds(u64 object, u64 member)
{
	return object && member - object < SCOPE_OBJECT_BYTES;
}

/*
 * Whether a scope at address `object` is not inside the scope at `outer`; 0: there is none. Two
 * objects cannot have the same address, so that the end of `outer` was missed in this case.
 */
static inline bool scope_is_outermost(u64 outer, u64 object)
{
	return !outer || outer == object;
}
