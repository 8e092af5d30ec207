/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WebSockets: send each client a snapshot per interval. A client that has not received the
 * previous snapshot when the next is due misses the next one. The gateway closes a
 * connection whose client receives nothing.
 */
#include <errno.h>
#include <string.h>
#include "base/log.h"
#include "serve/gateway.h"

#define ARGUMENT_MAX 64

/* The interval of a request, or the default. -EINVAL, -ERANGE: the parameter is not valid. */
static int wanted_interval(struct lws *wsi, u32 *ret_ms)
{
	char text[ARGUMENT_MAX];
	int found = request_argument(wsi, "interval_ms", text, sizeof(text));

	*ret_ms = INTERVAL_DEFAULT_MS;
	return found == 1 ? interval_parse(text, ret_ms) : found;
}

/* -EINVAL: the parameter is neither 0 nor 1. */
static int wanted_events(struct lws *wsi, bool *ret)
{
	char text[ARGUMENT_MAX];
	int found = request_argument(wsi, "events", text, sizeof(text));

	*ret = found == 1 && strcmp(text, "1") == 0;
	return found < 0 || (found && !*ret && strcmp(text, "0") != 0) ? -EINVAL : 0;
}

/* The HTTP status to refuse an upgrade with, or 0 when the upgrade is allowed. */
static u32 upgrade_refusal(struct gateway *gateway, struct lws *wsi, const char *to)
{
	char path[ARGUMENT_MAX];
	u32 interval_ms, refusal;
	bool events;

	if (strcasecmp(to, "websocket") != 0)
		return HTTP_STATUS_BAD_REQUEST;
	refusal = request_refusal(gateway, wsi, false);
	if (refusal)
		return refusal;
	if (lws_hdr_copy(wsi, path, sizeof(path), WSI_TOKEN_GET_URI) < 0 ||
	    endpoint_find(path) != ENDPOINT_WS)
		return HTTP_STATUS_NOT_FOUND;
	if (wanted_interval(wsi, &interval_ms) < 0 || wanted_events(wsi, &events) < 0)
		return HTTP_STATUS_BAD_REQUEST;
	if (gateway->websockets.count >= WEBSOCKETS_MAX)
		return HTTP_STATUS_SERVICE_UNAVAILABLE;
	return 0;
}

/* Writes the response itself: the library would write HTTP/1.0, which clients do not accept. */
static int confirm_upgrade(struct lws *wsi, const char *to)
{
	u32 refusal = upgrade_refusal(gateway_of(wsi), wsi, to);
	unsigned char buffer[LWS_PRE + 128];
	char *text = (char *)buffer + LWS_PRE;

	if (!refusal)
		return 0;
	snprintf(text, sizeof(buffer) - LWS_PRE,
		 "HTTP/1.1 %u refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", refusal);
	lws_write(wsi, (unsigned char *)text, strlen(text), LWS_WRITE_HTTP_HEADERS);
	return -1;
}

static void start_message(struct gateway *gateway, struct session *session, enum body_kind kind)
{
	struct body *body;

	if (bodies_get(&gateway->bodies, kind, &body) < 0)
		return;
	session_hold(gateway, session->wsi, session, body);
	lws_set_timeout(session->wsi, PENDING_TIMEOUT_USER_REASON_BASE, STALLED_TIMEOUT_S);
	lws_callback_on_writable(session->wsi);
}

static int opened(struct lws *wsi, struct session *session)
{
	struct gateway *gateway = gateway_of(wsi);

	if (wanted_interval(wsi, &session->interval_ms) < 0 ||
	    wanted_events(wsi, &session->wants_events) < 0)
		return -1;
	session->wsi = wsi;
	lws_dll2_add_tail(&session->list, &gateway->websockets);
	session->due_us = (u64)lws_now_usecs() + 1000ULL * session->interval_ms;
	if (!upstream_defect(gateway->upstream))
		start_message(gateway, session, BODY_SNAPSHOT);
	return 0;
}

