/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "cli/term.h"
#include "core/snapshot.h"

/* A snapshot for people. On a terminal long lists are cut so that all of it fits. */
int status_print(const struct snapshot *snapshot, const struct term *term);
