/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel record: writes all snapshots and events of zerneld, and stacks, to a file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "abi/lines.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/time.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/lines_windows.h"
#include "cli/result.h"
#include "cli/term.h"
#include "ipc/events_json.h"
#include "record/record.h"
#include "ipc/snapshot_json.h"

#define INTERVAL_MS 200
#define PROGRESS_MS 1000

struct request {
	const char *path;
	const char *socket;
	u64 seconds;			    /* 0: until a signal */
	const char *watched[LINES_OF_USER]; /* processes whose stacks are recorded */
	u32 nr_watched;
	bool json;
};

struct session {
	FILE *out;
	struct record_writer *writer; /* NULL until the first snapshot arrives */
	u64 begun_ns;
	u64 nr_snapshots;
	u64 nr_events;
	u64 nr_lost;
	struct lines_windows stacks;
	u64 nr_windows; /* of stacks */
};

static int begin(struct session *session, yyjson_val *value)
{
	struct record_info info = { .interval_ms = INTERVAL_MS,
				    .has_stacks = session->stacks.nr > 0 };
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	int err = snapshot_from_value(value, &snapshot);

	if (err < 0)
		return err;
	info.time_ms = snapshot->time_ms;
	info.monotonic_ns = snapshot->monotonic_ns;
	strcpy(info.host, snapshot->host);
	strcpy(info.version, snapshot->version);
	strcpy(info.kernel, snapshot->kernel);
	return record_writer_new(session->out, &info, &session->writer);
}

static int count_events(struct session *session, yyjson_val *value)
{
	struct events events = {};
	int err = events_from_value(value, &events);

	session->nr_events += events.nr;
	session->nr_lost += events.nr_lost;
	events_done(&events);
	return err;
}

static int put(struct session *session, enum record_frame_kind kind, yyjson_val *value)
{
	size_t length;
	CLEANUP_FREE char *text = yyjson_val_write(value, 0, &length);

	return text ? record_write(session->writer, kind, time_now_ns(), text, length) : -ENOMEM;
}

static int take(struct session *session, enum client_push kind, yyjson_val *value)
{
	static const enum record_frame_kind frames[CLIENT_PUSH_NR] = {
		[CLIENT_PUSH_SNAPSHOT] = RECORD_FRAME_SNAPSHOT,
		[CLIENT_PUSH_EVENTS] = RECORD_FRAME_EVENTS,
	};
	int err = 0;

	if (kind == CLIENT_PUSH_EVENTS)
		err = count_events(session, value);
	else
		session->nr_snapshots++;
	if (err < 0)
		return err;
	if (!session->writer)
		err = begin(session, value);
	return err < 0 ? err : put(session, frames[kind], value);
}

/* Takes the windows of stacks that have ended. Before the first snapshot, none can be written. */
static int take_stacks(struct session *session)
{
	int err = 0;

	while (session->writer && err == 0) {
		CLEANUP(client_data_done) struct client_data data = {};

		if (lines_windows_take(&session->stacks, &data) < 0)
			break;
		session->nr_windows++;
		err = put(session, RECORD_FRAME_LINES, data.value);
	}
	return err;
}

/* Takes everything that arrived. -ECONNRESET: the connection to zerneld is lost. */
static int take_all(struct session *session, struct client *client)
{
	int err = 0;

	while (err == 0) {
		CLEANUP(client_data_done) struct client_data data = {};
		enum client_push kind;

		err = client_next(client, 0, &kind, &data);
		if (err == 0)
			err = take(session, kind, data.value);
	}
	return err == -EAGAIN ? 0 : err;
}

static void print_size(const struct session *session, FILE *out)
{
	u64 bytes = session->writer ? record_writer_nr_bytes(session->writer) : 0;
	double seconds = (double)(time_now_ns() - session->begun_ns) / NSEC_PER_SEC;

	fprintf(out, "%.0f s, %llu snapshots, %llu events", seconds, session->nr_snapshots,
		session->nr_events);
	if (session->nr_lost)
		fprintf(out, " (%llu dropped)", session->nr_lost);
	if (session->stacks.nr)
		fprintf(out, ", %llu windows of stacks", session->nr_windows);
	fprintf(out, ", %s, %s per hour", unit_bytes(bytes).text,
		unit_bytes((u64)((double)bytes / seconds * 3600)).text);
}

/* Timeout of the next poll; 0 at the end of the recording time. */
static int patience_ms(u64 end_ns, bool progress)
{
	u64 now = time_now_ns(), left_ms = now < end_ns ? (end_ns - now) / NSEC_PER_MSEC + 1 : 0;
	u64 most_ms = progress ? PROGRESS_MS : 60 * PROGRESS_MS;

	return (int)(left_ms < most_ms ? left_ms : most_ms);
}

