/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state of the gateway, shared by its files. libwebsockets invokes callbacks for each
 * connection. The gateway has one thread and one loop, and no callback blocks.
 */
#include <libwebsockets.h>
#include <uv.h>
#include "serve/assets.h"
#include "serve/bodies.h"
#include "serve/config.h"
#include "serve/ended.h"
#include "serve/lines.h"
#include "serve/past.h"
#include "serve/tls.h"
#include "serve/token.h"
#include "serve/upstream.h"

/* Limits. A client that exceeds a limit is refused; all other clients are not affected. */
#define CONNECTIONS_MAX		2048
#define WEBSOCKETS_MAX		1536  /* so that scrapers can always connect */
#define HEADERS_MAX_BYTES	8192  /* all headers of a request */
#define HEADERS_TIMEOUT_S	10    /* for all headers of a request, and for the TLS handshake */
#define IDLE_TIMEOUT_S		60    /* between two requests */
#define RESPONSE_TIMEOUT_S	30    /* to receive a whole response */
#define STALLED_TIMEOUT_S	10    /* a WebSocket client that receives nothing */
#define PING_AFTER_S		30    /* a WebSocket client that sends nothing gets a ping */
#define SEND_BUFFER_BYTES	65536 /* kernel buffer of each connection */
#define CHUNK_BYTES		16384 /* per write to one client */
/* Memory of all bodies of earlier snapshots, which slow clients have not received yet. */
#define OLDER_BODIES_MAX_BYTES	(16U << 20)
/* Memory of all bodies that only one client gets. Further requests for one are refused. */
#define SINGLE_BODIES_MAX_BYTES (16U << 20)

struct gateway {
	const struct serve_config *config;
	struct origins origins;
	uv_loop_t loop;
	struct lws_context *context;
	struct lws_vhost *vhost;
	SSL_CTX *tls; /* the vhost's; NULL without TLS */
	struct token token;
	struct bodies bodies;
	struct body *assets[ASSETS_MAX]; /* those that were requested */
	struct past past;
	struct ended_answers ended;
	struct lines_watches lines;
	size_t single_bytes; /* of all bodies that only one client gets */
	struct upstream *upstream;
	struct lws_dll2_owner websockets; /* of struct session */
	struct lws_dll2_owner sending;	  /* of struct session: those with a body */
	u64 nr_visits;			  /* of all bodies that are being sent */
	u32 nr_connections;
	u32 max_connections;
	u64 nr_refused; /* connections beyond the limit */
	u64 nr_skipped; /* messages that a slow client missed */
	u64 nr_cut;	/* connections that ended in the middle of a message */
	bool stop;
};

/* A connection. `body` is not NULL while a body is being sent. */
struct session {
	struct lws_dll2 list; /* in websockets */
	struct lws *wsi;
	struct lws_dll2 sending; /* in sending, while `body` is not NULL */
	struct lws *sender;
	struct body *body;
	size_t sent;
	bool last;  /* the connection ends with this response */
	u64 due_us; /* time of the next message */
	u32 interval_ms;
	bool wants_events;
};

static inline struct gateway *gateway_of(struct lws *wsi)
{
	return lws_context_user(lws_get_context(wsi));
}

/* Descriptors in the loop other than clients: listeners, signals, zerneld. */
struct watch {
	int fd; /* owned by the loop after watch_add() */
	void *userdata;
	void (*ready)(struct watch *watch);
	void (*gone)(struct watch *watch); /* may be NULL; called after the descriptor is closed */
	struct lws *wsi;
};

/* Watches for input. The watch must exist until gone() is called or the loop ends. */
int watch_add(struct gateway *gateway, struct watch *watch);
/* Closes the descriptor in a later loop iteration. */
void watch_end(struct watch *watch);
/* Sends a request to zerneld. */
int watch_request(struct watch *watch, u64 id, const char *method, const char *params);

/* Creates a loop that is ready for listeners. Logs its errors. */
int gateway_start(struct gateway *gateway);
/* Reloads the token and the certificates. Keeps the old ones when the new ones are not valid. */
void gateway_reload(struct gateway *gateway);
void gateway_end(struct gateway *gateway);

/* session.c: takes ownership of a body to send; the session sends no other one. */
void session_hold(struct gateway *gateway, struct lws *wsi, struct session *session,
		  struct body *body);
void session_release(struct session *session);
/* Closes the connections that keep too many bodies in memory. Called before a new snapshot. */
void sessions_cut_oldest(struct gateway *gateway);

/*
 * http.c: the HTTP status to refuse a request with, or 0 when the request is allowed. A public
 * file needs no token.
 */
u32 request_refusal(struct gateway *gateway, struct lws *wsi, bool is_public);
/* Copies a header; an absent header is empty. -EMSGSIZE: it does not fit in `size`. */
int request_header(struct lws *wsi, enum lws_token_indexes token, char *ret, int size);
/* Finds the parameter `name` of a request. 1: found; 0: absent; -EINVAL: too long. */
int request_argument(struct lws *wsi, const char *name, char *ret, size_t size);

/* What a response has beside its body. Members that are NULL are left out. */
struct response {
	u32 status;
	const char *type;
	const char *cache;    /* NULL: no-store */
	const char *encoding; /* NULL: none */
	const char *disposition;
};
/* Takes ownership of the body. */
int http_reply(struct lws *wsi, struct session *session, const struct response *response,
	       struct body *body);
int http_reply_status(struct lws *wsi, struct session *session, u32 status, const char *why);
int http_reply_shared(struct gateway *gateway, struct lws *wsi, struct session *session,
		      enum body_kind kind);

/* api.c: the endpoints of the dashboard. */
int api_reply(struct gateway *gateway, struct lws *wsi, struct session *session,
	      enum endpoint endpoint);
int api_reply_asset(struct lws *wsi, struct session *session, const struct asset *asset);
int http_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		  size_t length);

/* ws.c */
int ws_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		size_t length);
/* Sends a new snapshot to each client whose interval has passed and that wants no events. */
void ws_push(struct gateway *gateway);
/* Sends it with its events to each client that wants events. */
void ws_push_events(struct gateway *gateway);
bool ws_wants_events(const struct gateway *gateway);
/* The shortest interval that a client requested. */
u32 ws_interval_ms(const struct gateway *gateway);

/* listen.c: opens all sockets. On an error, none stays open. */
int listen_open(const struct serve_config *config, int *ret_fds, size_t *ret_nr);
/* Initializes a watch that accepts connections on `fd`. */
void listen_watch(struct gateway *gateway, int fd, struct watch *ret);
/* Must be called when a connection of any kind ends. */
void listen_closed(struct gateway *gateway, struct lws *wsi);
