/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The part of a snapshot that belongs to one user: the user's processes, their threads and jobs,
 * and the GPUs that they use. Everything else is empty: names, numbers and sums of other users and
 * of the node. What stays and says something about others: the values of a GPU that others use too,
 * and how long a process of the user waited for others.
 */
#include "core/snapshot.h"

int snapshot_own(const struct snapshot *all, u32 uid, struct snapshot **ret);
