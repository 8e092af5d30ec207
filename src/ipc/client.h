/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A client of zerneld. Requests wait for their reply, so long at most; snapshots that
 * were subscribed to come in between and are kept, the latest of them, until somebody
 * takes it. After any failure but -EREMOTEIO and -EAGAIN the connection is of no use:
 * free the client and connect anew.
 */
#include "base/macros.h"
#include "ipc/protocol.h"

#define CLIENT_TIMEOUT_MS 5000

struct client;

/* A value that zerneld sent, as it was parsed. It lives as long as its document. */
struct client_data {
	yyjson_doc *doc;
	yyjson_val *value;
};

static inline void client_data_done(struct client_data *data)
{
	yyjson_doc_free(data->doc);
	*data = (struct client_data){};
}

/* What zerneld said no to. */
struct client_error {
	char code[32];
	char message[256];
};

/*
 * Connects and says hello. -EBUSY: zerneld has too many clients. -EPROTONOSUPPORT: it speaks
 * another version of the protocol. -EPROTO: it is no zerneld.
 */
int client_connect(const char *path, struct client **ret);
struct client *client_free(struct client *client);
DEFINE_CLEANUP(struct client, client_free);

/* Readable when client_next() may have something; for a loop of one's own. */
int client_fd(const struct client *client);

/* What zerneld allows, of "read" and "change". */
bool client_may(const struct client *client, const char *what);

/*
 * `params` is the text of a JSON object, or NULL. *ret_result is the reply's result, for
 * client_data_done(); NULL for `ret_result` throws it away. -EREMOTEIO: zerneld answered
 * with an error, which is in *ret_error (unless that is NULL). -ETIMEDOUT: it did not answer.
 */
int client_request(struct client *client, const char *method, const char *params,
		   struct client_data *ret_result, struct client_error *ret_error);

/* From now on a snapshot comes that often; 0 to end it. */
int client_subscribe(struct client *client, u32 interval_ms, struct client_error *ret_error);

/* From now on all that is pushed is kept, in its order, and not only the latest snapshot. */
void client_keep_all(struct client *client);

enum client_push {
	CLIENT_PUSH_SNAPSHOT,
	CLIENT_PUSH_EVENTS,
	CLIENT_PUSH_NR,
};

/*
 * The latest snapshot that came or, where all is kept, what came next; for client_data_done().
 * Waits for it so long at most (0: not at all). -EAGAIN: nothing came. -ECONNRESET: zerneld
 * is gone.
 */
int client_next(struct client *client, int timeout_ms, enum client_push *ret_kind,
		struct client_data *ret);
