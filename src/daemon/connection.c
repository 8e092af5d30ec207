/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/connection.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "daemon/outbox.h"

/* Maximum number of lines of one push. */
#define PUSH_LINES 2

struct connection {
	const struct connection_host *host;
	struct connection *next;
	struct loop_source source;
	struct socket_peer peer;
	enum access access;
	bool greeted;
	bool ended;   /* the client sends no more requests; pending ones are still answered */
	bool closing; /* no more requests are answered; queued lines are still sent */
	bool over;
	bool is_waiting;     /* for an answer; no other request is answered meanwhile */
	struct later *later; /* the answer; NULL: a snapshot */
	u64 waiting_id;	     /* of its request */
	int fd;
	struct line_buffer input;
	struct outbox output;
	u64 opened_ms; /* or when its access last changed */
	u64 due_ms;
	u32 interval_ms; /* 0: not subscribed */
	bool recording;	 /* receives events too */
	u64 position;	 /* of the next event to send */
};

void reply_refuse(struct reply *reply, enum protocol_error error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reply->explanation, sizeof(reply->explanation), format, args);
	va_end(args);
	reply->error = error;
}

void reply_accept(struct reply *reply, char *text, size_t length)
{
	reply->result = message_new(text, length);
	if (!reply->result)
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
}

static u64 now_ms(void)
{
	return time_now_ns() / NSEC_PER_MSEC;
}

/* Takes ownership of the body. A NULL body means out of memory and ends the connection. */
static void enqueue(struct connection *c, struct message *body, const char *head)
{
	if (body)
		outbox_add(&c->output, head, body, now_ms());
	else
		c->over = true;
}

static void enqueue_error(struct connection *c, const u64 *id, enum protocol_error error,
			  const char *explanation)
{
	char head[OUTBOX_HEAD_LEN] = "{\"error\":";
	char *text = NULL;
	size_t length;

	if (id)
		snprintf(head, sizeof(head), "{\"id\":%llu,\"error\":", *id);
	if (protocol_error_write(error, explanation, &text, &length) < 0)
		text = NULL;
	enqueue(c, message_new(text, length), head);
}

/* Sends a last error to a client whose input is invalid, then closes the connection. */
static void hang_up(struct connection *c, enum protocol_error error, const char *explanation)
{
	enqueue_error(c, NULL, error, explanation);
	c->closing = true;
	c->host->counts->nr_dropped++;
}

static void flush(struct connection *c)
{
	if (!c->over && outbox_flush(&c->output, c->fd, now_ms()) < 0)
		c->over = true;
	if (c->output.nr == 0 && !c->is_waiting &&
	    (c->closing || (c->ended && !line_buffer_has_line(&c->input))))
		c->over = true;
}

static void say_hello(struct connection *c, yyjson_val *params, struct reply *reply)
{
	static const char *const may[] = {
		[ACCESS_NONE] = "",
		[ACCESS_OWN] = "\"read-own\"",
		[ACCESS_READ] = "\"read\"",
		[ACCESS_CHANGE] = "\"read\",\"change\"",
	};
	yyjson_val *version = yyjson_obj_get(params, "version");
	char *text = NULL;
	int length;

	if (!yyjson_is_uint(version) || yyjson_get_uint(version) != PROTOCOL_VERSION) {
		reply_refuse(reply, PROTOCOL_VERSION_DIFFERS,
			     "zerneld %s supports only protocol version %d: update the client to "
			     "the version of zerneld",
			     c->host->config->version, PROTOCOL_VERSION);
		return;
	}
	length = asprintf(
		&text,
		"{\"version\":%d,\"server\":\"zerneld %s\",\"snapshot_version\":%u,\"may\":[%s]}",
		PROTOCOL_VERSION, c->host->config->version, c->host->config->snapshot_version,
		may[c->access]);
	reply_accept(reply, length < 0 ? NULL : text, (size_t)length);
	c->greeted = reply->result;
}

