/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The socket and its clients. The server never waits for a client. Each client has buffers for
 * one request and a few replies. The server answers at most one request of a client per loop
 * iteration, and disconnects a client that does not read in time. docs/reference/protocol.md
 * lists the limits.
 */
#include "base/macros.h"
#include "core/snapshot.h"
#include "daemon/access.h"
#include "daemon/loop.h"
#include "daemon/message.h"
#include "ipc/protocol.h"

struct server;

#define SERVER_CLIENTS_MAX	    64
#define SERVER_CLIENTS_PER_USER	    16
#define SERVER_CLIENTS_PER_STRANGER 2
/* Users without permission to read everything: together they cannot keep members out. */
#define SERVER_STRANGERS_MAX	    16
/* After this time, a connection without a greeting or without any permission ends. */
#define SERVER_GREETING_MS	    5000
#define SERVER_STALLED_MS	    30000

struct reply;

/* An answer that takes time. The connection owns it: a client that goes ends it. */
struct later {
	/* Called often. Returns whether the reply is complete. */
	bool (*poll)(struct later *later, struct reply *reply);
	void (*free)(struct later *later);
};

/* The outcome of a request: a result, or an error with an explanation. */
struct reply {
	bool is_later;	     /* neither: the client waits for a snapshot, or for this: */
	struct later *later; /* or NULL */
	enum protocol_error error;
	char explanation[256];
	struct message *result;
};

__attribute__((format(printf, 3, 4))) void
reply_refuse(struct reply *reply, enum protocol_error error, const char *format, ...);
/* Takes ownership of `text`. NULL means out of memory and makes the reply an error. */
void reply_accept(struct reply *reply, char *text, size_t length);

struct server_ops {
	/* Answers a request of a client that may read. `access` shows whether it may change. */
	void (*request)(void *ctx, const struct socket_peer *peer, enum access access,
			const struct protocol_request *request, struct reply *reply);
	/*
	 * Returns whether snapshot() can be called now. If not, the client waits: server_resume()
	 * and server_tick() call it again. NULL: always.
	 */
	bool (*prepare)(void *ctx);
	/*
	 * Returns a reference to a fresh snapshot of what belongs to a user, or of everything with
	 * SNAPSHOT_UID_UNKNOWN; NULL if no snapshot is available.
	 */
	struct message *(*snapshot)(void *ctx, u32 uid);
	/*
	 * For recordings; NULL if recordings are not supported. A recording begins at
	 * *ret_position. events() returns the events since *position and advances it, or
	 * returns NULL if there are no new events.
	 */
	int (*record_begin)(void *ctx, u64 *ret_position);
	void (*record_end)(void *ctx);
	struct message *(*events)(void *ctx, u64 *position);
};

struct server_config {
	const char *path;
	const char *version;  /* of the program, for the reply to hello */
	u32 snapshot_version; /* also for the reply to hello */
	bool read_own;	      /* as in access_of() */
};

/* Copies `config`, but not its strings. */
int server_new(const struct server_config *config, struct loop *loop, const struct server_ops *ops,
	       void *ctx, struct server **ret);
/* Closes all connections and removes the socket. */
struct server *server_free(struct server *server);
DEFINE_CLEANUP(struct server, server_free);

/*
 * Call it often. Pushes data that is due and disconnects stalled clients. If the socket was
 * deleted, recreates it and returns 1, or returns an error if this fails.
 */
int server_tick(struct server *server);

/* Call it when ops->prepare() can return true for clients that wait. */
void server_resume(struct server *server);

/* Reads the groups again and updates the access of all clients. */
void server_reload(struct server *server, bool read_own);

struct server_counts {
	u32 nr_clients;
	u64 nr_refused; /* because of too many connections */
	u64 nr_dropped; /* malformed or too long request, stalled client, no greeting */
	u64 nr_skipped; /* snapshots that a slow subscriber missed */
};
struct server_counts server_counts(const struct server *server);
