/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A client of zerneld. A request waits for its reply, at most CLIENT_TIMEOUT_MS. Snapshots
 * of a subscription can arrive in between; the latest one is kept until client_next()
 * returns it. After any error except -EREMOTEIO and -EAGAIN, the connection is not usable:
 * free the client and connect again.
 */
#include "base/macros.h"
#include "ipc/protocol.h"

#define CLIENT_TIMEOUT_MS 5000

struct client;

/* A parsed value that zerneld sent. It is valid as long as its document. */
struct client_data {
	yyjson_doc *doc;
	yyjson_val *value;
};

static inline void client_data_done(struct client_data *data)
{
	yyjson_doc_free(data->doc);
	*data = (struct client_data){};
}

/* The error that zerneld replied with. */
struct client_error {
	char code[32];
	char message[256];
};

/*
 * Connects and sends hello. -EBUSY: zerneld has too many clients. -EPROTONOSUPPORT: zerneld
 * uses another version of the protocol. -EPROTO: the server is not zerneld.
 */
int client_connect(const char *path, struct client **ret);
struct client *client_free(struct client *client);
DEFINE_CLEANUP(struct client, client_free);

/* Requests from now on wait by so much longer, for work that takes long. */
void client_wait_longer(struct client *client, u32 ms);

/* The descriptor for an event loop; readable when client_next() can return data. */
int client_fd(const struct client *client);

/* Whether zerneld allows this client `what`, which is "read" or "change". */
bool client_may(const struct client *client, const char *what);

/*
 * `params` is the text of a JSON object, or NULL. *ret_result is the result of the reply;
 * the caller releases it with client_data_done(). With NULL for `ret_result`, the result is
 * discarded. -EREMOTEIO: zerneld replied with an error, which is in *ret_error (unless that
 * is NULL). -ETIMEDOUT: zerneld did not reply.
 */
int client_request(struct client *client, const char *method, const char *params,
		   struct client_data *ret_result, struct client_error *ret_error);

/*
 * Sends a request, for a caller that does not wait for its reply. client_reply() returns it, before
 * anything else is requested.
 */
int client_send(struct client *client, const char *method, const char *params);

/* As client_request(), for the request that was sent last. -EAGAIN: its reply has not arrived. */
int client_reply(struct client *client, struct client_data *ret_result,
		 struct client_error *ret_error);

/* Requests a snapshot per interval; 0 ends the subscription. */
int client_subscribe(struct client *client, u32 interval_ms, struct client_error *ret_error);

/* From now on, every push is kept, in order, and not only the latest snapshot. */
void client_keep_all(struct client *client);

enum client_push {
	CLIENT_PUSH_SNAPSHOT,
	CLIENT_PUSH_EVENTS,
	CLIENT_PUSH_NR,
};

/*
 * Returns the latest snapshot or, when all pushes are kept, the next push. The caller
 * releases it with client_data_done(). Waits at most `timeout_ms` (0: does not wait).
 * -EAGAIN: no push arrived. -ECONNRESET: zerneld closed the connection.
 */
int client_next(struct client *client, int timeout_ms, enum client_push *ret_kind,
		struct client_data *ret);
