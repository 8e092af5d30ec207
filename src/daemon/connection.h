/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One client of the server, from accept() to its end. Only server.c uses it. */
#include "daemon/server.h"

struct connection;

/* What a connection needs of its server. */
struct connection_host {
	struct loop *loop;
	const struct server_config *config;
	const struct server_ops *ops;
	void *ops_ctx;
	struct server_counts *counts;
};

/* Takes over the descriptor and the peer's. */
int connection_new(const struct connection_host *host, int fd, const struct socket_peer *peer,
		   enum access access, struct connection **ret);
struct connection *connection_free(struct connection *connection);

/* Pushes what is due. False when the connection is over, and to be freed. */
bool connection_tick(struct connection *connection, u64 now_ms);

uid_t connection_user(const struct connection *connection);
void connection_set_access(struct connection *connection, const struct access_groups *groups);

/* The list that the server keeps them in. */
struct connection **connection_next(struct connection *connection);
