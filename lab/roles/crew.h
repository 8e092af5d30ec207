/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tasks beside the launcher of a job, and the channels between them. A member takes a
 * number from its channel, computes, and passes the number on. Channels and members lie in
 * memory that a program finds again after an exec.
 */
#include "framework/framework.h"
#include "roles/channel.h"

/* How a member comes to life. */
enum member_kind {
	MEMBER_THREAD,
	MEMBER_FORK,
	MEMBER_EXEC,   /* forks and executes the program again, as Python's spawn */
	MEMBER_SERVED, /* a grandchild: a fork server, which was executed, forks it */
};

struct member {
	enum member_kind kind;
	enum truth_role role;
	u32 in, out;
	u32 nr_outs; /* it passes each number on to so many channels, from `out` on */
	u64 cpu_ns;  /* for each number, +-20 % */
};

struct crew;

/* Returns NULL after an error message. */
struct crew *crew_new(const struct framework_config *config);

/* Adds `nr` channels or members; returns the index of the first channel. They must fit. */
u32 crew_add_channels(struct crew *crew, enum channel_kind kind, u64 nr);
void crew_add_members(struct crew *crew, struct member member, u64 nr);
struct channel *crew_channel(struct crew *crew, u32 index);

/* Starts all members. Threads log to `truth`. Returns 0, or a negative errno after an error
 * message. */
int crew_start(struct crew *crew, struct truth *truth);

/* Stops all members, waits for them, and frees. Returns a negative errno if one failed. */
int crew_stop(struct crew *crew);

/* The main function of a program that a crew executed; negative: the command line is another one.
 */
int crew_main(int argc, char **argv);
