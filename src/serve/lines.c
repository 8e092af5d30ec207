/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/lines.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "answers/lines.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/socket.h"
#include "ipc/json.h"
#include "ipc/protocol.h"
#include "serve/gateway.h"

/* A watch without a client for so long ends. A page asks once a second. */
#define LEASE_US       (5 * LWS_US_PER_SEC)
/* After a refusal, zerneld is not asked again for so long. */
#define RETRY_US       (3 * LWS_US_PER_SEC)
/* zerneld needs up to 5 s to find an interpreter, and some time to answer. */
#define SLACK_US       (20 * LWS_US_PER_SEC)
#define BODY_MAX_BYTES (4U << 20)

struct lines_watch {
	struct lines_watch *next;
	struct gateway *gateway;
	struct watch watch;
	bool connected;
	bool over; /* it is freed when its descriptor is closed */
	struct line_buffer input;
	u64 last_id;
	u32 pid;
	u32 seconds;   /* of the next window */
	u32 window_s;  /* of the current window */
	u64 wanted_us; /* when a client asked last */
	u64 began_us;  /* the current window */
	u64 failed_us;
	struct lines_refusal refusal; /* status 0: none */
	struct body *body;	      /* the latest answer; NULL: none yet */
	lws_sorted_usec_list_t check;
};

static u64 now_us(void)
{
	return (u64)lws_now_usecs();
}

static void free_watch(struct lines_watch *watch)
{
	lws_sul_cancel(&watch->check);
	line_buffer_clear(&watch->input);
	body_unref(watch->body);
	free(watch);
}

static void unlink_watch(struct lines_watch *watch)
{
	struct lines_watch **at = &watch->gateway->lines.first;

	while (*at != watch)
		at = &(*at)->next;
	*at = watch->next;
}

static void end_watch(struct lines_watch *watch)
{
	watch->over = true;
	lws_sul_cancel(&watch->check);
	if (watch->watch.wsi) {
		watch_end(&watch->watch);
		return;
	}
	unlink_watch(watch);
	free_watch(watch);
}

static void refuse(struct lines_watch *watch, u32 status, const char *text)
{
	watch->refusal.status = status;
	snprintf(watch->refusal.text, sizeof(watch->refusal.text), "%s", text);
	watch->failed_us = now_us();
	watch->connected = false;
	watch_end(&watch->watch);
}

static int request(struct lines_watch *watch, const char *method, const char *params)
{
	return watch_request(&watch->watch, ++watch->last_id, method, params);
}

static int begin_window(struct lines_watch *watch)
{
	char params[64];

	watch->began_us = now_us();
	watch->window_s = watch->seconds;
	snprintf(params, sizeof(params), "{\"pid\":%u,\"seconds\":%u}", watch->pid, watch->seconds);
	return request(watch, "lines", params);
}

/* The part of the answer that the dashboard shows, as JSON. */
static int render(yyjson_val *value, char **ret, size_t *ret_length)
{
	CLEANUP(lines_tree_free_cleanup) struct lines_tree *tree = NULL;
	CLEANUP(lines_free_cleanup) struct lines *lines = NULL;
	CLEANUP_FREE char *text = NULL;
	FILE *out;
	int err = lines_read(value, &lines);

	if (err == 0)
		err = lines_tree_new(lines, &tree);
	if (err < 0)
		return err;
	out = open_memstream(&text, ret_length);
	if (!out)
		return -ENOMEM;
	err = lines_write_summary(tree, out);
	if (fclose(out) != 0 && err == 0)
		err = -ENOMEM;
	if (err < 0)
		return err;
	*ret = TAKE_PTR(text);
	return 0;
}

static int take_answer(struct lines_watch *watch, yyjson_val *value)
{
	CLEANUP_FREE char *text = NULL;
	struct body *body;
	size_t length;
	int err = render(value, &text, &length);

	if (err < 0)
		return err;
	if (length > BODY_MAX_BYTES)
		return -E2BIG;
	body = body_new(text, length);
	if (!body)
		return -ENOMEM;
	body_count(body, &watch->gateway->single_bytes);
	body_unref(watch->body);
	watch->body = body;
	return 0;
}

static void take_error(struct lines_watch *watch, yyjson_val *error)
{
	const char *message = yyjson_get_str(yyjson_obj_get(error, "message"));
	const char *code = yyjson_get_str(yyjson_obj_get(error, "code"));

	if (code && strcmp(code, protocol_error_code(PROTOCOL_UNKNOWN_METHOD)) == 0)
		message = "zerneld cannot sample stacks: update zerneld";
	refuse(watch,
	       code && strcmp(code, protocol_error_code(PROTOCOL_NOT_FOUND)) == 0
		       ? HTTP_STATUS_NOT_FOUND
		       : HTTP_STATUS_SERVICE_UNAVAILABLE,
	       message ? message : "zerneld refused the request and gave no reason");
}

