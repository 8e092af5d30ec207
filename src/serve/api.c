/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The endpoints of the dashboard, and its files. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <yyjson.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "core/feature.h"
#include "serve/gateway.h"

#define NUMBER_MAX	 32
#define STATUS_ACCEPTED	 202
#define WHY_DEFAULT_S	 5
#define RECORD_DEFAULT_S 60
#define LINES_DEFAULT_S	 10
#define PID_MAX		 (1U << 22)
/* Seconds since the epoch: far in the future. */
#define TIME_MAX_S	 (1ULL << 32)

int api_reply_asset(struct lws *wsi, struct session *session, const struct asset *asset)
{
	const struct response response = {
		.status = HTTP_STATUS_OK,
		.type = asset->type,
		.cache = asset->is_immutable ? "public, max-age=31536000, immutable" : "no-cache",
		.encoding = "gzip",
	};
	struct body **body = &gateway_of(wsi)->assets[asset - assets];
	char accept[256];

	if (request_header(wsi, WSI_TOKEN_HTTP_ACCEPT_ENCODING, accept, sizeof(accept)) < 0 ||
	    !accept_takes_gzip(accept))
		return http_reply_status(wsi, session, HTTP_STATUS_NOT_ACCEPTABLE,
					 "this file is only sent with Content-Encoding: gzip");
	if (!*body)
		*body = body_new((const char *)asset->data, (size_t)(asset->end - asset->data));
	return *body ? http_reply(wsi, session, &response, body_ref(*body)) : -1;
}

/* The number of a parameter, or `otherwise` if it is absent. */
static int get_number(struct lws *wsi, const char *name, u64 min, u64 max, u64 otherwise, u64 *ret)
{
	char text[NUMBER_MAX];
	int found = request_argument(wsi, name, text, sizeof(text));

	*ret = otherwise;
	return found == 1 ? number_parse(text, min, max, ret) : found;
}

static int reply_invalid(struct lws *wsi, struct session *session, const char *what)
{
	char text[160];

	snprintf(text, sizeof(text), "invalid parameter: %s", what);
	return http_reply_status(wsi, session, HTTP_STATUS_BAD_REQUEST, text);
}

static int reply_failed(struct lws *wsi, struct session *session, const char *what, int err)
{
	if (err == -ENODATA)
		return http_reply_status(wsi, session, HTTP_STATUS_SERVICE_UNAVAILABLE,
					 gateway_of(wsi)->past.history
						 ? "not enough data yet; try again in a second"
						 : "the history is switched off; set history=yes "
						   "in section [serve] of zernel.conf");
	log_error("cannot render %s: %s", what, strerror(-err));
	return http_reply_status(wsi, session, HTTP_STATUS_INTERNAL_SERVER_ERROR,
				 "cannot render the answer; the log of zernel serve has the "
				 "reason");
}

static int reply_busy(struct lws *wsi, struct session *session)
{
	return http_reply_status(wsi, session, HTTP_STATUS_SERVICE_UNAVAILABLE,
				 "too many large responses are being sent; try again later");
}

/* A body that only this client gets. Frees the text. */
static int reply_single(struct gateway *gateway, struct lws *wsi, struct session *session,
			const struct response *response, char *text, size_t length)
{
	struct body *body = body_new(text, length);

	free(text);
	if (!body)
		return -1;
	body_count(body, &gateway->single_bytes);
	return http_reply(wsi, session, response, body);
}

static const struct response response_json = { HTTP_STATUS_OK, "application/json" };

/* Answers for the same window share a body, as long as there is room. */
static int why_get(struct gateway *gateway, u32 seconds, struct body **ret)
{
	struct bodies *bodies = &gateway->bodies;
	CLEANUP_FREE char *text = NULL;
	struct why_body *free_one = NULL;
	struct body *body;
	size_t length;
	int err;

	for (u32 i = 0; i < WHY_BODIES_MAX; i++) {
		struct why_body *each = &bodies->why[i];

		if (each->body && each->seconds == seconds) {
			*ret = body_ref(each->body);
			return 0;
		}
		if (!each->body && !free_one)
			free_one = each;
	}
	err = past_why(&gateway->past, bodies->snapshot, seconds, &text, &length);
	if (err < 0)
		return err;
	body = body_new(text, length);
	if (!body)
		return -ENOMEM;
	body->generation = bodies->generation;
	if (free_one)
		*free_one = (struct why_body){ seconds, body_ref(body) };
	else
		body_count(body, &gateway->single_bytes);
	*ret = body;
	return 0;
}

/* An answer that zerneld must be asked for is there a moment later: the client asks again. */
static int reply_pending(struct lws *wsi, struct session *session)
{
	static const char pending[] = "{\"pending\":true}";
	const struct response accepted = { STATUS_ACCEPTED, "application/json" };
	struct body *body = body_new(pending, strlen(pending));

	return body ? http_reply(wsi, session, &accepted, body) : -1;
}

