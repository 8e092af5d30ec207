/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "cli/term.h"
#include "ipc/procdb_text.h"

int procdb_table(const struct term *term, const struct procdb_list *list, u64 now_s);
