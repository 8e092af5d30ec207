/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Access rights of clients, from the credentials that the kernel reports. */
#include "base/socket.h"
#include "abi/types.h"

#define ACCESS_GROUP_READ   "zernel"
#define ACCESS_GROUP_CHANGE "zernel-admin"

enum access {
	ACCESS_NONE,
	ACCESS_READ,
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

enum access access_of(const struct access_groups *groups, const struct socket_peer *peer);

/* Describes a client for the log, for example "zernel (pid 12, user 0)". */
void access_describe(const struct socket_peer *peer, char *text, size_t size);
