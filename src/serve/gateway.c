/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/gateway.h"
#include <errno.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "ipc/protocol.h"

_Static_assert(BODY_HEADROOM >= LWS_PRE,
	       "libwebsockets writes the header of a frame in front of the data");

#define LIBRARY_LINES_MAX 100

/* Logs the errors of the library. Their number is limited because remote clients can cause some. */
static void log_library(int level, const char *line)
{
	static u32 nr;

	if (nr++ < LIBRARY_LINES_MAX)
		log_warning("libwebsockets: %.*s", (int)strcspn(line, "\n"), line);
}

/* Loads the server certificate here because the library cannot reload it. */
static int load_tls(struct gateway *gateway, SSL_CTX *ctx)
{
	gateway->tls = ctx;
	return tls_load(ctx, gateway->config) < 0 ? -1 : 0;
}

static int client_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
			   size_t length)
{
	switch (reason) {
	case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
		return load_tls(gateway_of(wsi), user);
	case LWS_CALLBACK_WSI_DESTROY: listen_closed(gateway_of(wsi), wsi); return 0;
	case LWS_CALLBACK_HTTP:
	case LWS_CALLBACK_HTTP_WRITEABLE:
	case LWS_CALLBACK_CLOSED_HTTP:
	case LWS_CALLBACK_HTTP_DROP_PROTOCOL: return http_callback(wsi, reason, user, in, length);
	default: return ws_callback(wsi, reason, user, in, length);
	}
}

static int watch_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
			  size_t length)
{
	struct watch *watch = lws_get_opaque_user_data(wsi);

	if (!watch)
		return 0;
	if (reason == LWS_CALLBACK_RAW_RX_FILE) {
		watch->ready(watch);
	} else if (reason == LWS_CALLBACK_RAW_CLOSE_FILE) {
		watch->wsi = NULL;
		if (watch->gone)
			watch->gone(watch);
	}
	return 0;
}

int watch_add(struct gateway *gateway, struct watch *watch)
{
	lws_sock_file_fd_type descriptor = { .filefd = watch->fd };
	struct lws_vhost *inside = lws_get_vhost_by_name(gateway->context, "inside");

	watch->wsi = lws_adopt_descriptor_vhost(inside, LWS_ADOPT_RAW_FILE_DESC, descriptor,
						"watch", NULL);
	if (!watch->wsi)
		return -ENOMEM;
	lws_set_opaque_user_data(watch->wsi, watch);
	return 0;
}

