/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Asks zerneld for the stacks of out-of-memory errors. */
#include "answers/memory.h"
#include "cli/stacks.h"

/* The report refers to the stacks. A stack that zerneld does not have stays unknown. */
void memory_stacks_ask(struct stacks *stacks, const char *socket, struct memory_report *report);
