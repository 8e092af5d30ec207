/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The part of a snapshot that is about zerneld itself. Only snapshot_builder.c uses it. */
#include "daemon/snapshot_builder.h"

/* Sets what was dropped, who exceeded a quota, the probes, and what zerneld costs. */
void counts_fold(const struct snapshot_sources *sources, struct snapshot *s);