void watch_end(struct watch *watch)
{
	if (watch->wsi)
		lws_set_timeout(watch->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
}

/* A request is much shorter than the socket buffer, so a partial send is an error. */
int watch_request(struct watch *watch, u64 id, const char *method, const char *params)
{
	CLEANUP_FREE char *line = NULL;
	size_t length;
	int err = protocol_request_line(id, method, params, &line, &length);

	if (err < 0)
		return err;
	if (send(watch->fd, line, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length)
		return -EPIPE;
	return 0;
}

/* Watched descriptors are on a separate virtual host that no client can reach. */
static int add_hosts(struct gateway *gateway)
{
	static const struct lws_protocols inside[] = {
		{ .name = "watch", .callback = watch_callback },
		{},
	};
	static const struct lws_protocols outside[] = {
		{ .name = "zernel",
		  .callback = client_callback,
		  .per_session_data_size = sizeof(struct session),
		  .rx_buffer_size = 128,
		  .tx_packet_size = CHUNK_BYTES },
		{},
	};
	static const lws_retry_bo_t idle = {
		.secs_since_valid_ping = PING_AFTER_S,
		.secs_since_valid_hangup = PING_AFTER_S + STALLED_TIMEOUT_S,
	};
	struct lws_context_creation_info info = {
		.vhost_name = "inside",
		.port = CONTEXT_PORT_NO_LISTEN,
		.protocols = inside,
	};

	if (!lws_create_vhost(gateway->context, &info))
		return -ENOMEM;
	info = (struct lws_context_creation_info){
		.vhost_name = "outside",
		.port = CONTEXT_PORT_NO_LISTEN_SERVER,
		.protocols = outside,
		.alpn = "http/1.1",
		.timeout_secs_ah_idle = HEADERS_TIMEOUT_S,
		.keepalive_timeout = IDLE_TIMEOUT_S,
		.retry_and_idle_policy = &idle,
	};
	if (gateway->config->tls_cert)
		info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT |
				LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX;
	gateway->vhost = lws_create_vhost(gateway->context, &info);
	if (!gateway->vhost)
		return -ENOMEM;
	/* The library reports no error when it did not set up TLS. */
	return gateway->config->tls_cert && !gateway->tls ? -EPROTO : 0;
}

static int read_token(const struct serve_config *config, struct token *ret)
{
	static const char *const hints[] = {
		[EPERM] = "users outside of its group can access the file; run chmod o= on it",
		[EBADMSG] = "the file must contain 16 to 255 printable characters and nothing else",
	};
	int err = config->token_file ? token_read(config->token_file, ret) : 0;

	if (err < 0)
		log_error("cannot use the token in %s: %s", config->token_file,
			  err == -EPERM || err == -EBADMSG ? hints[-err] : strerror(-err));
	return err;
}

/* Without a token, every user of this machine could read what zerneld shows to a group only. */
static int make_token(const struct serve_config *config)
{
	int err = config->makes_token ? token_make(config->token_file) : 0;

	if (err == 1)
		log_info("made a token that clients must send: %s", config->token_file);
	else if (err < 0)
		log_error(
			"cannot make a token in %s: %s; create its folder (systemd-tmpfiles "
			"--create), choose another file with --token-file, or serve every user of "
			"this machine with --token-file ''",
			config->token_file, strerror(-err));
	if (!config->token_file && !config->tls_client_ca)
		log_warning("serving without a token: every user of this machine can read the data "
			    "of all users");
	return err < 0 ? err : 0;
}

static int check_tls(const struct serve_config *config)
{
	const char *defect = config->tls_cert ? tls_defect(config) : NULL;

	if (!defect)
		return 0;
	log_error("cannot load %s, %s%s%s: %s; the files must be in PEM format, the key must match "
		  "the certificate, and this user must be able to read them",
		  config->tls_cert, config->tls_key, config->tls_client_ca ? ", " : "",
		  config->tls_client_ca ? config->tls_client_ca : "", defect);
	return -EINVAL;
}

void gateway_reload(struct gateway *gateway)
{
	bool token = read_token(gateway->config, &gateway->token) == 0;
	bool tls = check_tls(gateway->config) == 0;

	if (tls && gateway->tls && tls_load(gateway->tls, gateway->config) < 0)
		log_error("cannot load the certificates: the files changed during the reload; "
			  "reload again");
	log_info("reloaded: token %s, certificates %s", token ? "read" : "not changed",
		 tls ? "read" : "not changed");
}

int gateway_start(struct gateway *gateway)
{
	void *loops[] = { &gateway->loop };
	struct lws_context_creation_info info = {
		.port = CONTEXT_PORT_NO_LISTEN,
		/*
		 * The library's own loop uses poll(), whose cost grows with the number of clients.
		 */
		.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_LIBUV,
		.foreign_loops = loops,
		.pcontext = &gateway->context,
		.server_string = "zernel",
		.user = gateway,
		.gid = (gid_t)-1,
		.uid = (uid_t)-1,
		.timeout_secs = HEADERS_TIMEOUT_S,
		.max_http_header_data = HEADERS_MAX_BYTES,
		.max_http_header_pool = CONNECTIONS_MAX,
	};
	int err = make_token(gateway->config);

	if (err == 0)
		err = read_token(gateway->config, &gateway->token);
	if (err < 0)
		return err;
	err = check_tls(gateway->config);
	if (err == 0 && gateway->config->history)
		err = past_start(&gateway->past);
	if (err < 0)
		return err;
	gateway->origins =
		(struct origins){ gateway->config->origins, gateway->config->nr_origins };
	lws_set_log_level(LLL_ERR, log_library);
	if (gateway->config->tls_cert)
		info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
	uv_loop_init(&gateway->loop);
	gateway->context = lws_create_context(&info);
	err = gateway->context ? add_hosts(gateway) : -ENOMEM;
	if (err < 0)
		log_error("cannot set up libwebsockets; the log lines above have the reason");
	return err;
}

void gateway_end(struct gateway *gateway)
{
	gateway->stop = true;
	if (gateway->upstream)
		upstream_stop(gateway->upstream);
	lines_stop(gateway);
	if (gateway->context)
		lws_context_destroy(gateway->context);
	/* Handles are freed only after the loop has processed their close. */
	while (gateway->context && uv_run(&gateway->loop, UV_RUN_NOWAIT))
		;
	gateway->upstream = upstream_free(gateway->upstream);
	lines_free_all(gateway);
	bodies_clear(&gateway->bodies);
	for (u32 i = 0; i < ASSETS_MAX; i++)
		body_unref(gateway->assets[i]);
	past_clear(&gateway->past);
	ended_answers_clear(&gateway->ended);
	explicit_bzero(&gateway->token, sizeof(gateway->token));
}
