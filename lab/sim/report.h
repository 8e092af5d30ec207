/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

/* Prints the counts of each operation, the locks, and the waits and shares of the tasks. */
void report_print(u64 measured_ns);
