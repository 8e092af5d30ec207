/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a command and shows what the kernel side knows of it: processes, phases,
 * roles and counts at the end, and on request every change as a line of
 *
 *   phase TGID TID TIME_NS LABEL
 *   role TGID TID TIME_NS LABEL
 *   exit TGID TID TIME_NS
 *
 * It hears every switch and wake-up of the machine, so it belongs into the guest.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "collect/kernel.h"
#include "collect/library.h"
#include "collect/mmap_events.h"

#define MAX_SEEN 256

static const char *const role_labels[ROLE_NR] = {
	[ROLE_OTHER] = "other",
	[ROLE_LAUNCHER] = "launcher",
	[ROLE_SYNC_WAITER] = "sync_waiter",
	[ROLE_LOADER] = "loader",
	[ROLE_COLLECTIVE_HELPER] = "collective_helper",
};

struct session {
	struct kernel *kernel;
	struct library_set *libraries;
	struct mmap_events *maps;
	FILE *timeline;
	/* The last seen state of each process: the kernel forgets those that are gone. */
	struct process_state seen[MAX_SEEN];
	u32 nr_seen;
};

static void log_libbpf(const char *text)
{
	log_warning("%s", text);
}

static void on_event(void *ctx, const struct event *event)
{
	struct session *session = ctx;
	static const char *const kinds[] = { "phase", "role", "exit" };
	const char *value = event->kind == EVENT_PHASE ? phase_label(event->value)
			    : event->kind == EVENT_ROLE && event->value < ROLE_NR
				    ? role_labels[event->value]
				    : "";

	if (session->timeline && event->kind < sizeof(kinds) / sizeof(*kinds))
		fprintf(session->timeline, "%s %u %u %" PRIu64 " %s\n", kinds[event->kind],
			event->tgid, event->tid, (uint64_t)event->time_ns, value);
}

static void on_process(void *ctx, const struct process_key *key, const struct process_state *state)
{
	struct session *session = ctx;
	u32 i;

	for (i = 0; i < session->nr_seen && session->seen[i].task.pid != key->tgid; i++)
		;
	if (i == MAX_SEEN)
		return;
	session->seen[i] = *state;
	if (i == session->nr_seen)
		session->nr_seen++;
}

static int on_attach(void *ctx, const struct library *library)
{
	struct session *session = ctx;
	int err = kernel_attach_library(session->kernel, library);

	if (err < 0)
		log_error("cannot attach to %s: %s", library->name, strerror(-err));
	return err;
}

static void on_detach(void *ctx, const struct library *library)
{
	struct session *session = ctx;

	kernel_detach_library(session->kernel, library);
}

static void on_map(void *ctx, pid_t pid, const char *name, u64 device, u64 inode)
{
	struct session *session = ctx;

	if (library_runtime_of(name) >= 0)
		library_set_scan_process(session->libraries, pid);
}

static void on_exec(void *ctx, pid_t pid)
{
	struct session *session = ctx;

	library_set_scan_process(session->libraries, pid);
}

static void on_fork(void *ctx, pid_t parent, pid_t child)
{
	struct session *session = ctx;

	library_set_fork_process(session->libraries, parent, child);
}

static void on_exit_process(void *ctx, pid_t pid)
{
	struct session *session = ctx;

	library_set_forget_process(session->libraries, pid);
}

static int session_open(struct session *session)
{
	static const struct library_ops library_ops = { .attach = on_attach, .detach = on_detach };
	static const struct mmap_handler handler = {
		.on_map = on_map,
		.on_exec = on_exec,
		.on_fork = on_fork,
		.on_exit = on_exit_process,
	};
	int err = kernel_new(log_libbpf, &session->kernel);

	if (err == 0)
		err = kernel_attach_threads(session->kernel);
	if (err == 0)
		err = kernel_open_events(session->kernel, on_event, session);
	if (err == 0)
		err = library_set_new("/proc", &library_ops, session, &session->libraries);
	if (err == 0)
		err = mmap_events_new(-1, &handler, session, &session->maps);
	return err;
}

static int session_follow(struct session *session, pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		mmap_events_read(session->maps);
		kernel_read_events(session->kernel, 10);
		kernel_for_each_process(session->kernel, on_process, session);
	}
	kernel_read_events(session->kernel, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void print_table(const struct session *session)
{
	struct kernel_drops drops = kernel_drops(session->kernel);

	printf("%8s %-16s %5s %9s %9s %9s %9s", "pid", "comm", "rank", "launches", "syncs",
	       "copies", "colls");
	for (u32 phase = 0; phase < PHASE_NR; phase++)
		printf(" %15s", phase_label(phase));
	putchar('\n');
	for (u32 i = 0; i < session->nr_seen; i++) {
		const struct process_state *p = &session->seen[i];

		printf("%8u %-16.16s %5d %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64,
		       p->task.pid, p->comm, p->nr_ranks ? p->rank : -1,
		       (uint64_t)p->nr_launches[LEVEL_RUNTIME],
		       (uint64_t)p->nr_syncs[LEVEL_RUNTIME], (uint64_t)p->nr_copies[LEVEL_RUNTIME],
		       (uint64_t)p->nr_collectives);
		for (u32 phase = 0; phase < PHASE_NR; phase++)
			printf(" %12.1f ms", (double)p->task.phase_ns[phase] / NSEC_PER_MSEC);
		putchar('\n');
	}
	printf("dropped: %" PRIu64 " events, %" PRIu64 " processes, %" PRIu64 " frames, %" PRIu64
	       " maps\n",
	       (uint64_t)drops.nr_events, (uint64_t)drops.nr_processes, (uint64_t)drops.nr_frames,
	       (uint64_t)mmap_events_lost(session->maps));
}

int main(int argc, char **argv)
{
	CLEANUP_FREE struct session *session = calloc(1, sizeof(*session));
	int first = 1, err, status;
	pid_t pid;

	if (!session)
		return 1;
	if (argc > 2 && strcmp(argv[1], "--timeline") == 0) {
		session->timeline = fopen(argv[2], "w");
		first = 3;
	}
	if (argc > first && strcmp(argv[first], "--") == 0)
		first++;
	if (argc <= first) {
		fputs("Usage: signals [--timeline FILE] -- COMMAND...\n", stderr);
		return 2;
	}
	err = session_open(session);
	if (err < 0) {
		log_error("cannot follow calls: %s (it needs root and a kernel with BTF)",
			  strerror(-err));
		return 1;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[first], argv + first);
		log_error("%s: %s", argv[first], strerror(errno));
		_exit(127);
	}
	status = session_follow(session, pid);
	print_table(session);
	if (session->timeline)
		fclose(session->timeline);
	mmap_events_free(session->maps);
	library_set_free(session->libraries);
	kernel_free(session->kernel);
	return status;
}
