/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "core/scope.h"

/* C returns a struct of more than 16 bytes as C++ returns an object: in memory of the caller. */
struct scope_result {
	void *object;
	u64 unused[2];
};

typedef struct scope_result (*scope_enter)(const void *string, const void *args);

#define SCOPE_ENTERS 4

/* All names of the call that enters a scope. */
extern const scope_enter scope_enters[SCOPE_ENTERS];
void scope_leave(void *member);
/* Frees the scope that was entered last. The next one gets its address. */
void scope_free(void);
