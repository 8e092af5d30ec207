/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A node in the middle of a training job, and nodes that make no sense. */
#include "core/snapshot.h"
#include "property/random.h"

#define NODE_JOB_NODES 32

struct node {
	u32 nr_ranks;	   /* each with two loader processes */
	u32 nr_operations; /* collectives in use */
	u32 number;	   /* of the node; jobs have NODE_JOB_NODES of them */
	u32 age_s;	   /* how long it has gone on since it was first looked at */
	u32 nr_gpus;	   /* that ranks share; 0: one for each */
};

struct snapshot *node_snapshot(const struct node *node);

/* Anything that fits in the types. */
struct snapshot *node_random(struct random *r);
