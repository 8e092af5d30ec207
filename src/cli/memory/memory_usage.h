/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* zernel memory --seconds */
#include "cli/answer.h"

/* Watches a process and prints the answer. -ENOENT: no process matches, or nothing was reported. */
int memory_usage(const struct answer_call *request, u64 seconds);
