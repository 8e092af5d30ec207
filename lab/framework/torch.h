/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The part of PyTorch's libtorch_cpu.so that Zernel probes: scopes. The lab's library of
 * that name exports the same symbols, so that scopes can be tested without PyTorch.
 */
#include "core/scope.h"

/*
 * C++ returns an object with a destructor in memory that the caller provides. C does so
 * for a struct of more than 16 bytes, in the same registers on every architecture.
 */
struct torch_scope {
	void *object;
	u64 unused[2];
};

#define TORCH_SCOPE_ENTER                                                                          \
	_ZN5torch8autograd8profiler25record_function_enter_newERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt8optionalIS7_E
#define TORCH_SCOPE_LEAVE _ZN2at14RecordFunction3endEv

/* The end of a scope is a call with this member of its object. */
#define TORCH_RECORD_OFFSET 24

struct torch_scope TORCH_SCOPE_ENTER(const struct cxx_string *name, const void *args);
void TORCH_SCOPE_LEAVE(void *record);