static int reply_ended(struct gateway *gateway, struct lws *wsi, struct session *session,
		       const char *who)
{
	struct body *body;
	int err = ended_answers_get(&gateway->ended, who, &body);

	if (err == -ENOENT)
		return http_reply_status(wsi, session, HTTP_STATUS_NOT_FOUND,
					 "no ended job has this name or cgroup");
	if (err == 0)
		return http_reply(wsi, session, &response_json, body);
	upstream_ask_life(gateway->upstream, who);
	return reply_pending(wsi, session);
}

static int reply_why(struct gateway *gateway, struct lws *wsi, struct session *session)
{
	char who[JOB_CGROUP_LEN];
	struct body *body;
	u64 seconds;
	int err = request_argument(wsi, "ended", who, sizeof(who));

	if (err < 0)
		return reply_invalid(wsi, session, "ended is the name or the cgroup of a job");
	if (err == 1)
		return reply_ended(gateway, wsi, session, who);
	if (get_number(wsi, "seconds", 1, PAST_SECONDS_MAX, WHY_DEFAULT_S, &seconds) < 0)
		return reply_invalid(wsi, session, "seconds must be from 1 to 900");
	if (gateway->single_bytes > SINGLE_BODIES_MAX_BYTES)
		return reply_busy(wsi, session);
	err = why_get(gateway, (u32)seconds, &body);
	return err < 0 ? reply_failed(wsi, session, "why", err)
		       : http_reply(wsi, session, &response_json, body);
}

static int reply_history(struct gateway *gateway, struct lws *wsi, struct session *session)
{
	struct rank_query query = {};
	char job[JOB_CGROUP_LEN], *text;
	u64 step;
	size_t length;
	int found = request_argument(wsi, "job", job, sizeof(job)), err;

	if (found < 0 || get_number(wsi, "since", 0, TIME_MAX_S, 0, &query.since) < 0 ||
	    get_number(wsi, "until", 0, TIME_MAX_S, 0, &query.until) < 0 ||
	    get_number(wsi, "step", 0, RANK_HISTORY_SPAN_S, 0, &step) < 0)
		return reply_invalid(wsi, session,
				     "since and until are seconds since the epoch, step is a "
				     "number of seconds, job is a cgroup");
	if (gateway->single_bytes > SINGLE_BODIES_MAX_BYTES)
		return reply_busy(wsi, session);
	query.step = (u32)step;
	query.job = found ? job : NULL;
	err = rank_history_to_json(gateway->past.history, &query, &text, &length);
	if (err < 0)
		return reply_failed(wsi, session, "the history", err);
	return reply_single(gateway, wsi, session, &response_json, text, length);
}

/* "zernel-node-1-20261117-061500.zr". Only letters, digits, '.' and '-' of the host are used. */
static void name_recording(const struct snapshot *snapshot, char *ret, size_t size)
{
	time_t seconds = (time_t)(snapshot->time_ms / 1000);
	char host[SNAPSHOT_TEXT_LEN], date[32];
	struct tm tm;

	strcpy(host, snapshot->host);
	for (char *c = host; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", *c))
			*c = '_';
	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
	snprintf(ret, size, "attachment; filename=\"zernel-%s-%s.zr\"", host, date);
}

static int reply_recording(struct gateway *gateway, struct lws *wsi, struct session *session)
{
	const struct snapshot *now = gateway->bodies.snapshot;
	char disposition[SNAPSHOT_TEXT_LEN + 80], *text;
	struct response response = { HTTP_STATUS_OK, "application/vnd.zernel.recording",
				     .disposition = disposition };
	u64 seconds, ns;
	size_t length;
	int err;

	if (get_number(wsi, "seconds", 1, PAST_SECONDS_MAX, RECORD_DEFAULT_S, &seconds) < 0)
		return reply_invalid(wsi, session, "seconds must be from 1 to 900");
	if (gateway->single_bytes > SINGLE_BODIES_MAX_BYTES)
		return reply_busy(wsi, session);
	ns = seconds * NSEC_PER_SEC;
	err = gateway->past.recording
		      ? record_keep_copy(gateway->past.recording,
					 now->monotonic_ns > ns ? now->monotonic_ns - ns : 0, &text,
					 &length)
		      : -ENODATA;
	if (err < 0)
		return reply_failed(wsi, session, "the recording", err);
	name_recording(now, disposition, sizeof(disposition));
	return reply_single(gateway, wsi, session, &response, text, length);
}

/*
 * Stacks name files and functions of other users. Without a token or a certificate, every user of
 * the machine is a client, and most of them may see only their own processes.
 */
static int reply_lines(struct gateway *gateway, struct lws *wsi, struct session *session)
{
	struct lines_refusal refusal;
	struct body *body;
	u64 pid, seconds;
	int err;

	if (!gateway->token.length && !gateway->config->tls_client_ca)
		return http_reply_status(wsi, session, HTTP_STATUS_FORBIDDEN,
					 "stacks are shown only to clients with a token or a "
					 "certificate; see token_file in zernel.conf(5)");
	if (get_number(wsi, "pid", 1, PID_MAX, 0, &pid) < 0 || !pid ||
	    get_number(wsi, "seconds", 1, LINES_WINDOW_MAX, LINES_DEFAULT_S, &seconds) < 0)
		return reply_invalid(wsi, session,
				     "pid is a process ID, seconds must be from 1 to 60");
	if (gateway->single_bytes > SINGLE_BODIES_MAX_BYTES)
		return reply_busy(wsi, session);
	err = lines_get(gateway, (u32)pid, (u32)seconds, &body, &refusal);
	if (err == -EAGAIN)
		return reply_pending(wsi, session);
	if (err == -EREMOTEIO)
		return http_reply_status(wsi, session, refusal.status, refusal.text);
	return err < 0 ? reply_failed(wsi, session, "stacks", err)
		       : http_reply(wsi, session, &response_json, body);
}

static void add_lacks(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct snapshot *snapshot)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "lacks");
	const struct feature_row *row;

	for (u32 feature = 0; (row = feature_row(feature)); feature++) {
		yyjson_mut_val *object;

		if (!(snapshot->lacks & 1U << feature))
			continue;
		object = yyjson_mut_arr_add_obj(doc, list);
		yyjson_mut_obj_add_str(doc, object, "feature", row->label);
		yyjson_mut_obj_add_str(doc, object, "since", row->since);
		yyjson_mut_obj_add_str(doc, object, "loss", row->loss);
		yyjson_mut_obj_add_bool(doc, object, "refused", snapshot->refused & 1U << feature);
	}
}

