/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/lines_windows.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "answers/lines.h"
#include "base/log.h"
#include "base/time.h"
#include "cli/ask.h"

#define WINDOW_SECONDS 5
#define RETRY_NS       (5 * NSEC_PER_SEC)

static int begin_window(struct lines_window *window)
{
	char params[64];

	window->retry_ns = 0;
	snprintf(params, sizeof(params), "{\"pid\":%u,\"seconds\":%d}", window->pid,
		 WINDOW_SECONDS);
	return client_send(window->client, "lines", params);
}

static int begin(struct lines_window *window, const char *socket)
{
	int err = ask_connect(socket, &window->client);

	if (err < 0)
		return err;
	err = begin_window(window);
	return err < 0 ? ask_log_refusal(err, NULL) : 0;
}

static bool is_chosen(const struct lines_windows *windows, u32 pid)
{
	for (u32 i = 0; i < windows->nr; i++)
		if (windows->of[i].pid == pid)
			return true;
	return false;
}

int lines_windows_begin(struct lines_windows *windows, const char *socket, const char *const *who,
			u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		u32 pid = 0;
		int err = ask_process(socket, who[i], &pid);

		if (err < 0)
			return err;
		if (is_chosen(windows, pid)) {
			log_error("process %u is selected twice by --stacks", pid);
			return -EINVAL;
		}
		windows->of[windows->nr] = (struct lines_window){ .pid = pid };
		err = begin(&windows->of[windows->nr++], socket);
		if (err < 0)
			return err;
	}
	return 0;
}

static void end(struct lines_window *window, const char *reason)
{
	log_error("no further stacks of process %u are recorded: %s", window->pid, reason);
	window->client = client_free(window->client);
}

/* Asks again later if the reason can pass. */
static void refused(struct lines_window *window, const struct client_error *error)
{
	if (strcmp(error->code, protocol_error_code(PROTOCOL_FAILED)) != 0) {
		end(window, error->message);
		return;
	}
	window->retry_ns = time_now_ns() + RETRY_NS;
	if (!window->is_warned)
		log_warning("no stacks of process %u for now: %s", window->pid, error->message);
	window->is_warned = true;
}

/* A window that cannot be read would make the whole recording unusable. */
static int check(struct client_data *data)
{
	struct lines *lines = NULL;
	int err = lines_read(yyjson_obj_get(data->value, "lines"), &lines);

	lines_free(lines);
	if (err < 0)
		client_data_done(data);
	return err;
}

static void ask_next(struct lines_window *window)
{
	int err = begin_window(window);

	if (err < 0)
		end(window, strerror(-err));
}

static int take(struct lines_window *window, struct client_data *ret)
{
	struct client_error error = {};
	int err;

	if (!window->client || time_now_ns() < window->retry_ns)
		return -EAGAIN;
	if (window->retry_ns) {
		ask_next(window);
		return -EAGAIN;
	}
	err = client_reply(window->client, ret, &error);
	if (err == -EAGAIN)
		return err;
	if (err == 0)
		err = check(ret);
	if (err == 0) {
		ask_next(window);
		return 0;
	}
	if (err == -EREMOTEIO)
		refused(window, &error);
	else
		end(window, strerror(-err));
	return -EAGAIN;
}

int lines_windows_take(struct lines_windows *windows, struct client_data *ret)
{
	for (u32 i = 0; i < windows->nr; i++)
		if (take(&windows->of[i], ret) == 0)
			return 0;
	return -EAGAIN;
}

void lines_windows_poll(const struct lines_windows *windows, struct pollfd *ret)
{
	for (u32 i = 0; i < windows->nr; i++) {
		struct client *client = windows->of[i].client;

		ret[i] = (struct pollfd){ .fd = client ? client_fd(client) : -EBADF,
					  .events = POLLIN };
	}
}

void lines_windows_done(struct lines_windows *windows)
{
	for (u32 i = 0; i < windows->nr; i++)
		client_free(windows->of[i].client);
}
