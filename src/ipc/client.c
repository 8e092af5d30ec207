/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ipc/client.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/socket.h"
#include "base/time.h"
#include "ipc/json.h"

/* A message that zerneld sent without a request. */
struct push {
	struct push *next;
	enum client_push kind;
	struct client_data data;
};

struct client {
	int fd;
	u32 extra_ms; /* see client_wait_longer() */
	u64 last_id;
	struct line_buffer input;
	struct client_data hello; /* the result of the hello request */
	bool keeps_all;
	struct push *pushes;  /* not taken yet; only the latest one unless keeps_all is set */
	struct push **newest; /* where the next push is linked */
};

/* Waits until the socket is ready for `events`. -EAGAIN: the deadline has passed. */
static int wait_until(int fd, short events, u64 deadline_ms)
{
	u64 now = time_now_ns() / NSEC_PER_MSEC;
	struct pollfd poll_fd = { .fd = fd, .events = events };
	int n = poll(&poll_fd, 1, now < deadline_ms ? (int)(deadline_ms - now) : 0);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n == 0 ? -EAGAIN : 0;
}

/* zerneld can reply and close the connection before it has read all input. That is not an error. */
static int send_line(struct client *client, const char *text, size_t length, u64 deadline_ms)
{
	while (length > 0) {
		ssize_t n = send(client->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		int err = 0;

		if (n >= 0) {
			text += n;
			length -= (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno == EAGAIN)
			err = wait_until(client->fd, POLLOUT, deadline_ms);
		else if (errno != EINTR)
			err = -errno;
		if (err < 0)
			return err == -EAGAIN ? -ETIMEDOUT : err;
	}
	return 0;
}

/* Reads and parses the next line. -EAGAIN: no line arrived before the deadline. */
static int next_line(struct client *client, u64 deadline_ms, yyjson_doc **ret)
{
	size_t length;
	yyjson_doc *doc;
	char *line;

	while (!line_buffer_next(&client->input, &line, &length)) {
		int err = wait_until(client->fd, POLLIN, deadline_ms);
		ssize_t n = err < 0 ? err : line_buffer_fill(&client->input, client->fd);

		if (n == 0)
			return -ECONNRESET;
		if (n < 0)
			return (int)n;
	}
	doc = yyjson_read(line, length, 0);
	if (!yyjson_is_obj(yyjson_doc_get_root(doc))) {
		yyjson_doc_free(doc);
		return -EPROTO;
	}
	*ret = doc;
	return 0;
}

static struct push *push_free(struct push *push)
{
	if (push)
		client_data_done(&push->data);
	free(push);
	return NULL;
}

/* Removes and returns the oldest push, or NULL. */
static struct push *take_push(struct client *client)
{
	struct push *push = client->pushes;

	if (push)
		client->pushes = push->next;
	if (!client->pushes)
		client->newest = &client->pushes;
	return push;
}

/* Returns a member of a line and moves the document to it. -EPROTO: no such member. */
static int take_member(yyjson_doc **doc, const char *key, struct client_data *ret)
{
	yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(*doc), key);

	if (!value)
		return -EPROTO;
	*ret = (struct client_data){ .doc = TAKE_PTR(*doc), .value = value };
	return 0;
}

static void add_push(struct client *client, enum client_push kind, yyjson_doc **doc)
{
	struct push *push = calloc(1, sizeof(*push));

	if (!push)
		return;
	push->kind = kind;
	if (take_member(doc, "data", &push->data) < 0) {
		push_free(push);
		return;
	}
	if (!client->keeps_all)
		push_free(take_push(client));
	*client->newest = push;
	client->newest = &push->next;
}

/* True when the line is a push and not a reply. Takes the document when it keeps the push. */
static bool keep_push(struct client *client, yyjson_doc **doc)
{
	static const char *const names[CLIENT_PUSH_NR] = {
		[CLIENT_PUSH_SNAPSHOT] = "snapshot",
		[CLIENT_PUSH_EVENTS] = "events",
	};
	yyjson_val *name = yyjson_obj_get(yyjson_doc_get_root(*doc), "event");

	for (u32 kind = 0; kind < CLIENT_PUSH_NR; kind++) {
		if (yyjson_equals_str(name, names[kind])) {
			add_push(client, kind, doc);
			return true;
		}
	}
	return name;
}

static void note_error(yyjson_val *error, struct client_error *ret)
{
	const char *code = yyjson_get_str(yyjson_obj_get(error, "code"));
	const char *message = yyjson_get_str(yyjson_obj_get(error, "message"));

	if (!ret)
		return;
	snprintf(ret->code, sizeof(ret->code), "%s", code ? code : "failed");
	snprintf(ret->message, sizeof(ret->message), "%s", message ? message : "");
}

/* 1: a successful reply to this request; 0: a line for another request; negative: an error. */
static int take_reply(yyjson_doc **doc, u64 id, struct client_data *ret_result,
		      struct client_error *ret_error)
{
	yyjson_val *root = yyjson_doc_get_root(*doc);
	yyjson_val *error = yyjson_obj_get(root, "error"), *its = yyjson_obj_get(root, "id");
	int err = 0;

	/* An error without an id is about the connection, not about a request. */
	if (error && !its) {
		bool busy = yyjson_equals_str(yyjson_obj_get(error, "code"),
					      protocol_error_code(PROTOCOL_BUSY));

		note_error(error, ret_error);
		return busy ? -EBUSY : -EPROTO;
	}
	if (!yyjson_is_uint(its) || yyjson_get_uint(its) != id)
		return 0;
	if (error) {
		note_error(error, ret_error);
		return -EREMOTEIO;
	}
	if (ret_result)
		err = take_member(doc, "result", ret_result);
	return err < 0 ? err : 1;
}

static int send_request(struct client *client, const char *method, const char *params,
			u64 deadline_ms)
{
	CLEANUP_FREE char *line = NULL;
	size_t length;
	int err = protocol_request_line(++client->last_id, method, params, &line, &length);

	return err < 0 ? err : send_line(client, line, length, deadline_ms);
}

/* -EAGAIN: the reply did not arrive before the deadline. */
static int await_reply(struct client *client, u64 deadline_ms, struct client_data *ret_result,
		       struct client_error *ret_error)
{
	int err = 0;

	while (err == 0) {
		CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = NULL;

		err = next_line(client, deadline_ms, &doc);
		if (err == 0 && !keep_push(client, &doc))
			err = take_reply(&doc, client->last_id, ret_result, ret_error);
	}
	return err < 0 ? err : 0;
}

static u64 deadline_of(const struct client *client)
{
	return time_now_ns() / NSEC_PER_MSEC + CLIENT_TIMEOUT_MS + client->extra_ms;
}

int client_request(struct client *client, const char *method, const char *params,
		   struct client_data *ret_result, struct client_error *ret_error)
{
	u64 deadline_ms = deadline_of(client);
	int err = send_request(client, method, params, deadline_ms);

	if (err == 0)
		err = await_reply(client, deadline_ms, ret_result, ret_error);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

int client_send(struct client *client, const char *method, const char *params)
{
	return send_request(client, method, params, deadline_of(client));
}

int client_reply(struct client *client, struct client_data *ret_result,
		 struct client_error *ret_error)
{
	return await_reply(client, 0, ret_result, ret_error);
}

int client_connect(const char *path, struct client **ret)
{
	CLEANUP(client_free_cleanup) struct client *client = calloc(1, sizeof(*client));
	struct client_error error = {};
	char params[32];
	int err;

	if (!client)
		return -ENOMEM;
	client->input.max = PROTOCOL_REPLY_MAX;
	client->fd = -EBADF;
	client->newest = &client->pushes;
	err = socket_connect(path, 0, &client->fd);
	if (err < 0)
		return err;
	snprintf(params, sizeof(params), "{\"version\":%d}", PROTOCOL_VERSION);
	err = client_request(client, "hello", params, &client->hello, &error);
	if (err == -EREMOTEIO)
		return strcmp(error.code, protocol_error_code(PROTOCOL_VERSION_DIFFERS)) == 0
			       ? -EPROTONOSUPPORT
			       : -EPROTO;
	if (err < 0)
		return err;
	*ret = TAKE_PTR(client);
	return 0;
}

struct client *client_free(struct client *client)
{
	if (!client)
		return NULL;
	cleanup_fd(&client->fd);
	line_buffer_clear(&client->input);
	client_data_done(&client->hello);
	for (struct push *push; (push = take_push(client));)
		push_free(push);
	free(client);
	return NULL;
}

void client_wait_longer(struct client *client, u32 ms)
{
	client->extra_ms = ms;
}

int client_fd(const struct client *client)
{
	return client->fd;
}

bool client_may(const struct client *client, const char *what)
{
	yyjson_val *may = yyjson_obj_get(client->hello.value, "may"), *each;
	size_t i, nr;

	yyjson_arr_foreach(may, i, nr, each) {
		if (yyjson_equals_str(each, what))
			return true;
	}
	return false;
}

int client_subscribe(struct client *client, u32 interval_ms, struct client_error *ret_error)
{
	char params[48];

	snprintf(params, sizeof(params), "{\"interval_ms\":%u}", interval_ms);
	return client_request(client, interval_ms ? "subscribe" : "unsubscribe",
			      interval_ms ? params : NULL, NULL, ret_error);
}

void client_keep_all(struct client *client)
{
	client->keeps_all = true;
}

int client_next(struct client *client, int timeout_ms, enum client_push *ret_kind,
		struct client_data *ret)
{
	u64 deadline_ms = time_now_ns() / NSEC_PER_MSEC + (u64)timeout_ms;
	struct push *push;
	int err = 0;

	/*
	 * Reads all pending lines first, so that the latest push is returned, unless all are kept.
	 */
	while (err == 0 && !(client->keeps_all && client->pushes)) {
		CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = NULL;

		err = next_line(client, client->pushes ? 0 : deadline_ms, &doc);
		if (err == 0)
			keep_push(client, &doc);
	}
	push = take_push(client);
	if (!push)
		return err;
	*ret_kind = push->kind;
	*ret = push->data;
	push->data = (struct client_data){};
	push_free(push);
	return 0;
}
