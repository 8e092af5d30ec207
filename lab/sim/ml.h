/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the signal programs would find out about the processes of a job: see ml.c. */
#include "abi/types.h"

struct task_struct;

/* `gpu` is a number of the machine; `node` is its NUMA node, from 0. */
void ml_launcher_begins(struct task_struct *p, u32 gpu, u32 node);
void ml_loader_begins(struct task_struct *p, struct task_struct *launcher);
void ml_helper_begins(struct task_struct *p);
void ml_launches(struct task_struct *launcher);
void ml_collective(struct task_struct *launcher);
void ml_sync_begins(struct task_struct *launcher);
void ml_sync_ends(struct task_struct *launcher);
void ml_waits_for_data(struct task_struct *launcher);
void ml_brings_data(struct task_struct *launcher);
void ml_has_data(struct task_struct *launcher);
/* A task on the critical path of the launcher, in another process. */
void ml_critical_begins(struct task_struct *p, struct task_struct *launcher);
void ml_asks(struct task_struct *p, struct task_struct *launcher);
void ml_rests(struct task_struct *p);
/* A launcher finds no work in memory and yields; finds work. */
void ml_polls(struct task_struct *launcher);
void ml_feeds(struct task_struct *launcher);
