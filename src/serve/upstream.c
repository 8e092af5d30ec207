/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/upstream.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/socket.h"
#include "ipc/events_json.h"
#include "ipc/json.h"
#include "ipc/protocol.h"
#include "ipc/snapshot_json.h"
#include "serve/gateway.h"

#define BACKOFF_MIN_MS	100
#define BACKOFF_MAX_MS	5000
/* A snapshot is fresh for FRESH_INTERVALS intervals, but at least for FRESH_MIN_MS. */
#define FRESH_INTERVALS 3
#define FRESH_MIN_MS	5000
/* Minimum time between two changes of the interval; zerneld replies to each with a snapshot. */
#define RESUBSCRIBE_MS	1000
/* A line that is longer than this is a snapshot. Memory is freed for it while it arrives. */
#define LONG_LINE_BYTES (1U << 20)
/* Maximum time between two requests for the ended jobs. */
#define ENDED_MS	30000

_Static_assert(LINE_BUFFER_PADDING >= YYJSON_PADDING_SIZE, "a line cannot be parsed in place");

struct upstream {
	struct gateway *gateway;
	struct watch watch;
	bool connected;
	bool told; /* the missing connection is logged already */
	struct line_buffer input;
	u64 last_id;
	u32 interval_ms;
	bool records; /* zerneld sends events too */
	u64 ended_id; /* the request for the ended jobs; 0: none is open */
	u64 ended_us; /* time of that request */
	u64 life_id;  /* the request for one ended job; 0: none is open */
	char life_who[JOB_CGROUP_LEN];
	u32 backoff_ms;
	u64 subscribed_us;
	u64 heard_us;	 /* time of the latest snapshot, or of the connection */
	u64 snapshot_us; /* time of the latest snapshot that was newer than the one before */
	struct snapshot *before; /* times and jobs of the snapshot before this one; NULL: none */
	lws_sorted_usec_list_t retry;
	lws_sorted_usec_list_t silence;
};

static u64 fresh_us(const struct upstream *upstream)
{
	u64 ms = (u64)FRESH_INTERVALS * upstream->interval_ms;

	return 1000 * (ms > FRESH_MIN_MS ? ms : FRESH_MIN_MS);
}

static u64 now_us(void)
{
	return (u64)lws_now_usecs();
}

/* Logs the reason once; later failed attempts are not logged. */
static void tell_away(struct upstream *upstream, const char *why)
{
	if (!upstream->told)
		log_warning("no data from zerneld at %s: %s; retrying until it answers",
			    upstream->gateway->config->socket, why);
	upstream->told = true;
}

static void disconnect(struct upstream *upstream, const char *why)
{
	tell_away(upstream, why);
	upstream->connected = false;
	watch_end(&upstream->watch);
}

static int request(struct upstream *upstream, const char *method, const char *params)
{
	return watch_request(&upstream->watch, ++upstream->last_id, method, params);
}

static int subscribe(struct upstream *upstream, u32 interval_ms, bool records)
{
	char params[48];

	snprintf(params, sizeof(params), "{\"interval_ms\":%u}", interval_ms);
	upstream->interval_ms = interval_ms;
	upstream->subscribed_us = now_us();
	upstream->records = records;
	return request(upstream, records ? "record.start" : "subscribe", params);
}

/*
 * Adopts the interval that the clients request, and the events, at most once per
 * RESUBSCRIBE_MS. Events cost every ML process something, so zerneld stops to send them.
 */
static void adjust_interval(struct upstream *upstream)
{
	u32 wanted = ws_interval_ms(upstream->gateway);
	bool records = ws_wants_events(upstream->gateway);

	if ((wanted == upstream->interval_ms && records == upstream->records) ||
	    now_us() - upstream->subscribed_us < 1000ULL * RESUBSCRIBE_MS)
		return;
	if ((upstream->records && !records && request(upstream, "record.stop", NULL) < 0) ||
	    subscribe(upstream, wanted, records) < 0)
		disconnect(upstream, "it does not accept requests");
}

static bool has_job(const struct snapshot *snapshot, const char *cgroup)
{
	for (u32 i = 0; i < snapshot->nr_jobs; i++)
		if (strcmp(snapshot->jobs[i].cgroup, cgroup) == 0)
			return true;
	return false;
}

