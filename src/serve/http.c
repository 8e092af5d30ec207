/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP requests: checks access, selects the response and sends it in chunks. */
#include <errno.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "core/feature.h"
#include "serve/gateway.h"

#define HEADER_MAX   512
#define RESPONSE_MAX 2048 /* headers of a response */
/* A parameter of a request; the name of a cgroup is the longest one. */
#define ARGUMENT_MAX (16 + JOB_CGROUP_LEN)

/* Status codes that the library does not define. */
enum {
	STATUS_UPGRADE_REQUIRED = 426,
	STATUS_HEADERS_TOO_LARGE = 431,
};

int request_header(struct lws *wsi, enum lws_token_indexes token, char *ret, int size)
{
	ret[0] = '\0';
	if (lws_hdr_total_length(wsi, token) == 0)
		return 0;
	return lws_hdr_copy(wsi, ret, size, token) < 0 ? -EMSGSIZE : 0;
}

int request_argument(struct lws *wsi, const char *name, char *ret, size_t size)
{
	size_t length = strlen(name);
	char argument[ARGUMENT_MAX];

	for (int i = 0; lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_URI_ARGS, i) > 0; i++) {
		if (lws_hdr_copy_fragment(wsi, argument, sizeof(argument), WSI_TOKEN_HTTP_URI_ARGS,
					  i) < 0)
			return -EINVAL;
		if (strncmp(argument, name, length) != 0 || argument[length] != '=')
			continue;
		if (strlen(argument + length + 1) >= size)
			return -EINVAL;
		strcpy(ret, argument + length + 1);
		return 1;
	}
	return 0;
}

/* A page in a browser sends the token of a WebSocket as a subprotocol. */
static bool has_token(const struct token *token, struct lws *wsi)
{
	char text[HEADER_MAX];
	bool has = request_header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text, sizeof(text)) == 0 &&
		   token_is_shown(token, text);

	if (!has)
		has = request_header(wsi, WSI_TOKEN_PROTOCOL, text, sizeof(text)) == 0 &&
		      token_is_offered(token, text);
	explicit_bzero(text, sizeof(text));
	return has;
}

u32 request_refusal(struct gateway *gateway, struct lws *wsi, bool is_public)
{
	const struct serve_config *config = gateway->config;
	char host[HEADER_MAX], origin[HEADER_MAX];

	if (config->tls_cert && !lws_is_ssl(wsi))
		return HTTP_STATUS_FORBIDDEN;
	if (request_header(wsi, WSI_TOKEN_HOST, host, sizeof(host)) < 0 ||
	    request_header(wsi, WSI_TOKEN_ORIGIN, origin, sizeof(origin)) < 0 ||
	    lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_AUTHORIZATION) >= HEADER_MAX)
		return STATUS_HEADERS_TOO_LARGE;
	if (!host[0])
		return HTTP_STATUS_BAD_REQUEST;
	if (!gateway->token.length && !config->tls_client_ca &&
	    !host_is_known(&gateway->origins, host))
		return HTTP_STATUS_FORBIDDEN;
	if (origin[0] && !origin_is_allowed(&gateway->origins, origin,
					    config->tls_cert ? "https" : "http", host))
		return HTTP_STATUS_FORBIDDEN;
	if (is_public || !gateway->token.length || has_token(&gateway->token, wsi))
		return 0;
	return HTTP_STATUS_UNAUTHORIZED;
}

static bool is_method(struct lws *wsi, enum lws_token_indexes uri)
{
	return lws_hdr_total_length(wsi, uri) > 0;
}

static int add_header(struct lws *wsi, const char *name, const char *value, unsigned char **at,
		      unsigned char *end)
{
	return lws_add_http_header_by_name(wsi, (const unsigned char *)name,
					   (const unsigned char *)value, (int)strlen(value), at,
					   end);
}

