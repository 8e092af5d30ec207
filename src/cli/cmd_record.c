/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel record: writes all snapshots and events of zerneld to a file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/time.h"
#include "cli/ask.h"
#include "cli/command.h"
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
	u64 seconds; /* 0: until a signal */
	bool json;
};

struct session {
	FILE *out;
	struct record_writer *writer; /* NULL until the first snapshot arrives */
	u64 begun_ns;
	u64 nr_snapshots;
	u64 nr_events;
	u64 nr_lost;
};

static int begin(struct session *session, yyjson_val *value)
{
	struct record_info info = { .interval_ms = INTERVAL_MS };
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

static int take(struct session *session, enum client_push kind, yyjson_val *value)
{
	static const enum record_frame_kind frames[CLIENT_PUSH_NR] = {
		[CLIENT_PUSH_SNAPSHOT] = RECORD_FRAME_SNAPSHOT,
		[CLIENT_PUSH_EVENTS] = RECORD_FRAME_EVENTS,
	};
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err = 0;

	if (kind == CLIENT_PUSH_EVENTS)
		err = count_events(session, value);
	else
		session->nr_snapshots++;
	if (err < 0)
		return err;
	if (!session->writer)
		err = begin(session, value);
	if (err < 0)
		return err;
	text = yyjson_val_write(value, 0, &length);
	return text ? record_write(session->writer, frames[kind], time_now_ns(), text, length)
		    : -ENOMEM;
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
	struct pollfd fds[] = {
		{ .fd = client_fd(client), .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
	};
	int err = 0;

	while (err == 0 && !fds[1].revents && time_now_ns() < end_ns) {
		if (poll(fds, 2, patience_ms(end_ns, progress)) < 0)
			return -errno;
		err = take_all(session, client);
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

static int record_to(FILE *out, const struct request *request, struct client *client, int signal_fd)
{
	struct session session = { .out = out, .begun_ns = time_now_ns() };
	u64 end_ns = request->seconds ? session.begun_ns + request->seconds * NSEC_PER_SEC : ~0ULL;
	int err = follow(&session, client, signal_fd, end_ns);
	bool gone = err == -ECONNRESET;

	if (err == 0 || gone)
		err = finish(&session, client, gone);
	if (err == 0)
		err = print_result(&session, request->path, request->json);
	record_writer_free(session.writer);
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

static int record(const struct request *request)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	CLEANUP_FD int signal_fd = -EBADF;
	FILE *out;
	/* A signal ends the recording, not the program. */
	int err = signals_open(NULL, &signal_fd, NULL);

	if (err < 0)
		return err;
	err = ask_record(request->socket, INTERVAL_MS, &client);
	if (err < 0)
		return err;
	out = create(request->path);
	if (!out)
		return -EIO;
	err = record_to(out, request, client, signal_fd);
	if (fclose(out) != 0 && err == 0)
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
		default: err = -EINVAL;
		}
	}
	if (err < 0 || command_operands(call, 1, 1) < 0)
		return COMMAND_MISUSED;
	request.path = call->argv[optind];
	request.json = call->json;
	return record(&request) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = {
	{ "seconds", 'n', "N", "stop after N seconds (default: until Ctrl-C)" },
	OPTION_SOCKET,
	{},
};

const struct command command_record = {
	.name = "record",
	.operands = "FILE",
	.completion = COMPLETE_FILE,
	.help = "record snapshots and events to a file for replay and export",
	.description =
		"Writes five snapshots a second, and every change of phase, role and step in\n"
		"between, until Ctrl-C. A recording that is cut off can be used up to that\n"
		"point.",
	.options = command_options,
	.run = run,
};