static bool can_take_snapshot(const struct connection *c)
{
	/* Strangers do not make zerneld sample GPUs. */
	return c->access < ACCESS_READ || !c->host->ops->prepare ||
	       c->host->ops->prepare(c->host->ops_ctx);
}

static struct message *take_snapshot(const struct connection *c)
{
	u32 uid = c->access == ACCESS_OWN ? c->peer.uid : SNAPSHOT_UID_UNKNOWN;

	return c->host->ops->snapshot(c->host->ops_ctx, uid);
}

/* The snapshot comes first, because building it reads all pending events. */
static void enqueue_push(struct connection *c)
{
	struct message *message = take_snapshot(c);

	if (message)
		enqueue(c, message, "{\"event\":\"snapshot\",\"data\":");
	message = c->recording ? c->host->ops->events(c->host->ops_ctx, &c->position) : NULL;
	if (message)
		enqueue(c, message, "{\"event\":\"events\",\"data\":");
}

static void end_recording(struct connection *c)
{
	if (c->recording)
		c->host->ops->record_end(c->host->ops_ctx);
	c->recording = false;
}

static u32 interval_for(const struct connection *c, u64 ms)
{
	return c->access == ACCESS_OWN && ms < PROTOCOL_INTERVAL_OWN_MS ? PROTOCOL_INTERVAL_OWN_MS
									: (u32)ms;
}

static void subscribe(struct connection *c, yyjson_val *params, struct reply *reply)
{
	yyjson_val *interval = yyjson_obj_get(params, "interval_ms");
	u64 ms = interval ? yyjson_get_uint(interval) : PROTOCOL_INTERVAL_DEFAULT_MS;

	if (ms < PROTOCOL_INTERVAL_MIN_MS || ms > PROTOCOL_INTERVAL_MAX_MS) {
		reply_refuse(reply, PROTOCOL_INVALID, "interval_ms must be from %d to %d",
			     PROTOCOL_INTERVAL_MIN_MS, PROTOCOL_INTERVAL_MAX_MS);
		return;
	}
	c->interval_ms = interval_for(c, ms);
	c->due_ms = 0;
	reply_accept(reply, strdup("{}"), 2);
}

static void record_start(struct connection *c, yyjson_val *params, struct reply *reply)
{
	if (!c->host->ops->record_begin) {
		reply_refuse(reply, PROTOCOL_UNSUPPORTED,
			     "this server does not support recordings");
		return;
	}
	subscribe(c, params, reply);
	if (!reply->result || c->recording)
		return;
	if (c->host->ops->record_begin(c->host->ops_ctx, &c->position) == 0)
		c->recording = true;
	else
		c->over = true;
}

/* Sends the remaining data of a recording before the answer, if the outbox has room for both. */
static void unsubscribe(struct connection *c, yyjson_val *params, struct reply *reply)
{
	if (c->recording && c->output.nr + PUSH_LINES < OUTBOX_MAX)
		enqueue_push(c);
	end_recording(c);
	c->interval_ms = 0;
	reply_accept(reply, strdup("{}"), 2);
}

static void snapshot(struct connection *c, yyjson_val *params, struct reply *reply)
{
	reply->is_later = !can_take_snapshot(c);
	if (reply->is_later)
		return;
	reply->result = take_snapshot(c);
	if (!reply->result)
		reply_refuse(reply, PROTOCOL_FAILED, "no snapshot is available");
}

/* Methods that concern the connection, or whose answer all connections share. */
static const struct {
	const char *method;
	enum access needed;
	void (*run)(struct connection *c, yyjson_val *params, struct reply *reply);
} own_methods[] = {
	{ .method = "hello", .needed = ACCESS_NONE, .run = say_hello },
	{ .method = "snapshot", .needed = ACCESS_OWN, .run = snapshot },
	{ .method = "subscribe", .needed = ACCESS_OWN, .run = subscribe },
	{ .method = "unsubscribe", .needed = ACCESS_OWN, .run = unsubscribe },
	{ .method = "record.start", .needed = ACCESS_READ, .run = record_start },
	{ .method = "record.stop", .needed = ACCESS_READ, .run = unsubscribe },
};
#define NR_OWN_METHODS ARRAY_SIZE(own_methods)

