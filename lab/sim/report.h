/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the counts of each operation, the locks, and the waits and shares of the tasks. */
#include "abi/types.h"

void report_print(u64 measured_ns);
