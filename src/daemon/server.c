/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/server.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/connection.h"

/* Every user may connect, so that the reply can explain how to get access. See access.h. */
#define SOCKET_MODE	 0666
/* Maximum number of new clients per loop iteration, so that other events do not wait long. */
#define ACCEPTS_MAX	 16
/* Interval between checks that the socket still exists at its path. */
#define LOOK_INTERVAL_MS 1000

struct server {
	struct server_config config;
	struct loop *loop;
	struct connection_host host;
	struct access_groups groups;
	struct server_counts counts;
	struct connection *connections;
	struct loop_source listener;
	int fd;
	bool has_complained;
	bool is_paused; /* no descriptor was left for a new client */
	u64 looked_ms;
	struct stat bound; /* identity of the socket file that we created */
};

/* Runs the tick of each connection and frees the connections that are over. */
static void reap(struct server *server, u64 now_ms)
{
	struct connection **at = &server->connections;

	while (*at) {
		struct connection *c = *at;

		if (connection_tick(c, now_ms)) {
			at = connection_next(c);
			continue;
		}
		*at = *connection_next(c);
		connection_free(c);
		server->counts.nr_clients--;
	}
}

static u32 nr_of_user(const struct server *server, uid_t user)
{
	u32 nr = 0;

	for (struct connection *c = server->connections; c; c = *connection_next(c))
		nr += connection_peer(c)->uid == user;
	return nr;
}

static u32 nr_of_strangers(const struct server *server)
{
	u32 nr = 0;

	for (struct connection *c = server->connections; c; c = *connection_next(c))
		nr += connection_is_stranger(c);
	return nr;
}

/* The last SERVER_CLIENTS_PER_USER places are for root only. Other users have a limit each. */
static bool has_room(const struct server *server, const struct socket_peer *peer,
		     enum access access)
{
	bool is_stranger = access < ACCESS_READ;
	u32 per_user = is_stranger ? SERVER_CLIENTS_PER_STRANGER : SERVER_CLIENTS_PER_USER;

	if (server->counts.nr_clients >= SERVER_CLIENTS_MAX)
		return false;
	if (peer->uid == 0)
		return true;
	return server->counts.nr_clients < SERVER_CLIENTS_MAX - SERVER_CLIENTS_PER_USER &&
	       nr_of_user(server, peer->uid) < per_user &&
	       (!is_stranger || nr_of_strangers(server) < SERVER_STRANGERS_MAX);
}

