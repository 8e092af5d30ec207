/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel top: shows jobs, ranks and threads live. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/top/top_screen.h"
#include "ipc/snapshot_json.h"

#define INTERVAL_DEFAULT_MS 500
#define RETRY_MS	    1000
/* zerneld counts as silent after this many intervals, but not before the minimum time. */
#define SILENT_INTERVALS    4
#define SILENT_MIN_MS	    3000

struct session {
	const char *socket;
	u32 interval_ms;
	struct client *client; /* NULL: not connected */
	struct top_screen *screen;
	struct top top;
};

static void session_done(struct session *session)
{
	top_screen_close(session->screen);
	client_free(session->client);
	top_done(&session->top);
}

static void lose(struct session *session, int err)
{
	session->client = client_free(session->client);
	top_trouble(&session->top, err == -EPROTONOSUPPORT
					   ? "zerneld has another protocol version;"
					   : "connection to zerneld lost, reconnecting;");
}

/* Logs nothing: the screen shows the state of the connection. */
static void reconnect(struct session *session)
{
	int err = client_connect(session->socket, &session->client);

	if (err == 0)
		err = client_subscribe(session->client, session->interval_ms, NULL);
	if (err < 0)
		lose(session, err);
}

/* Takes a snapshot that arrived. Returns only -ENOMEM as an error. */
static int take_snapshots(struct session *session)
{
	CLEANUP(client_data_done) struct client_data data = {};
	struct snapshot *snapshot;
	enum client_push kind;
	int err = client_next(session->client, 0, &kind, &data);

	if (err == -EAGAIN)
		return 0;
	if (err == 0)
		err = snapshot_from_value(data.value, &snapshot);
	if (err == -ENOMEM)
		return err;
	if (err < 0) {
		lose(session, err);
		return 0;
	}
	top_trouble(&session->top, NULL);
	return top_feed(&session->top, snapshot);
}

static int draw(struct session *session)
{
	struct canvas *canvas;
	int err = top_screen_begin(session->screen, &canvas);

	if (err < 0)
		return err;
	top_draw(&session->top, canvas);
	top_screen_end(session->screen);
	return 0;
}

static int take_keys(struct session *session)
{
	struct top_event event;
	int err = 0;

	while (err == 0 && top_screen_event(session->screen, &event))
		err = top_event(&session->top, &event);
	return err;
}

static int patience_ms(const struct session *session)
{
	u32 silent_ms = SILENT_INTERVALS * session->interval_ms;

	if (!session->client)
		return RETRY_MS;
	return (int)(silent_ms < SILENT_MIN_MS ? SILENT_MIN_MS : silent_ms);
}

/* Called when poll() times out. */
static void be_patient(struct session *session)
{
	if (session->client)
		top_trouble(&session->top, "no data from zerneld;");
	else
		reconnect(session);
}

static int loop(struct session *session, int signals)
{
	int err = 0;

	while (err == 0 && !session->top.quit) {
		struct pollfd fds[] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = signals, .events = POLLIN },
			{ .fd = session->client ? client_fd(session->client) : -1,
			  .events = POLLIN },
		};
		int n;

		/* Snapshots that arrived with the reply to a request are buffered: poll() misses
		 * them. */
		err = session->client ? take_snapshots(session) : 0;
		if (err == 0)
			err = draw(session);
		if (err < 0)
			return err;
		n = poll(fds, 3, patience_ms(session));
		/* SIGWINCH interrupts poll(); ncurses reports it as a key. */
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && (fds[1].revents || fds[0].revents & (POLLHUP | POLLERR)))
			return 0;
		if (n == 0)
			be_patient(session);
		err = take_keys(session);
	}
	return err;
}

static int open_screen(struct session *session, enum colour colour)
{
	int err = top_screen_open(colour, &session->screen);

	if (err == -ENOTTY)
		log_error("top needs a terminal. To print the state once, run: zernel status");
	else if (err == -ENODEV)
		log_error("unknown terminal type TERM=%s. Set TERM, or run: zernel status",
			  getenv("TERM") ?: "");
	return err;
}

static int parse(struct command_call *call, struct session *session)
{
	u64 interval_ms = INTERVAL_DEFAULT_MS;
	int option, err = 0;

	while (err == 0 && (option = command_next(call)) != -1) {
		switch (option) {
		case 's': session->socket = optarg; break;
		case 'i':
			err = command_number(call, PROTOCOL_INTERVAL_MIN_MS,
					     PROTOCOL_INTERVAL_MAX_MS, &interval_ms);
			break;
		default: return -EINVAL;
		}
	}
	session->interval_ms = (u32)interval_ms;
	return err < 0 ? err : command_operands(call, 0, 0);
}

static int run(struct command_call *call)
{
	CLEANUP(session_done)
	struct session session = {
		.socket = PROTOCOL_SOCKET,
		.top.sort = TOP_COLUMN_RANK,
	};
	CLEANUP_FD int signals = -EBADF;

	if (parse(call, &session) < 0)
		return COMMAND_MISUSED;
	/* The snapshot that the first screen would show. */
	if (call->json)
		return ask_print_snapshot(session.socket) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	/* A signal ends the loop, so that the terminal is restored. */
	if (ask_subscribe(session.socket, session.interval_ms, &session.client) < 0 ||
	    open_screen(&session, call->colour) < 0 || signals_open(NULL, &signals, NULL) < 0)
		return EXIT_FAILURE;
	return loop(&session, signals) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = {
	{ "interval", 'i', "MS", "refresh every MS milliseconds, at least 100 (default: 500)" },
	OPTION_SOCKET,
	{},
};

const struct command command_top = {
	.name = "top",
	.help = "show jobs, ranks and threads live, with phases and causes of idle time",
	.description = "Arrows move, Enter opens and closes, s sorts, / filters, t shows threads, "
		       "p pauses, h\n"
		       "shows help, q quits. The mouse works too. Without color, letters show the "
		       "phases.",
	.json = "print one snapshot as JSON and exit",
	.options = command_options,
	.run = run,
};