/* A job can also begin and end between two snapshots. */
static bool is_ended_due(const struct upstream *upstream, const struct snapshot *before,
			 const struct snapshot *snapshot)
{
	if (!before || now_us() - upstream->ended_us > 1000ULL * ENDED_MS)
		return true;
	for (u32 i = 0; i < before->nr_jobs; i++)
		if (!has_job(snapshot, before->jobs[i].cgroup))
			return true;
	return false;
}

static void ask_ended(struct upstream *upstream)
{
	if (request(upstream, "jobs.ended", "{}") < 0) {
		disconnect(upstream, "it does not accept requests");
		return;
	}
	upstream->ended_id = upstream->last_id;
	upstream->ended_us = now_us();
}

void upstream_ask_life(struct upstream *upstream, const char *who)
{
	CLEANUP_FREE char *params = NULL;

	if (upstream->life_id || !upstream->connected)
		return;
	params = protocol_ended_params(who);
	if (!params || request(upstream, "jobs.ended", params) < 0) {
		disconnect(upstream, "it does not accept requests");
		return;
	}
	upstream->life_id = upstream->last_id;
	snprintf(upstream->life_who, sizeof(upstream->life_who), "%s", who);
}

/* If zerneld cannot build a snapshot, it sends the last one again. */
static bool is_newer(const struct snapshot *snapshot, const struct snapshot *before)
{
	return !before || snapshot->monotonic_ns != before->monotonic_ns ||
	       snapshot->time_ms != before->time_ms;
}

static void remember(struct past *past, const struct snapshot *snapshot)
{
	int err = past_add(past, snapshot);
	bool is_full = err == -ENOMEM || err == -E2BIG;

	if (is_full && !past->is_full)
		log_warning("a snapshot with %u processes and %u threads is too large to keep: "
			    "history, recording and why have no data or only a part",
			    snapshot->nr_processes, snapshot->nr_threads);
	past->is_full |= is_full;
}

/* Takes ownership of the snapshot. */
static void take_snapshot(struct upstream *upstream, struct snapshot *snapshot)
{
	struct gateway *gateway = upstream->gateway;
	struct bodies *bodies = &gateway->bodies;
	bool ended_due;

	upstream->heard_us = now_us();
	if (!is_newer(snapshot, upstream->before)) {
		bodies->snapshot = snapshot; /* with the bodies of the same one before */
		return;
	}
	ended_due = is_ended_due(upstream, upstream->before, snapshot);
	bodies_set(bodies, snapshot);
	upstream->snapshot_us = upstream->heard_us;
	upstream->backoff_ms = BACKOFF_MIN_MS;
	if (upstream->told || bodies->generation == 1)
		log_info("zerneld answers at %s", upstream->gateway->config->socket);
	upstream->told = false;
	ws_push(gateway);
	remember(&gateway->past, snapshot);
	if (ended_due)
		ask_ended(upstream);
	if (upstream->connected)
		adjust_interval(upstream);
}

/*
 * Two snapshots of the largest size would take much memory. What remains of the old one says
 * whether the new one is newer, and which jobs have ended.
 */
static int read_snapshot(struct upstream *upstream, struct json_parts *parts, struct snapshot **ret)
{
	struct bodies *bodies = &upstream->gateway->bodies;
	yyjson_val *data = yyjson_obj_get(yyjson_doc_get_root(parts->doc), "data");
	int err;

	sessions_cut_oldest(upstream->gateway);
	if (bodies->snapshot) {
		snapshot_free(upstream->before);
		upstream->before = TAKE_PTR(bodies->snapshot);
		snapshot_keep_jobs(upstream->before);
	}
	err = snapshot_from_parts(data, parts, ret);
	if (err < 0) {
		upstream->snapshot_us = 0; /* there is none now */
		disconnect(upstream, "its snapshot is not valid; install the same version of "
				     "zernel and zerneld");
	}
	return err;
}

