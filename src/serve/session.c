/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connections that send a body. All connections that began to send a snapshot share its
 * bodies. A client that reads slowly keeps the bodies of an older snapshot in memory, so many
 * slow clients would keep as many snapshots. When older bodies exceed their bound, the
 * connections that send the oldest ones are closed. This is done before a new snapshot is
 * parsed, which needs memory too.
 */
#include "serve/gateway.h"

void session_hold(struct gateway *gateway, struct lws *wsi, struct session *session,
		  struct body *body)
{
	session_release(session);
	session->body = body;
	session->sent = 0;
	session->sender = wsi;
	lws_dll2_add_tail(&session->sending, &gateway->sending);
}

void session_release(struct session *session)
{
	if (!session->body)
		return;
	session->body = body_unref(session->body);
	lws_dll2_remove(&session->sending);
}

/* The bodies of this snapshot and of earlier ones, when a new one has come. */
struct older {
	size_t bytes;
	u64 first; /* generation of the oldest one; 0: there is none */
	u64 last;
};

static struct older find_older(struct gateway *gateway)
{
	u64 visit = ++gateway->nr_visits;
	struct older older = {};

	lws_start_foreach_dll(struct lws_dll2 *, each, gateway->sending.head)
	{
		struct body *body = lws_container_of(each, struct session, sending)->body;

		if (body->generation && body->visit != visit) {
			body->visit = visit;
			older.bytes += body->length;
			if (!older.first || body->generation < older.first)
				older.first = body->generation;
			if (body->generation > older.last)
				older.last = body->generation;
		}
	}
	lws_end_foreach_dll(each);
	return older;
}

/* The body is freed now, the connection in a later loop iteration. */
static void cut(struct gateway *gateway, struct session *session)
{
	gateway->nr_cut++;
	lws_set_timeout(session->sender, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
	session_release(session);
}

void sessions_cut_oldest(struct gateway *gateway)
{
	struct older older = find_older(gateway);

	/* The latest of them stays, also if it alone exceeds the bound. */
	while (older.bytes > OLDER_BODIES_MAX_BYTES && older.first < older.last) {
		lws_start_foreach_dll_safe(struct lws_dll2 *, each, next, gateway->sending.head)
		{
			struct session *session = lws_container_of(each, struct session, sending);

			if (session->body->generation == older.first)
				cut(gateway, session);
		}
		lws_end_foreach_dll_safe(each, next);
		older = find_older(gateway);
	}
}