/* The page loads only files of this server, and no other page can show or read a response. */
static int add_policy(struct lws *wsi, unsigned char **at, unsigned char *end)
{
	static const struct {
		const char *name;
		const char *value;
	} headers[] = {
		{ "content-security-policy:",
		  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		  "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'" },
		{ "x-content-type-options:", "nosniff" },
		{ "referrer-policy:", "no-referrer" },
		{ "cross-origin-resource-policy:", "same-origin" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		if (add_header(wsi, headers[i].name, headers[i].value, at, end))
			return -1;
	return 0;
}

static int send_headers(struct lws *wsi, const struct response *response, size_t length)
{
	unsigned char buffer[LWS_PRE + RESPONSE_MAX], *start = buffer + LWS_PRE, *at = start;
	unsigned char *end = buffer + sizeof(buffer) - 1;
	u32 status = response->status;

	if (lws_add_http_common_headers(wsi, status, response->type, length, &at, end) ||
	    add_header(wsi, "cache-control:", response->cache ? response->cache : "no-store", &at,
		       end) ||
	    add_header(wsi, "vary:", "accept, accept-encoding", &at, end) ||
	    add_policy(wsi, &at, end))
		return -1;
	if (response->encoding &&
	    add_header(wsi, "content-encoding:", response->encoding, &at, end))
		return -1;
	if (response->disposition &&
	    add_header(wsi, "content-disposition:", response->disposition, &at, end))
		return -1;
	if (status == HTTP_STATUS_UNAUTHORIZED &&
	    add_header(wsi, "www-authenticate:", "Bearer", &at, end))
		return -1;
	if (status == HTTP_STATUS_METHOD_NOT_ALLOWED &&
	    add_header(wsi, "allow:", "GET, HEAD", &at, end))
		return -1;
	return lws_finalize_write_http_header(wsi, start, &at, end);
}

static int send_chunk(struct lws *wsi, struct session *session)
{
	struct body *body = session->body;
	bool last = session->last;
	size_t left, length;

	if (!body)
		return 0;
	left = body->length - session->sent;
	length = left < CHUNK_BYTES ? left : CHUNK_BYTES;
	if (lws_write(wsi, body_data(body) + session->sent, length,
		      length == left ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int)length)
		return -1;
	session->sent += length;
	if (length < left) {
		lws_callback_on_writable(wsi);
		return 0;
	}
	session_release(session);
	/* The session is freed with the transaction, so `last` is a copy. */
	return lws_http_transaction_completed(wsi) || last ? -1 : 0;
}

int http_reply(struct lws *wsi, struct session *session, const struct response *response,
	       struct body *body)
{
	session_hold(gateway_of(wsi), wsi, session, body);
	if (send_headers(wsi, response, body->length))
		return -1;
	if (is_method(wsi, WSI_TOKEN_HEAD_URI)) {
		session_release(session);
		return lws_http_transaction_completed(wsi) ? -1 : 0;
	}
	lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, RESPONSE_TIMEOUT_S);
	return send_chunk(wsi, session);
}

static int reply_text(struct lws *wsi, struct session *session, u32 status, const char *type,
		      const char *text)
{
	struct body *body = body_new(text, strlen(text));

	return body ? http_reply(wsi, session, &(struct response){ status, type }, body) : -1;
}

int http_reply_status(struct lws *wsi, struct session *session, u32 status, const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "%u: %s\n", status, why);
	return reply_text(wsi, session, status, "text/plain; charset=utf-8", text);
}

int http_reply_shared(struct gateway *gateway, struct lws *wsi, struct session *session,
		      enum body_kind kind)
{
	const char *defect = upstream_defect(gateway->upstream);
	struct body *body;
	int err;

	/* Old values would look like an idle machine, so the gateway sends an error instead. */
	if (defect)
		return http_reply_status(wsi, session, HTTP_STATUS_SERVICE_UNAVAILABLE, defect);
	err = bodies_get(&gateway->bodies, kind, &body);
	if (err < 0) {
		log_error("cannot render %s: %s", body_content_type(kind), strerror(-err));
		return http_reply_status(
			wsi, session, HTTP_STATUS_INTERNAL_SERVER_ERROR,
			"cannot render the snapshot; the log of zernel serve has the reason");
	}
	return http_reply(wsi, session,
			  &(struct response){ HTTP_STATUS_OK, body_content_type(kind) }, body);
}

static int reply_metrics(struct gateway *gateway, struct lws *wsi, struct session *session)
{
	char accept[2 * HEADER_MAX];

	if (request_header(wsi, WSI_TOKEN_HTTP_ACCEPT, accept, sizeof(accept)) < 0)
		return http_reply_status(wsi, session, STATUS_HEADERS_TOO_LARGE,
					 "the Accept header is too long");
	return http_reply_shared(gateway, wsi, session, accept_choose(accept));
}

