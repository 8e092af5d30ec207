/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Snapshots of a node during a training job, and snapshots with random values. */
#include "core/snapshot.h"
#include "metrics/metrics.h"
#include "property/random.h"

#define NODE_JOB_NODES 32

struct node {
	u32 nr_ranks;	   /* each with two loader processes */
	u32 nr_operations; /* collectives in use */
	u32 number;	   /* of the node; a job has NODE_JOB_NODES nodes */
	u32 age_s;	   /* time since the first snapshot of the node */
	u32 nr_gpus;	   /* that the ranks share; 0: one per rank */
	u32 nr_causes;	   /* of idle time; 0: NODE_CAUSES */
};

/* Causes of idle time that a rank usually has. */
#define NODE_CAUSES 5

/* The default configuration. */
extern const struct metrics_config node_config;

struct snapshot *node_snapshot(const struct node *node);

/* Random values of the full range of each type. */
struct snapshot *node_random(struct random *r);