static void answer(struct connection *c, const struct protocol_request *request,
		   struct reply *reply)
{
	size_t i = 0;

	while (i < NR_OWN_METHODS && strcmp(own_methods[i].method, request->method) != 0)
		i++;
	if (!c->greeted && i != 0)
		reply_refuse(reply, PROTOCOL_HELLO_NEEDED, "send hello first");
	else if (c->access < (i < NR_OWN_METHODS ? own_methods[i].needed : ACCESS_OWN))
		reply_refuse(reply, PROTOCOL_FORBIDDEN, ACCESS_READ_REFUSED);
	else if (i < NR_OWN_METHODS)
		own_methods[i].run(c, request->params, reply);
	else
		c->host->ops->request(c->host->ops_ctx, &c->peer, c->access, request, reply);
}

static void enqueue_reply(struct connection *c, u64 id, const struct reply *reply)
{
	char head[OUTBOX_HEAD_LEN];

	snprintf(head, sizeof(head), "{\"id\":%llu,\"result\":", id);
	if (reply->error)
		enqueue_error(c, &id, reply->error, reply->explanation);
	else
		enqueue(c, reply->result, head);
}

static void take_line(struct connection *c, const char *line, size_t length)
{
	struct protocol_request request;
	struct reply reply = {};

	if (protocol_request_parse(line, length, &request) != PROTOCOL_OK) {
		hang_up(c, PROTOCOL_MALFORMED,
			"not a request: send one JSON object per line, with id and method");
		return;
	}
	answer(c, &request, &reply);
	c->is_waiting = reply.is_later;
	c->later = reply.later;
	c->waiting_id = request.id;
	if (!reply.is_later)
		enqueue_reply(c, request.id, &reply);
	protocol_request_done(&request);
}

/* Answers one request, if a complete one is available and the outbox has room. */
static bool take_request(struct connection *c)
{
	size_t length;
	char *line;

	if (c->closing || c->is_waiting || c->output.nr == OUTBOX_MAX ||
	    !line_buffer_next(&c->input, &line, &length))
		return false;
	take_line(c, line, length);
	return true;
}

static void read_more(struct connection *c)
{
	ssize_t n = line_buffer_fill(&c->input, c->fd);

	if (n == -EMSGSIZE)
		hang_up(c, PROTOCOL_TOO_LARGE, "a request can have at most 64 KiB");
	else if (n == 0)
		c->ended = true;
	else if (n < 0 && n != -EAGAIN)
		c->over = true;
}

/*
 * While complete requests are pending and the outbox has room, waits for EPOLLOUT. A socket is
 * nearly always writable, so the next loop iteration continues immediately.
 */
static void wait_for_more(struct connection *c)
{
	bool full = c->output.nr == OUTBOX_MAX || c->is_waiting;
	bool pending = line_buffer_has_line(&c->input);
	u32 events = 0;

	if (c->output.nr > 0 || (pending && !full))
		events |= EPOLLOUT;
	if (!pending && !full && !c->closing && !c->ended)
		events |= EPOLLIN;
	if (loop_change(c->host->loop, &c->source, events) < 0)
		c->over = true;
}

static bool may_read_more(const struct connection *c)
{
	return !c->closing && !c->ended && !c->is_waiting && c->output.nr < OUTBOX_MAX;
}

/*
 * Answers at most one request. A connection that is over leaves the loop immediately and is
 * freed later.
 */
static void on_event(void *ctx, u32 events)
{
	struct connection *c = ctx;

	/* A client that closed its socket does not wait any more. */
	if (events & EPOLLERR || (c->is_waiting && events & EPOLLHUP))
		c->over = true;
	if (!take_request(c) && (events & (EPOLLIN | EPOLLHUP)) && may_read_more(c)) {
		read_more(c);
		take_request(c);
	}
	flush(c);
	if (!c->over)
		wait_for_more(c);
	if (c->over)
		loop_remove(c->host->loop, &c->source);
}

