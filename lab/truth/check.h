/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "truth/dir.h"

/*
 * Does the truth of a run add up? Every fault is one line on stderr. Returns how
 * many there were, or a negative errno.
 */
s64 truth_check(const struct truth_dir *dir);
