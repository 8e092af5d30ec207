/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "truth/dir.h"

/*
 * Checks that the truth of a run is consistent. Prints one line on stderr for each
 * fault. Returns the number of faults, or a negative errno.
 */
s64 truth_check(const struct truth_dir *dir);