/* An older zerneld remembers no ended jobs. */
static void take_ended(struct upstream *upstream, yyjson_val *value, struct json_parts *parts)
{
	struct snapshot *ended;

	upstream->ended_id = 0;
	ended_answers_clear(&upstream->gateway->ended);
	if (value && snapshot_from_parts(value, parts, &ended) == 0)
		bodies_set_ended(&upstream->gateway->bodies, ended);
}

static void take_life(struct upstream *upstream, yyjson_val *value, struct json_parts *parts)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *ended = NULL;
	int err = value ? snapshot_from_parts(value, parts, &ended) : 0;

	upstream->life_id = 0;
	if (err == 0)
		err = ended_answers_add(&upstream->gateway->ended, upstream->life_who, ended);
	if (err == 0)
		return;
	log_error("cannot explain an ended job: %s", strerror(-err));
	/* Clients must not ask again and again. */
	ended_answers_add(&upstream->gateway->ended, upstream->life_who, NULL);
}

/* Events of a kind that this version does not know are left out. */
static void take_events(struct upstream *upstream, yyjson_val *value)
{
	struct gateway *gateway = upstream->gateway;
	struct events events = {};
	char *text = NULL;
	size_t length;

	if (events_from_value(value, &events) == 0 &&
	    events_to_json(&events, &text, &length) == 0) {
		past_add_events(&gateway->past, text);
		bodies_set_events(&gateway->bodies, text);
		ws_push_events(gateway);
	}
	events_done(&events);
}

/*
 * Parses a line of any kind: a snapshot, a successful reply, or an error. It is parsed in place,
 * because a copy can be 16 MiB long. The next line can follow it.
 */
static int parse_line(struct upstream *upstream, char *line, size_t length, struct snapshot **ret)
{
	CLEANUP(json_parts_clear) struct json_parts parts = {};
	int err = json_parts_new(line, length, snapshot_long_lists, 2, &parts);
	yyjson_val *root = yyjson_doc_get_root(parts.doc), *error = yyjson_obj_get(root, "error");
	const char *message;

	if (err < 0 || !yyjson_is_obj(root)) {
		disconnect(upstream, "it does not use the protocol of zerneld");
		return -EPROTO;
	}
	if (yyjson_get_uint(yyjson_obj_get(root, "id")) == upstream->ended_id &&
	    upstream->ended_id) {
		take_ended(upstream, yyjson_obj_get(root, "result"), &parts);
		return 0;
	}
	if (yyjson_get_uint(yyjson_obj_get(root, "id")) == upstream->life_id && upstream->life_id) {
		take_life(upstream, yyjson_obj_get(root, "result"), &parts);
		return 0;
	}
	if (error) {
		message = yyjson_get_str(yyjson_obj_get(error, "message"));
		if (yyjson_equals_str(yyjson_obj_get(error, "code"),
				      protocol_error_code(PROTOCOL_VERSION_DIFFERS)))
			message = "it " PROTOCOL_UPDATE_BOTH;
		disconnect(upstream,
			   message ? message : "it refused the request and gave no reason");
		return -EPROTO;
	}
	if (yyjson_equals_str(yyjson_obj_get(root, "event"), "events"))
		take_events(upstream, yyjson_obj_get(root, "data"));
	if (yyjson_equals_str(yyjson_obj_get(root, "event"), "snapshot"))
		return read_snapshot(upstream, &parts, ret);
	return 0;
}

/* The line and its document are freed before the snapshot is rendered: each takes much memory. */
static int take_line(struct upstream *upstream, char *line, size_t length)
{
	struct snapshot *snapshot = NULL;
	int err = parse_line(upstream, line, length, &snapshot);

	line_buffer_trim(&upstream->input);
	if (snapshot)
		take_snapshot(upstream, snapshot);
	return err;
}

static void ready(struct watch *watch)
{
	struct upstream *upstream = watch->userdata;
	size_t length;
	ssize_t n;
	char *line;

	if (!upstream->connected)
		return;
	n = line_buffer_fill(&upstream->input, watch->fd);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		disconnect(upstream, n == 0 ? "it closed the connection" : strerror((int)-n));
		return;
	}
	if (upstream->input.used > LONG_LINE_BYTES)
		sessions_cut_oldest(upstream->gateway);
	while (line_buffer_next(&upstream->input, &line, &length))
		if (take_line(upstream, line, length) < 0 || !upstream->connected)
			return;
}