/* Sends the error once. The empty buffer of a new connection always has room for it. */
static void turn_away(struct server *server, int fd)
{
	CLEANUP_FREE char *text = NULL, *line = NULL;
	size_t length;
	int size;

	server->counts.nr_refused++;
	if (protocol_error_write(PROTOCOL_BUSY,
				 "too many connections: close some or try again later", &text,
				 &length) < 0)
		return;
	size = asprintf(&line, "{\"error\":%s}\n", text);
	if (size > 0)
		send(fd, line, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int welcome(struct server *server, int fd)
{
	struct connection *c = NULL;
	struct socket_peer peer;
	enum access access;
	int err = socket_peer_read(fd, &peer);

	if (err < 0)
		return err;
	access = access_of(&server->groups, server->config.read_own, &peer);
	err = -EBUSY;
	if (has_room(server, &peer, access))
		err = connection_new(&server->host, fd, &peer, access, &c);
	else
		turn_away(server, fd);
	log_debug("connection from pid %d, user %u: %s", peer.pid, peer.uid,
		  err < 0 ? strerror(-err) : "accepted");
	if (err < 0) {
		cleanup_fd(&peer.pidfd);
		return err;
	}
	*connection_next(c) = server->connections;
	server->connections = c;
	server->counts.nr_clients++;
	return 0;
}

/* The client would wake the loop again at once. It waits for the next tick instead. */
static void pause_listening(struct server *server)
{
	if (!server->has_complained)
		log_event(LOG_LEVEL_WARNING, "no-descriptors",
			  "no descriptor is left for a new client: raise LimitNOFILE of zerneld");
	server->has_complained = true;
	server->is_paused = loop_change(server->loop, &server->listener, 0) == 0;
}

static void on_connect(void *ctx, u32 events)
{
	struct server *server = ctx;

	reap(server, time_now_ns() / NSEC_PER_MSEC);
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
			pause_listening(server);
		if (fd < 0)
			return;
		if (welcome(server, fd) < 0)
			close(fd);
	}
}

static bool is_ours(const struct server *server)
{
	struct stat st;

	return stat(server->config.path, &st) == 0 && st.st_ino == server->bound.st_ino &&
	       st.st_dev == server->bound.st_dev;
}

static void stop_listening(struct server *server)
{
	loop_remove(server->loop, &server->listener);
	cleanup_fd(&server->fd);
	server->fd = -EBADF;
}

/*
 * Creates the directory if no service manager created it. Ignores errors: creating the socket
 * reports them.
 */
static void make_directory(const char *path)
{
	CLEANUP_FREE char *directory = strdup(path);
	char *slash = directory ? strrchr(directory, '/') : NULL;

	if (!slash || slash == directory)
		return;
	*slash = '\0';
	mkdir(directory, 0755);
}

static int start_listening(struct server *server)
{
	CLEANUP_FD int fd = -EBADF;
	int err;

	make_directory(server->config.path);
	err = socket_listen(server->config.path, SOCKET_MODE, &fd);
	if (err < 0)
		return err;
	if (stat(server->config.path, &server->bound) < 0)
		return -errno;
	err = loop_add(server->loop, &server->listener, fd, EPOLLIN);
	if (err < 0)
		return err;
	server->fd = TAKE_FD(fd);
	return 0;
}

int server_new(const struct server_config *config, struct loop *loop, const struct server_ops *ops,
	       void *ctx, struct server **ret)
{
	CLEANUP(server_free_cleanup) struct server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	*server = (struct server){
		.config = *config,
		.loop = loop,
		.groups = access_groups_read(),
		.listener = { .on_event = on_connect, .ctx = server, .fd = -EBADF },
		.fd = -EBADF,
	};
	server->host = (struct connection_host){
		.loop = loop,
		.config = &server->config,
		.ops = ops,
		.ops_ctx = ctx,
		.counts = &server->counts,
	};
	err = start_listening(server);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(server);
	return 0;
}

struct server *server_free(struct server *server)
{
	if (!server)
		return NULL;
	while (server->connections) {
		struct connection *c = server->connections;

		server->connections = *connection_next(c);
		connection_free(c);
	}
	if (server->fd >= 0 && is_ours(server))
		unlink(server->config.path);
	stop_listening(server);
	free(server);
	return NULL;
}

int server_tick(struct server *server)
{
	u64 now_ms = time_now_ns() / NSEC_PER_MSEC;
	int err;

	reap(server, now_ms);
	if (server->is_paused)
		server->is_paused = loop_change(server->loop, &server->listener, EPOLLIN) < 0;
	if (now_ms < server->looked_ms + LOOK_INTERVAL_MS)
		return 0;
	server->looked_ms = now_ms;
	if (server->fd >= 0 && is_ours(server))
		return 0;
	/* Existing connections stay open. */
	stop_listening(server);
	err = start_listening(server);
	return err < 0 ? err : 1;
}

void server_resume(struct server *server)
{
	reap(server, time_now_ns() / NSEC_PER_MSEC);
}

void server_reload(struct server *server, bool read_own)
{
	server->config.read_own = read_own;
	server->groups = access_groups_read();
	for (struct connection *c = server->connections; c; c = *connection_next(c))
		connection_set_access(c, access_of(&server->groups, read_own, connection_peer(c)));
}

struct server_counts server_counts(const struct server *server)
{
	return server->counts;
}