/* The first reply is that to hello. */
static void take_line(struct lines_watch *watch, const char *line, size_t length)
{
	CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = yyjson_read(line, length, 0);
	yyjson_val *root = yyjson_doc_get_root(doc), *error = yyjson_obj_get(root, "error");
	yyjson_val *lines = yyjson_obj_get(yyjson_obj_get(root, "result"), "lines");
	int err;

	if (error) {
		take_error(watch, error);
		return;
	}
	if (yyjson_get_uint(yyjson_obj_get(root, "id")) != watch->last_id)
		return;
	err = take_answer(watch, lines);
	if (err == -E2BIG)
		refuse(watch, HTTP_STATUS_SERVICE_UNAVAILABLE,
		       "the stacks are too large for a page: run `zernel why --lines`");
	else if (err < 0)
		refuse(watch, HTTP_STATUS_SERVICE_UNAVAILABLE, "zerneld sent invalid stacks");
	else if (begin_window(watch) < 0)
		refuse(watch, HTTP_STATUS_SERVICE_UNAVAILABLE, "zerneld accepts no requests");
}

static void ready(struct watch *descriptor)
{
	struct lines_watch *watch = descriptor->userdata;
	size_t length;
	char *line;
	ssize_t n;

	if (!watch->connected || watch->over)
		return;
	n = line_buffer_fill(&watch->input, descriptor->fd);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		refuse(watch, HTTP_STATUS_SERVICE_UNAVAILABLE, "zerneld closed the connection");
		return;
	}
	while (watch->connected && line_buffer_next(&watch->input, &line, &length))
		take_line(watch, line, length);
}

static void gone(struct watch *descriptor)
{
	struct lines_watch *watch = descriptor->userdata;

	if (watch->gateway->stop)
		return;
	if (watch->connected)
		refuse(watch, HTTP_STATUS_SERVICE_UNAVAILABLE, "zerneld closed the connection");
	if (watch->over) {
		unlink_watch(watch);
		free_watch(watch);
	}
}

/* Ends a watch that no client wants, that failed some time ago, or that zerneld does not answer. */
static void check_watch(lws_sorted_usec_list_t *sul)
{
	struct lines_watch *watch = lws_container_of(sul, struct lines_watch, check);
	u64 now = now_us();

	if (now - watch->wanted_us > LEASE_US ||
	    (watch->refusal.status && now - watch->failed_us > RETRY_US)) {
		end_watch(watch);
		return;
	}
	if (watch->connected &&
	    now - watch->began_us > (u64)watch->window_s * LWS_US_PER_SEC + SLACK_US)
		refuse(watch, HTTP_STATUS_SERVICE_UNAVAILABLE, "zerneld does not answer");
	lws_sul_schedule(watch->gateway->context, 0, sul, check_watch, LWS_US_PER_SEC);
}

static int connect_watch(struct lines_watch *watch)
{
	char hello[32];
	int err = socket_connect(watch->gateway->config->socket, SOCK_NONBLOCK, &watch->watch.fd);

	if (err < 0)
		return err;
	err = watch_add(watch->gateway, &watch->watch);
	if (err < 0) {
		cleanup_fd(&watch->watch.fd);
		return err;
	}
	watch->connected = true;
	snprintf(hello, sizeof(hello), "{\"version\":%d}", PROTOCOL_VERSION);
	err = request(watch, "hello", hello);
	return err < 0 ? err : begin_window(watch);
}

static struct lines_watch *begin_watch(struct gateway *gateway, u32 pid, u32 seconds)
{
	struct lines_watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return NULL;
	watch->gateway = gateway;
	watch->pid = pid;
	watch->seconds = seconds;
	watch->input.max = PROTOCOL_REPLY_MAX;
	watch->watch = (struct watch){ .userdata = watch, .ready = ready, .gone = gone };
	watch->next = gateway->lines.first;
	gateway->lines.first = watch;
	err = connect_watch(watch);
	if (err < 0)
		refuse(watch, HTTP_STATUS_SERVICE_UNAVAILABLE, strerror(-err));
	lws_sul_schedule(gateway->context, 0, &watch->check, check_watch, LWS_US_PER_SEC);
	return watch;
}

static struct lines_watch *find_watch(struct gateway *gateway, u32 pid, u32 *ret_nr)
{
	*ret_nr = 0;
	for (struct lines_watch *watch = gateway->lines.first; watch; watch = watch->next) {
		(*ret_nr)++;
		if (watch->pid == pid && !watch->over)
			return watch;
	}
	return NULL;
}

int lines_get(struct gateway *gateway, u32 pid, u32 seconds, struct body **ret,
	      struct lines_refusal *ret_refusal)
{
	u32 nr;
	struct lines_watch *watch = find_watch(gateway, pid, &nr);

	if (!watch && nr >= LINES_WATCHES_MAX) {
		*ret_refusal =
			(struct lines_refusal){ HTTP_STATUS_SERVICE_UNAVAILABLE,
						"too many processes are sampled; try again later" };
		return -EREMOTEIO;
	}
	if (!watch)
		watch = begin_watch(gateway, pid, seconds);
	if (!watch)
		return -ENOMEM;
	watch->wanted_us = now_us();
	watch->seconds = seconds;
	if (watch->refusal.status) {
		*ret_refusal = watch->refusal;
		return -EREMOTEIO;
	}
	if (!watch->body)
		return -EAGAIN;
	*ret = body_ref(watch->body);
	return 0;
}

void lines_stop(struct gateway *gateway)
{
	for (struct lines_watch *watch = gateway->lines.first; watch; watch = watch->next)
		lws_sul_cancel(&watch->check);
}

void lines_free_all(struct gateway *gateway)
{
	while (gateway->lines.first) {
		struct lines_watch *watch = gateway->lines.first;

		gateway->lines.first = watch->next;
		free_watch(watch);
	}
}
