/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The gateway's one state, which its files share. libwebsockets calls back for each
 * connection; one thread, one loop, and nothing in it ever waits.
 */
#include <libwebsockets.h>
#include <uv.h>
#include "serve/bodies.h"
#include "serve/config.h"
#include "serve/tls.h"
#include "serve/token.h"
#include "serve/upstream.h"

/* Limits. Whoever runs into one is turned away; the others do not notice. */
#define CONNECTIONS_MAX	   2048
#define WEBSOCKETS_MAX	   1536	 /* so that scrapers always find room */
#define HEADERS_MAX_BYTES  8192	 /* of a request, all of them */
#define HEADERS_TIMEOUT_S  10	 /* for all of a request's headers, and for TLS */
#define IDLE_TIMEOUT_S	   60	 /* between two requests */
#define RESPONSE_TIMEOUT_S 30	 /* to take a whole response */
#define STALLED_TIMEOUT_S  10	 /* a WebSocket client that takes nothing */
#define PING_AFTER_S	   30	 /* nothing was heard of a WebSocket client */
#define SEND_BUFFER_BYTES  65536 /* of each connection, in the kernel */
#define CHUNK_BYTES	   16384 /* at once to one client */

struct gateway {
	const struct serve_config *config;
	struct origins origins;
	uv_loop_t loop;
	struct lws_context *context;
	struct lws_vhost *vhost;
	SSL_CTX *tls; /* the vhost's; NULL without TLS */
	struct token token;
	struct bodies bodies;
	struct upstream *upstream;
	struct lws_dll2_owner websockets; /* of struct session */
	u32 nr_connections;
	u32 max_connections;
	u64 nr_refused; /* connections beyond the limit */
	u64 nr_skipped; /* messages that a slow client missed */
	u64 nr_cut;	/* clients that were closed, or went, in the middle of a message */
	bool stop;
};

/* A connection. A body is being sent when there is one. */
struct session {
	struct lws_dll2 list; /* in websockets */
	struct lws *wsi;
	struct body *body;
	size_t sent;
	bool last;  /* the connection ends with this response */
	u64 due_us; /* when the next message is */
	u32 interval_ms;
};

static inline struct gateway *gateway_of(struct lws *wsi)
{
	return lws_context_user(lws_get_context(wsi));
}

/* The descriptors in the loop that are no clients: listeners, signals, zerneld. */
struct watch {
	int fd; /* belongs to the loop once it is in it */
	void *userdata;
	void (*ready)(struct watch *watch);
	void (*gone)(struct watch *watch); /* may be NULL; the descriptor is closed by then */
	struct lws *wsi;
};

/* Watches for input. The watch must live until gone() or the end of the loop. */
int watch_add(struct gateway *gateway, struct watch *watch);
/* Closes the descriptor, before long. */
void watch_end(struct watch *watch);

/* A loop that is ready for listeners; what it failed at is in the log. */
int gateway_start(struct gateway *gateway);
/* Reads token and certificates again; what cannot be used leaves the old ones in place. */
void gateway_reload(struct gateway *gateway);
void gateway_end(struct gateway *gateway);

/* http.c: the status of a request that may not go on, 0 when it may. */
u32 request_refusal(struct gateway *gateway, struct lws *wsi);
int http_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		  size_t length);

/* ws.c */
int ws_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		size_t length);
/* There is a new snapshot: to whom it is due. */
void ws_push(struct gateway *gateway);
/* How often the most impatient client wants one. */
u32 ws_interval_ms(const struct gateway *gateway);

/* listen.c: opens all sockets, or none. */
int listen_open(const struct serve_config *config, int *ret_fds, size_t *ret_nr);
/* Connections that come in on `fd` are the gateway's. */
void listen_watch(struct gateway *gateway, int fd, struct watch *ret);
/* Any connection of the loop has ended. */
void listen_closed(struct gateway *gateway, struct lws *wsi);