static void closed(struct lws *wsi, struct session *session)
{
	if (!session->wsi)
		return;
	gateway_of(wsi)->nr_cut += session->body != NULL;
	session_release(session);
	lws_dll2_remove(&session->list);
	session->wsi = NULL;
}

/* Sends a copy: the library writes the frame header in front of the data, and bodies are shared. */
static int send_chunk(struct lws *wsi, struct session *session)
{
	unsigned char frame[LWS_PRE + CHUNK_BYTES];
	struct body *body = session->body;
	size_t left, length;
	bool last;

	if (!body)
		return 0;
	left = body->length - session->sent;
	last = left <= CHUNK_BYTES;
	length = last ? left : CHUNK_BYTES;
	memcpy(frame + LWS_PRE, body_data(body) + session->sent, length);
	if (lws_write(wsi, frame + LWS_PRE, length,
		      lws_write_ws_flags(LWS_WRITE_TEXT, session->sent == 0, last)) < (int)length)
		return -1;
	session->sent += length;
	if (last) {
		session_release(session);
		lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
		return 0;
	}
	lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, STALLED_TIMEOUT_S);
	lws_callback_on_writable(wsi);
	return 0;
}

/* The timing of snapshots varies, so a snapshot may be sent half an interval early. */
static bool is_due(const struct gateway *gateway, const struct session *session, u64 now_us)
{
	return now_us + 500ULL * upstream_interval_ms(gateway->upstream) >= session->due_us;
}

void ws_push(struct gateway *gateway)
{
	u64 now_us = (u64)lws_now_usecs();

	lws_start_foreach_dll(struct lws_dll2 *, each, gateway->websockets.head)
	{
		struct session *session = lws_container_of(each, struct session, list);

		if (!session->wants_events && is_due(gateway, session, now_us)) {
			session->due_us += 1000ULL * session->interval_ms;
			if (session->due_us < now_us)
				session->due_us = now_us + 1000ULL * session->interval_ms;
			if (session->body)
				gateway->nr_skipped++;
			else
				start_message(gateway, session, BODY_SNAPSHOT);
		}
	}
	lws_end_foreach_dll(each);
}

/* No interval: a client that wants events gets all of them. */
void ws_push_events(struct gateway *gateway)
{
	lws_start_foreach_dll(struct lws_dll2 *, each, gateway->websockets.head)
	{
		struct session *session = lws_container_of(each, struct session, list);

		if (session->wants_events && session->body)
			gateway->nr_skipped++;
		else if (session->wants_events)
			start_message(gateway, session, BODY_EVENTS);
	}
	lws_end_foreach_dll(each);
}

bool ws_wants_events(const struct gateway *gateway)
{
	lws_start_foreach_dll(struct lws_dll2 *, each, gateway->websockets.head)
	{
		if (lws_container_of(each, struct session, list)->wants_events)
			return true;
	}
	lws_end_foreach_dll(each);
	return false;
}

u32 ws_interval_ms(const struct gateway *gateway)
{
	u32 least = INTERVAL_DEFAULT_MS;

	lws_start_foreach_dll(struct lws_dll2 *, each, gateway->websockets.head)
	{
		const struct session *session = lws_container_of(each, struct session, list);

		if (session->interval_ms < least)
			least = session->interval_ms;
	}
	lws_end_foreach_dll(each);
	return least;
}

/* Clients must not send data; the gateway closes the connection of a client that does. */
static int refuse_data(struct lws *wsi)
{
	lws_close_reason(wsi, LWS_CLOSE_STATUS_POLICY_VIOLATION, NULL, 0);
	return -1;
}

int ws_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		size_t length)
{
	switch (reason) {
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: return confirm_upgrade(wsi, in);
	case LWS_CALLBACK_ESTABLISHED: return opened(wsi, user);
	case LWS_CALLBACK_SERVER_WRITEABLE: return send_chunk(wsi, user);
	case LWS_CALLBACK_RECEIVE: return refuse_data(wsi);
	case LWS_CALLBACK_CLOSED:
	case LWS_CALLBACK_WS_SERVER_DROP_PROTOCOL:
		if (user)
			closed(wsi, user);
		return 0;
	default: return 0;
	}
}