static int reply_health(struct gateway *gateway, struct lws *wsi, struct session *session)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "{\"status\":\"ok\",\"connections\":%u,\"websockets\":%u,\"refused\":%llu,"
		 "\"skipped\":%llu,\"cut\":%llu}\n",
		 gateway->nr_connections, gateway->websockets.count, gateway->nr_refused,
		 gateway->nr_skipped, gateway->nr_cut);
	return reply_text(wsi, session, HTTP_STATUS_OK, "application/json", text);
}

/* A kernel that lacks something does not make the node unready: the rest works. */
static int reply_ready(struct gateway *gateway, struct lws *wsi, struct session *session)
{
	const char *defect = upstream_defect(gateway->upstream);
	const struct snapshot *snapshot = gateway->bodies.snapshot;
	char lacks[200], text[240];

	if (defect)
		return http_reply_status(wsi, session, HTTP_STATUS_SERVICE_UNAVAILABLE, defect);
	features_list(snapshot->lacks, lacks, sizeof(lacks));
	snprintf(text, sizeof(text), "ready%s%s", *lacks ? "; left out on this kernel: " : "",
		 lacks);
	return http_reply_status(wsi, session, HTTP_STATUS_OK, text);
}

static int reply_endpoint(struct gateway *gateway, struct lws *wsi, struct session *session,
			  enum endpoint endpoint)
{
	switch (endpoint) {
	case ENDPOINT_METRICS: return reply_metrics(gateway, wsi, session);
	case ENDPOINT_SNAPSHOT: return http_reply_shared(gateway, wsi, session, BODY_SNAPSHOT);
	case ENDPOINT_HEALTH: return reply_health(gateway, wsi, session);
	case ENDPOINT_READY: return reply_ready(gateway, wsi, session);
	case ENDPOINT_WS:
		return http_reply_status(
			wsi, session, STATUS_UPGRADE_REQUIRED,
			"this endpoint is a WebSocket; send a request with Upgrade: websocket");
	case ENDPOINT_NONE: break;
	default: return api_reply(gateway, wsi, session, endpoint);
	}
	return http_reply_status(wsi, session, HTTP_STATUS_NOT_FOUND,
				 "not found; zernel-serve(1) lists the paths");
}

static const char *refusal_text(u32 status)
{
	switch (status) {
	case HTTP_STATUS_UNAUTHORIZED:
		return "missing or wrong token; send the header Authorization: Bearer TOKEN";
	case HTTP_STATUS_FORBIDDEN:
		return "the Host or Origin header is not allowed, or TLS is missing; see "
		       "allow_origin in zernel.conf(5)";
	default: return "the Host header is missing, or a header is too long";
	}
}

static int serve_request(struct lws *wsi, struct session *session, const char *path)
{
	struct gateway *gateway = gateway_of(wsi);
	const struct asset *asset;
	u32 refusal;

	if (!is_method(wsi, WSI_TOKEN_GET_URI) && !is_method(wsi, WSI_TOKEN_HEAD_URI)) {
		session->last = true;
		return http_reply_status(wsi, session, HTTP_STATUS_METHOD_NOT_ALLOWED,
					 "method not allowed; use GET or HEAD");
	}
	if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) > 0 ||
	    lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0) {
		session->last = true;
		return http_reply_status(
			wsi, session, HTTP_STATUS_REQ_ENTITY_TOO_LARGE,
			"request body not allowed; send the request without a body");
	}
	asset = asset_find(path);
	refusal = request_refusal(gateway, wsi, asset);
	if (refusal)
		return http_reply_status(wsi, session, refusal, refusal_text(refusal));
	if (asset)
		return api_reply_asset(wsi, session, asset);
	return reply_endpoint(gateway, wsi, session, endpoint_find(path));
}

int http_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		  size_t length)
{
	struct session *session = user;

	switch (reason) {
	case LWS_CALLBACK_HTTP: return serve_request(wsi, session, in);
	case LWS_CALLBACK_HTTP_WRITEABLE: return send_chunk(wsi, session);
	case LWS_CALLBACK_CLOSED_HTTP:
	case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
		if (session)
			session_release(session);
		return 0;
	default: return 0;
	}
}
