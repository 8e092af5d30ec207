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
#include "daemon/manager.h"

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
	struct manager *manager;
	FILE *timeline;
	/* Processes that ended; the kernel has forgotten them. */
	struct process_state ended[MAX_SEEN];
	u32 nr_ended;
};

static void log_libbpf(const char *text)
{
	log_warning("%s", text);
}

static void on_event(void *ctx, const struct event *event)
{
	static const char *const kinds[EVENT_NR] = { "phase", "role", "exit" };
	struct session *session = ctx;
	const char *value = event->kind == EVENT_PHASE ? phase_label(event->value)
			    : event->kind == EVENT_ROLE && event->value < ROLE_NR
				    ? role_labels[event->value]
				    : "";

	if (session->timeline && event->kind < EVENT_NR)
		fprintf(session->timeline, "%s %u %u %" PRIu64 " %s\n", kinds[event->kind],
			event->tgid, event->tid, (uint64_t)event->time_ns, value);
	if (event->kind == EVENT_EXIT && session->nr_ended < MAX_SEEN)
		session->ended[session->nr_ended++] = ((const struct exit_event *)event)->process;
}

static void on_attach_error(void *ctx, const struct library *library, int err)
{
	log_error("cannot attach to %s: %s", library->name, strerror(-err));
}

static int session_open(struct session *session)
{
	static const struct manager_handler handler = { on_event, on_attach_error };
	int err = kernel_new(log_libbpf, 0, &session->kernel);

	return err < 0 ? err
		       : manager_new(session->kernel, session->timeline, &handler, session,
				     &session->manager);
}

static int session_follow(struct session *session, pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0)
		manager_poll(session->manager, 100);
	manager_poll(session->manager, 0);
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
	for (u32 i = 0; i < session->nr_ended; i++) {
		const struct process_state *p = &session->ended[i];
		u64 nr_collectives = 0;

		for (u32 op = 0; op < COLLECTIVE_NR; op++)
			nr_collectives += p->nr_collectives[op];

		printf("%8u %-16.16s %5d %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64,
		       p->task.pid, p->comm, p->nr_ranks ? p->rank : -1,
		       (uint64_t)p->nr_launches[LEVEL_RUNTIME],
		       (uint64_t)p->nr_syncs[LEVEL_RUNTIME], (uint64_t)p->nr_copies[LEVEL_RUNTIME],
		       (uint64_t)nr_collectives);
		for (u32 phase = 0; phase < PHASE_NR; phase++)
			printf(" %12.1f ms", (double)p->task.phase_ns[phase] / NSEC_PER_MSEC);
		putchar('\n');
	}
	printf("dropped: %" PRIu64 " events, %" PRIu64 " processes, %" PRIu64 " frames, %" PRIu64
	       " maps\n",
	       (uint64_t)drops.nr_events, (uint64_t)drops.nr_processes, (uint64_t)drops.nr_frames,
	       (uint64_t)manager_nr_lost_maps(session->manager));
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
	manager_free(session->manager);
	kernel_free(session->kernel);
	return status;
}
