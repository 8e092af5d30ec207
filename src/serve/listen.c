/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listening sockets: opens them before privileges are dropped, and accepts connections up
 * to the limit.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "serve/gateway.h"

#define BACKLOG	    256
#define ACCEPTS_MAX 64 /* per loop iteration, so that other descriptors are served */

/* Marks connections of clients; other descriptors in the loop have other user data. */
static char connection;

static u16 port_of(int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		return 0;
	return ntohs(address.ss_family == AF_INET
			     ? ((const struct sockaddr_in *)&address)->sin_port
			     : ((const struct sockaddr_in6 *)&address)->sin6_port);
}

static int open_one(const char *text, u16 port, int *ret_fd)
{
	CLEANUP_FD int fd = -EBADF;
	struct sockaddr_storage address;
	socklen_t length;
	int one = 1, err;

	err = address_parse(text, port, &address, &length);
	if (err < 0)
		return err;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    (address.ss_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) ||
	    bind(fd, (const struct sockaddr *)&address, length) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int listen_open(const struct serve_config *config, int *ret_fds, size_t *ret_nr)
{
	static const char *const loopback[] = { "127.0.0.1", "::1" };
	const char *const *addresses = config->nr_addresses ? config->addresses : loopback;
	size_t nr_addresses = config->nr_addresses ? config->nr_addresses : 2, nr = 0;
	u16 port = config->port;

	for (size_t i = 0; i < nr_addresses; i++) {
		const char *text = addresses[i];
		bool v6 = strchr(text, ':');
		int err = open_one(text, port, &ret_fds[nr]);

		/* Missing IPv6 is an error only when the user configured an IPv6 address. */
		if (addresses == loopback && v6 && (err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT))
			continue;
		if (err < 0) {
			log_error("cannot listen on %s port %u: %s; if another process uses the "
				  "port, choose a different port with --port",
				  text, port, strerror(-err));
			while (nr > 0)
				close(ret_fds[--nr]);
			return err;
		}
		port = port_of(ret_fds[nr++]);
		log_info("listening on %s://%s%s%s:%u", config->tls_cert ? "https" : "http",
			 v6 ? "[" : "", text, v6 ? "]" : "", port);
	}
	*ret_nr = nr;
	return 0;
}

/* Limits the kernel buffer and the time that the kernel waits for a dead peer. */
static void set_options(int fd)
{
	int one = 1, size = SEND_BUFFER_BYTES, timeout_ms = 1000 * RESPONSE_TIMEOUT_S;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

static void accept_one(struct gateway *gateway, int fd)
{
	struct lws *wsi;

	if (gateway->nr_connections >= gateway->max_connections) {
		gateway->nr_refused++;
		close(fd);
		return;
	}
	set_options(fd);
	wsi = lws_adopt_socket_vhost(gateway->vhost, fd);
	if (!wsi)
		return;
	gateway->nr_connections++;
	lws_set_opaque_user_data(wsi, &connection);
}

void listen_closed(struct gateway *gateway, struct lws *wsi)
{
	if (lws_get_opaque_user_data(wsi) == &connection)
		gateway->nr_connections--;
}

static void ready(struct watch *watch)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		accept_one(watch->userdata, fd);
	}
}

void listen_watch(struct gateway *gateway, int fd, struct watch *watch)
{
	*watch = (struct watch){ .fd = fd, .userdata = gateway, .ready = ready };
}
