/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One client of the server, from accept() to its end. Only server.c uses it. */
#include "daemon/server.h"

struct connection;

/* The parts of the server that a connection uses. */
struct connection_host {
	struct loop *loop;
	const struct server_config *config;
	const struct server_ops *ops;
	void *ops_ctx;
	struct server_counts *counts;
};

/* Takes ownership of `fd` and of the pidfd of `peer`. */
int connection_new(const struct connection_host *host, int fd, const struct socket_peer *peer,
		   enum access access, struct connection **ret);
struct connection *connection_free(struct connection *connection);

/* Pushes data that is due. Returns false if the connection is over and must be freed. */
bool connection_tick(struct connection *connection, u64 now_ms);

const struct socket_peer *connection_peer(const struct connection *connection);
/* Its user has no permission to read everything. */
bool connection_is_stranger(const struct connection *connection);
void connection_set_access(struct connection *connection, enum access access);

/* The next connection in the list of the server. */
struct connection **connection_next(struct connection *connection);