static void add_past(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct past *past)
{
	yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, root, "history");

	yyjson_mut_obj_add_bool(doc, object, "enabled", past->history);
	if (!past->history)
		return;
	yyjson_mut_obj_add_uint(doc, object, "bytes", rank_history_bytes(past->history));
	yyjson_mut_obj_add_uint(doc, object, "bytes_max", RANK_HISTORY_BYTES_MAX);
	yyjson_mut_obj_add_uint(doc, object, "ranks", rank_history_nr_ranks(past->history));
	yyjson_mut_obj_add_uint(doc, object, "thinned", rank_history_nr_thinned(past->history));
	object = yyjson_mut_obj_add_obj(doc, root, "recording");
	yyjson_mut_obj_add_uint(doc, object, "bytes", record_keep_bytes(past->recording));
	yyjson_mut_obj_add_uint(doc, object, "bytes_max", PAST_RECORDING_BYTES);
	yyjson_mut_obj_add_uint(doc, object, "seconds_max", PAST_SECONDS_MAX);
}

static int reply_details(struct gateway *gateway, struct lws *wsi, struct session *session)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *object;
	size_t length;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	add_lacks(doc, root, gateway->bodies.snapshot);
	add_past(doc, root, &gateway->past);
	object = yyjson_mut_obj_add_obj(doc, root, "serve");
	yyjson_mut_obj_add_uint(doc, object, "connections", gateway->nr_connections);
	yyjson_mut_obj_add_uint(doc, object, "websockets", gateway->websockets.count);
	yyjson_mut_obj_add_uint(doc, object, "refused", gateway->nr_refused);
	yyjson_mut_obj_add_uint(doc, object, "skipped", gateway->nr_skipped);
	yyjson_mut_obj_add_uint(doc, object, "cut", gateway->nr_cut);
	text = yyjson_mut_write(doc, 0, &length);
	yyjson_mut_doc_free(doc);
	if (!text)
		return reply_failed(wsi, session, "the state", -ENOMEM);
	return reply_single(gateway, wsi, session, &response_json, text, length);
}

int api_reply(struct gateway *gateway, struct lws *wsi, struct session *session,
	      enum endpoint endpoint)
{
	const char *defect = upstream_defect(gateway->upstream);

	if (defect)
		return http_reply_status(wsi, session, HTTP_STATUS_SERVICE_UNAVAILABLE, defect);
	switch (endpoint) {
	case ENDPOINT_WHY: return reply_why(gateway, wsi, session);
	case ENDPOINT_HISTORY: return reply_history(gateway, wsi, session);
	case ENDPOINT_RECORDING: return reply_recording(gateway, wsi, session);
	case ENDPOINT_LINES: return reply_lines(gateway, wsi, session);
	case ENDPOINT_HEALTH_DETAILS: return reply_details(gateway, wsi, session);
	default: return http_reply_shared(gateway, wsi, session, BODY_JOBS);
	}
}