static bool push_is_due(const struct connection *c, u64 now)
{
	return c->interval_ms && now >= c->due_ms && !c->closing && !c->ended &&
	       can_take_snapshot(c);
}

static void push(struct connection *c, u64 now)
{
	/* Pushes are due at fixed intervals after the first push, independent of the tick. */
	c->due_ms = c->due_ms && now < c->due_ms + c->interval_ms ? c->due_ms + c->interval_ms
								  : now + c->interval_ms;
	if (c->output.nr > 0) {
		c->host->counts->nr_skipped++;
		return;
	}
	enqueue_push(c);
	flush(c);
}

static void end_later(struct connection *c)
{
	if (c->later)
		c->later->free(c->later);
	c->later = NULL;
}

/* Answers the request that waits, if its answer is complete now. */
static void resume(struct connection *c)
{
	struct reply reply = {};

	if (c->later)
		reply.is_later = !c->later->poll(c->later, &reply);
	else
		snapshot(c, NULL, &reply);
	if (reply.is_later)
		return;
	end_later(c);
	c->is_waiting = false;
	enqueue_reply(c, c->waiting_id, &reply);
	flush(c);
	if (!c->over)
		wait_for_more(c);
}

/* A client that can do nothing may not keep its place. */
static bool is_useless(const struct connection *c, u64 now)
{
	return (!c->greeted || c->access == ACCESS_NONE) && now > c->opened_ms + SERVER_GREETING_MS;
}

static bool is_stalled(const struct connection *c, u64 now)
{
	return c->output.nr > 0 && now > c->output.progress_ms + SERVER_STALLED_MS;
}

bool connection_tick(struct connection *c, u64 now)
{
	if (c->over)
		return false;
	if (is_stalled(c, now) || is_useless(c, now)) {
		c->host->counts->nr_dropped++;
		c->over = true;
	} else if (c->is_waiting) {
		resume(c);
	} else if (push_is_due(c, now)) {
		push(c, now);
		if (!c->over)
			wait_for_more(c);
	}
	if (c->over)
		loop_remove(c->host->loop, &c->source);
	return !c->over;
}

int connection_new(const struct connection_host *host, int fd, const struct socket_peer *peer,
		   enum access access, struct connection **ret)
{
	struct connection *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	*c = (struct connection){
		.host = host,
		.fd = fd,
		.peer = *peer,
		.access = access,
		.opened_ms = now_ms(),
		.source = { .on_event = on_event, .ctx = c },
		.input.max = PROTOCOL_REQUEST_MAX,
	};
	err = loop_add(host->loop, &c->source, fd, EPOLLIN);
	if (err < 0) {
		free(c);
		return err;
	}
	*ret = c;
	return 0;
}

struct connection *connection_free(struct connection *c)
{
	if (!c)
		return NULL;
	end_recording(c);
	end_later(c);
	loop_remove(c->host->loop, &c->source);
	outbox_clear(&c->output);
	line_buffer_clear(&c->input);
	cleanup_fd(&c->peer.pidfd);
	cleanup_fd(&c->fd);
	free(c);
	return NULL;
}

const struct socket_peer *connection_peer(const struct connection *c)
{
	return &c->peer;
}

bool connection_is_stranger(const struct connection *c)
{
	return c->access < ACCESS_READ;
}

void connection_set_access(struct connection *c, enum access access)
{
	c->access = access;
	c->opened_ms = now_ms();
	if (access < ACCESS_READ)
		end_recording(c);
	/* It may concern a process of another user. */
	if (access < ACCESS_READ && c->later)
		c->over = true;
	if (access == ACCESS_OWN && c->interval_ms)
		c->interval_ms = interval_for(c, c->interval_ms);
	if (access != ACCESS_NONE)
		return;
	c->interval_ms = 0;
	c->over |= c->is_waiting;
}

struct connection **connection_next(struct connection *c)
{
	return &c->next;
}
