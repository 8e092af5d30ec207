/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Jobs whose tasks have the roles that are hard to find from outside; main.c has the table of jobs.
 */
#include "framework/framework.h"

/* feed.c: data flows through stages to the launcher. */
void chain_run(struct rank *rank);
void chain_shm_run(struct rank *rank);
void chain_socket_run(struct rank *rank);
void forkserver_run(struct rank *rank);
void rl_run(struct rank *rank);
void spawn_run(struct rank *rank);

void checkpoint_run(struct rank *rank);
void devices_run(struct rank *rank);
void offload_run(struct rank *rank);

void engine_run(struct rank *rank);
int engine_begin(const struct framework_config *config, struct shared *shared);
int engine_end(struct shared *shared);