static void retry_later(struct upstream *upstream)
{
	lws_sul_schedule(upstream->gateway->context, 0, &upstream->retry, upstream->retry.cb,
			 1000LL * upstream->backoff_ms);
	upstream->backoff_ms *= 2;
	if (upstream->backoff_ms > BACKOFF_MAX_MS)
		upstream->backoff_ms = BACKOFF_MAX_MS;
}

static void try_connect(lws_sorted_usec_list_t *sul)
{
	struct upstream *upstream = lws_container_of(sul, struct upstream, retry);
	char hello[32];
	int err = socket_connect(upstream->gateway->config->socket, SOCK_NONBLOCK,
				 &upstream->watch.fd);

	if (err == 0)
		err = watch_add(upstream->gateway, &upstream->watch);
	if (err < 0) {
		tell_away(upstream, strerror(-err));
		retry_later(upstream);
		return;
	}
	upstream->connected = true;
	upstream->heard_us = now_us();
	line_buffer_clear(&upstream->input);
	upstream->ended_id = 0;
	upstream->ended_us = 0;
	upstream->life_id = 0;
	past_interrupt(&upstream->gateway->past);
	snprintf(hello, sizeof(hello), "{\"version\":%d}", PROTOCOL_VERSION);
	if (request(upstream, "hello", hello) < 0 ||
	    subscribe(upstream, ws_interval_ms(upstream->gateway),
		      ws_wants_events(upstream->gateway)) < 0)
		disconnect(upstream, "it does not accept requests");
}

static void gone(struct watch *watch)
{
	struct upstream *upstream = watch->userdata;

	if (upstream->gateway->stop)
		return;
	if (upstream->connected)
		tell_away(upstream, "it closed the connection");
	upstream->connected = false;
	retry_later(upstream);
}

/* Closes a connection on which zerneld sends nothing. */
static void watch_silence(lws_sorted_usec_list_t *sul)
{
	struct upstream *upstream = lws_container_of(sul, struct upstream, silence);

	if (upstream->connected && now_us() - upstream->heard_us > 2 * fresh_us(upstream))
		disconnect(upstream, "it sends no snapshots");
	lws_sul_schedule(upstream->gateway->context, 0, sul, watch_silence, LWS_US_PER_SEC);
}

const char *upstream_defect(const struct upstream *upstream)
{
	if (!upstream->connected)
		return "no connection to zerneld; run zernel doctor";
	if (!upstream->snapshot_us)
		return "no snapshot received yet";
	if (now_us() - upstream->snapshot_us > fresh_us(upstream))
		return "the latest snapshot is out of date; zerneld sends no new snapshots";
	return NULL;
}

u32 upstream_interval_ms(const struct upstream *upstream)
{
	return upstream->interval_ms;
}

int upstream_new(struct gateway *gateway, struct upstream **ret)
{
	struct upstream *upstream = calloc(1, sizeof(*upstream));

	if (!upstream)
		return -ENOMEM;
	upstream->gateway = gateway;
	upstream->watch = (struct watch){ .userdata = upstream, .ready = ready, .gone = gone };
	upstream->input.max = PROTOCOL_REPLY_MAX;
	upstream->interval_ms = INTERVAL_DEFAULT_MS;
	upstream->backoff_ms = BACKOFF_MIN_MS;
	upstream->retry.cb = try_connect;
	lws_sul_schedule(gateway->context, 0, &upstream->retry, try_connect, 1);
	lws_sul_schedule(gateway->context, 0, &upstream->silence, watch_silence, LWS_US_PER_SEC);
	*ret = upstream;
	return 0;
}

void upstream_stop(struct upstream *upstream)
{
	lws_sul_cancel(&upstream->retry);
	lws_sul_cancel(&upstream->silence);
}

struct upstream *upstream_free(struct upstream *upstream)
{
	if (!upstream)
		return NULL;
	line_buffer_clear(&upstream->input);
	snapshot_free(upstream->before);
	free(upstream);
	return NULL;
}
