/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The watches of clients that want to know what PyTorch has allocated of the GPU memory that it has
 * reserved, over time. The calls of the allocator are probed only during a watch.
 */
#include "daemon/server.h"
#include "daemon/supervisor.h"

struct usages;

/* The supervisor must outlive it. */
int usages_new(struct supervisor *supervisor, struct usages **ret);
/* No watch may be left. */
struct usages *usages_free(struct usages *usages);

/* Begins a watch, or refuses it. `uid` is as in lines_watch(). */
void usages_watch(struct usages *usages, u32 uid, pid_t pid, u64 seconds, struct reply *reply);
