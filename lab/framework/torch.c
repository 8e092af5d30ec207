/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libtorch_cpu.so of the lab. As in PyTorch, a scope is a new object that contains the
 * record; the record ends before the object is freed.
 */
#include "framework/torch.h"

#include <stdlib.h>

struct torch_scope TORCH_SCOPE_ENTER(const struct cxx_string *name, const void *args) {
	return (struct torch_scope){ .object = calloc(1, SCOPE_OBJECT_BYTES) };
}

void TORCH_SCOPE_LEAVE(void *record)
{
	free((char *)record - TORCH_RECORD_OFFSET);
}
