/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The socket and its clients. Nobody here is ever waited for: a client has room for one
 * request and a few replies, one request of it is answered a turn, and what it does not
 * read in time ends its connection. docs/PROTOCOL.md has the limits.
 */
#include "base/macros.h"
#include "daemon/access.h"
#include "daemon/loop.h"
#include "daemon/message.h"
#include "ipc/protocol.h"

struct server;

#define SERVER_CLIENTS_MAX	    64
#define SERVER_CLIENTS_PER_USER	    16
#define SERVER_CLIENTS_PER_STRANGER 2
#define SERVER_STALLED_MS	    30000

/* What a request came to: a result, or an error and what to say of it. */
struct reply {
	enum protocol_error error;
	char explanation[256];
	struct message *result;
};

__attribute__((format(printf, 3, 4))) void
reply_refuse(struct reply *reply, enum protocol_error error, const char *format, ...);
/* Takes over `text`; NULL for want of memory is an error of its own. */
void reply_accept(struct reply *reply, char *text, size_t length);

struct server_ops {
	/* A request that is allowed in general; `access` says what else is. */
	void (*request)(void *ctx, const struct socket_peer *peer, enum access access,
			const struct protocol_request *request, struct reply *reply);
	/* A reference to the snapshot, made anew if need be; NULL when there is none. */
	struct message *(*snapshot)(void *ctx);
	/*
	 * For recordings; NULL where there are none. Somebody begins one, at *ret_position,
	 * or ends it; and what happened since *position, which moves on, NULL for nothing.
	 */
	int (*record_begin)(void *ctx, u64 *ret_position);
	void (*record_end)(void *ctx);
	struct message *(*events)(void *ctx, u64 *position);
};

struct server_config {
	const char *path;
	const char *version;  /* of the program, for hello */
	u32 snapshot_version; /* likewise */
};

/* `config` is copied, its texts are not. */
int server_new(const struct server_config *config, struct loop *loop, const struct server_ops *ops,
	       void *ctx, struct server **ret);
/* Ends all connections and removes the socket. */
struct server *server_free(struct server *server);
DEFINE_CLEANUP(struct server, server_free);

/*
 * Call it often: pushes what is due, ends who stalls. Makes the socket anew when it was
 * deleted, and tells so by 1; what stands in the way of that by an error.
 */
int server_tick(struct server *server);

/* Groups may have come or gone. */
void server_reload(struct server *server);

struct server_counts {
	u32 nr_clients;
	u64 nr_refused; /* for want of room */
	u64 nr_dropped; /* ended by us: malformed, too long, stalled */
	u64 nr_skipped; /* snapshots that a slow subscriber missed */
};
struct server_counts server_counts(const struct server *server);
