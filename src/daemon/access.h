/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Access rights of clients, from the credentials that the kernel reports. */
#include "base/socket.h"
#include "abi/types.h"

#define ACCESS_GROUP_READ   "zernel"
#define ACCESS_GROUP_CHANGE "zernel-admin"
/* The explanation of a refusal to read. */
#define ACCESS_READ_REFUSED                                                                        \
	"only root and members of group " ACCESS_GROUP_READ                                        \
	" may read this: ask an administrator to add you to the group"

enum access {
	ACCESS_NONE,
	ACCESS_OWN,    /* may read what belongs to the own processes: core/snapshot_own.h */
	ACCESS_READ,   /* includes own */
	ACCESS_CHANGE, /* includes read */
};

/* Looked up only at the start and at a reload, because a lookup over the network can be slow. */
struct access_groups {
	bool has_read;
	bool has_change;
	gid_t read;
	gid_t change;
};

struct access_groups access_groups_read(void);

/* `read_own`: users without a group may read what belongs to them. */
enum access access_of(const struct access_groups *groups, bool read_own,
		      const struct socket_peer *peer);

/* Describes a client for the log, for example "zernel (pid 12, user 0)". */
void access_describe(const struct socket_peer *peer, char *text, size_t size);