/* Records until a signal, the end of the time, or the loss of the connection. */
static int follow(struct session *session, struct client *client, int signal_fd, u64 end_ns)
{
	bool progress = isatty(STDERR_FILENO);
	struct pollfd fds[2 + LINES_OF_USER] = {
		{ .fd = client_fd(client), .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
	};
	nfds_t nr = 2;
	int err = 0;

	while (err == 0 && !fds[1].revents && time_now_ns() < end_ns) {
		if (session->writer) {
			lines_windows_poll(&session->stacks, fds + 2);
			nr = 2 + session->stacks.nr;
		}
		if (poll(fds, nr, patience_ms(end_ns, progress)) < 0)
			return -errno;
		err = take_all(session, client);
		if (err == 0)
			err = take_stacks(session);
		if (progress) {
			fputc('\r', stderr);
			print_size(session, stderr);
			fputs("  ", stderr);
		}
	}
	if (progress)
		fputc('\n', stderr);
	return err;
}

/* Takes the last events and writes the end frame. */
static int finish(struct session *session, struct client *client, bool gone)
{
	int err = gone ? 0 : ask(client, "record.stop", NULL, NULL);

	if (err == 0 && !gone)
		err = take_all(session, client);
	if (!session->writer)
		return err < 0 ? err : -ENODATA;
	if (err == -ECONNRESET)
		err = 0;
	return err < 0 ? err
		       : record_write(session->writer, RECORD_FRAME_END, time_now_ns(), "", 0);
}

/* Prints the size of the recording. */
static int print_result(const struct session *session, const char *path, bool json)
{
	const struct result_field fields[] = {
		{ "file", path },
		{ "seconds", .number = (time_now_ns() - session->begun_ns) / NSEC_PER_SEC },
		{ "snapshots", .number = session->nr_snapshots },
		{ "events", .number = session->nr_events },
		{ "lost", .number = session->nr_lost },
		{ "windows", .number = session->nr_windows },
		{ "bytes", .number = record_writer_nr_bytes(session->writer) },
		{},
	};

	if (json)
		return result_print(fields);
	fputs("recorded ", stdout);
	print_size(session, stdout);
	fputc('\n', stdout);
	return 0;
}

static int record_to(struct session *session, const struct request *request, struct client *client,
		     int signal_fd)
{
	u64 now_ns = time_now_ns();
	u64 end_ns = request->seconds ? now_ns + request->seconds * NSEC_PER_SEC : ~0ULL;
	bool gone;
	int err;

	session->begun_ns = now_ns;
	err = follow(session, client, signal_fd, end_ns);
	gone = err == -ECONNRESET;
	if (err == 0 || gone)
		err = finish(session, client, gone);
	if (err == 0)
		err = print_result(session, request->path, request->json);
	session->writer = record_writer_free(session->writer);
	if (gone && err == 0)
		log_error("the connection to zerneld was lost: the recording ends here");
	return gone ? -ECONNRESET : err;
}

/* Never overwrites a file. */
static FILE *create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (!out)
		log_error("cannot create %s: %s", path, strerror(errno));
	return out;
}

static void end_session(struct session *session)
{
	lines_windows_done(&session->stacks);
}

static int record(const struct request *request)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	CLEANUP(end_session) struct session session = {};
	CLEANUP_FD int signal_fd = -EBADF;
	/* A signal ends the recording, not the program. */
	int err = signals_open(NULL, &signal_fd, NULL);

	if (err == 0)
		err = lines_windows_begin(&session.stacks, request->socket, request->watched,
					  request->nr_watched);
	if (err == 0)
		err = ask_record(request->socket, INTERVAL_MS, &client);
	if (err < 0)
		return err;
	session.out = create(request->path);
	if (!session.out)
		return -EIO;
	err = record_to(&session, request, client, signal_fd);
	if (fclose(session.out) != 0 && err == 0)
		err = -errno;
	if (err < 0 && err != -ECONNRESET)
		log_error("cannot record to %s: %s", request->path, strerror(-err));
	return err;
}

static int run(struct command_call *call)
{
	struct request request = { .socket = PROTOCOL_SOCKET };
	int option, err = 0;

	while (err == 0 && (option = command_next(call)) != -1) {
		switch (option) {
		case 'n': err = command_number(call, 1, UINT_MAX, &request.seconds); break;
		case 's': request.socket = optarg; break;
		case 'w':
			err = request.nr_watched < LINES_OF_USER ? 0 : -EINVAL;
			if (err == 0)
				request.watched[request.nr_watched++] = optarg;
			else
				log_error("at most %d processes can be sampled at the same time",
					  LINES_OF_USER);
			break;
		default: err = -EINVAL;
		}
	}
	if (err == 0 && request.nr_watched && request.seconds &&
	    request.seconds < LINES_WINDOWS_MIN_SECONDS) {
		log_error("--stacks needs a recording of at least %d seconds",
			  LINES_WINDOWS_MIN_SECONDS);
		err = -EINVAL;
	}
	if (err < 0 || command_operands(call, 1, 1) < 0)
		return COMMAND_MISUSED;
	request.path = call->argv[optind];
	request.json = call->json;
	return record(&request) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = {
	{ "seconds", 'n', "N", "stop after N seconds (default: until Ctrl-C)" },
	{ "stacks", 'w', "PID", "also record the code in which the GPU of PID is idle" },
	OPTION_SOCKET,
	{},
};

const struct command command_record = {
	.name = "record",
	.operands = "FILE",
	.completion = COMPLETE_FILE,
	.help = "record snapshots, events and stacks to a file for replay and export",
	.description =
		"Writes five snapshots a second, and every change of phase, role and step in\n"
		"between, until Ctrl-C. A recording that is cut off can be used up to that\n"
		"point. With --stacks, it also contains the code in which the GPU of process\n"
		"PID was idle, in windows of five seconds. PID can be the name of a job with\n"
		"one process. --stacks can be given for up to eight processes.",
	.options = command_options,
	.run = run,
};
