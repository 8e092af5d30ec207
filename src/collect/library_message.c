/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/library_message.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/socket.h"
#include "base/time.h"

/* No process has files with more bytes. */
#define SCAN_BYTES_MAX (1ULL << 40)

/* Each kind of message has a fixed size. */
static size_t size_of(u32 kind)
{
	static const size_t sizes[] = {
		[SCAN_FOUND] = sizeof(struct library_found),
		[SCAN_SCANNED] = sizeof(struct library_scanned),
		[SCAN_PIDS] = SCAN_PIDS_MAX * sizeof(s32),
		[SCAN_OWNED] = sizeof(struct scan_owned),
		[SCAN_NAMES] = sizeof(struct scan_names),
		[SCAN_INTERPRETER] = sizeof(struct scan_interpreter),
		[SCAN_FRAME] = sizeof(struct scan_frame),
		[SCAN_STACKED] = sizeof(struct scan_stacked),
		[SCAN_REST] = 0,
	};

	return kind < ARRAY_SIZE(sizes) ? offsetof(struct scan_message, found) + sizes[kind] : 0;
}

static bool found_is_valid(const struct library_found *found)
{
	if (found->runtime >= RUNTIME_NR || found->is_executable > 1 || !found->probes.nr ||
	    found->probes.nr > ELF_SYMBOLS_MAX || !memchr(found->name, '\0', sizeof(found->name)))
		return false;
	for (const char *c = found->name; *c; c++)
		if (*c < ' ' || *c > '~')
			return false;
	for (u32 i = 0; i < found->probes.nr; i++) {
		const struct library_probe *probe = &found->probes.probe[i];

		if (probe->call >= CALL_NR || call_rows[probe->call].runtime != found->runtime ||
		    probe->is_stepped > 1 || probe->offset > INT64_MAX)
			return false;
	}
	return true;
}

static bool names_are_valid(const struct scan_names *names)
{
	return names->error <= 0 && memchr(names->job.cgroup, '\0', sizeof(names->job.cgroup)) &&
	       job_names_are_valid(&names->job.names);
}

static bool interpreter_is_valid(const struct scan_interpreter *interpreter)
{
	return interpreter->error <= 0 && interpreter->cost.nr_files <= SCAN_BYTES_MAX &&
	       interpreter->cost.nr_bytes <= SCAN_BYTES_MAX &&
	       (interpreter->error < 0 || python_scan_is_valid(&interpreter->python));
}

static bool frame_is_valid(const struct scan_frame *frame)
{
	const struct python_place *place = &frame->place;

	return frame->index < PYTHON_FRAMES_MAX &&
	       memchr(place->function, '\0', sizeof(place->function)) &&
	       memchr(place->file, '\0', sizeof(place->file));
}

bool scan_message_is_valid(const struct scan_message *message, size_t size, bool has_fd)
{
	if (size < offsetof(struct scan_message, found) || size != size_of(message->kind) ||
	    has_fd != (message->kind == SCAN_FOUND))
		return false;
	if (message->kind == SCAN_FOUND)
		return found_is_valid(&message->found);
	if (message->kind == SCAN_SCANNED)
		return message->scanned.error <= 0 && message->scanned.has_collective <= 1 &&
		       message->scanned.is_partial <= 1 &&
		       message->scanned.nr_bytes <= SCAN_BYTES_MAX;
	if (message->kind == SCAN_NAMES)
		return names_are_valid(&message->names);
	if (message->kind == SCAN_INTERPRETER)
		return interpreter_is_valid(&message->interpreter);
	if (message->kind == SCAN_FRAME)
		return frame_is_valid(&message->frame);
	if (message->kind == SCAN_STACKED)
		return message->stacked.error <= 0 && message->stacked.is_cut <= 1 &&
		       message->stacked.nr <= PYTHON_FRAMES_MAX;
	return message->kind != SCAN_PIDS || message->nr <= SCAN_PIDS_MAX;
}

struct server {
	int socket;
	int err;
	const char *proc;
	const char *logs;
	struct library_scanner *scanner;
	struct python_stack_scan stack;
	struct scan_message message;
};

