/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "cli/term.h"
#include "core/snapshot.h"

/* Prints a snapshot as text. On a terminal, long lists are cut to fit on one screen. */
int status_print(const struct snapshot *snapshot, const struct term *term);