static void reply(struct server *server, u32 kind, int fd)
{
	server->message.kind = kind;
	if (!server->err)
		server->err = socket_send(server->socket, 0, &server->message, size_of(kind), fd);
}

/* A user chooses the name of a file, and the name is printed. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void on_found(void *ctx, const struct library_found *found, int fd)
{
	struct server *server = ctx;

	server->message.found = *found;
	make_printable(server->message.found.name);
	reply(server, SCAN_FOUND, fd);
}

static void on_scanned(void *ctx, const struct library_scanned *scanned)
{
	struct server *server = ctx;

	server->message.scanned = *scanned;
	reply(server, SCAN_SCANNED, -1);
}

static void add_pid(void *ctx, pid_t pid)
{
	struct server *server = ctx;

	server->message.pids[server->message.nr++] = pid;
	if (server->message.nr < SCAN_PIDS_MAX)
		return;
	reply(server, SCAN_PIDS, -1);
	server->message.nr = 0;
}

static void find_owner(struct server *server, pid_t pid)
{
	server->message.owned = (struct scan_owned){ .pid = pid };
	server->message.owned.owner = tenant_of(server->proc, pid);
	reply(server, SCAN_OWNED, -1);
}

static void find_names(struct server *server, pid_t pid)
{
	struct scan_names result = { .pid = pid };

	result.error = job_scan(server->proc, server->logs, pid, &result.job);
	server->message.names = result;
	reply(server, SCAN_NAMES, -1);
}

static void find_interpreter(struct server *server, pid_t pid)
{
	struct scan_interpreter result = { .pid = pid };

	result.error = python_scan(server->proc, pid, &result.cost, &result.python);
	server->message.interpreter = result;
	reply(server, SCAN_INTERPRETER, -1);
}

static void read_stack(struct server *server, pid_t tid)
{
	struct python_stack_scan *stack = &server->stack;
	struct scan_stacked end = { .pid = tid };

	end.error = python_stack_scan(server->proc, tid, stack);
	if (end.error == 0) {
		end.uid = stack->uid;
		end.nr = stack->nr;
		end.is_cut = stack->is_cut;
	}
	for (u32 i = 0; i < end.nr; i++) {
		server->message.frame =
			(struct scan_frame){ .pid = tid, .index = i, .place = stack->places[i] };
		reply(server, SCAN_FRAME, -1);
	}
	server->message.stacked = end;
	reply(server, SCAN_STACKED, -1);
}

static void answer_row(struct server *server, pid_t pid, u32 kind)
{
	if (kind == SCAN_OWNER)
		find_owner(server, pid);
	else if (kind == SCAN_JOB)
		find_names(server, pid);
	else if (kind == SCAN_PYTHON)
		find_interpreter(server, pid);
	else if (kind == SCAN_STACK)
		read_stack(server, pid);
	else
		(void)library_scan(server->scanner, pid, kind);
}

static void answer(struct server *server, const struct scan_request *request)
{
	u64 end_ns = time_now_ns() + SCAN_REQUEST_NS;

	server->message.nr = 0;
	for (u32 i = 0; i < request->nr && !server->err; i++) {
		if (i > 0 && time_now_ns() >= end_ns) {
			reply(server, SCAN_REST, -1);
			return;
		}
		answer_row(server, request->rows[i].pid, request->rows[i].kind);
	}
	if (request->nr)
		return;
	(void)library_scan_list(server->scanner, add_pid, server);
	reply(server, SCAN_PIDS, -1);
}

void scan_serve(int socket, const char *proc, const char *logs)
{
	static const struct library_scan_handler handler = { on_found, on_scanned };
	static struct server server; /* too large for a stack */
	struct scan_request request;

	server.socket = socket;
	server.proc = proc;
	server.logs = logs;
	if (library_scanner_new(proc, &handler, &server, &server.scanner) < 0)
		return;
	while (!server.err &&
	       socket_receive(socket, 0, &request, sizeof(request), NULL) == sizeof(request) &&
	       request.nr <= SCAN_ROWS_MAX)
		answer(&server, &request);
	library_scanner_free(server.scanner);
}
