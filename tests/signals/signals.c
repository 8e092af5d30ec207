/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a command and shows the state of the BPF programs for it: processes, threads,
 * roles, phases, ranks and distributions, live on a terminal and at the end. With
 * --timeline it writes every change as one of these lines:
 *
 *   phase TGID TID TIME_NS LABEL
 *   role TGID TID TIME_NS LABEL
 *   step TGID TID TIME_NS
 *   exit TGID TID TIME_NS
 *
 * With --nccl-detection it also detects collectives without probes.
 *
 * It watches every context switch and wakeup of the machine, so it must run in a guest.
 * With --calls it only watches the calls of the command's own processes, and not their
 * end: this may run on any machine.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "collect/kernel_internal.h"
#include "daemon/manager.h"
#include "signals/report.h"

/* The nice value of zerneld.service. Without the right to set it, the program is only slower. */
#define NICE_OF_UNIT (-10)
#define POLL_MS	     100
#define SCREEN_CLEAR "\033[H\033[2J"

struct options {
	bool json;
	bool is_terminal;
	bool only_calls;
	bool nccl_detection;
	u64 every_ns; /* interval of live reports */
	const char *timeline;
	char **command;
};

struct session {
	const struct options *options;
	struct kernel *kernel;
	struct manager *manager;
	FILE *timeline;
	struct report ended; /* processes that the kernel has deleted */
};

static void log_libbpf(const char *text)
{
	log_warning("%s", text);
}

static void timeline_write(FILE *timeline, const struct event *event)
{
	static const char *const kinds[] = {
		[EVENT_PHASE] = "phase",
		[EVENT_ROLE] = "role",
		[EVENT_EXIT] = "exit",
		[EVENT_STEP] = "step",
	};
	const char *value = event->kind == EVENT_PHASE	? phase_label(event->value)
			    : event->kind == EVENT_ROLE ? role_label(event->value)
							: "";

	if (event->kind < ARRAY_SIZE(kinds) && kinds[event->kind])
		fprintf(timeline, "%s %u %u %llu %s\n", kinds[event->kind], event->tgid, event->tid,
			event->time_ns, value);
}

static void on_event(void *ctx, const struct event *event)
{
	struct session *session = ctx;
	int err = 0;

	if (session->timeline)
		timeline_write(session->timeline, event);
	if (event->kind == EVENT_EXIT)
		err = report_add_process(&session->ended, session->kernel,
					 &((const struct exit_event *)event)->process, true);
	else if (event->kind == EVENT_THREAD_EXIT)
		err = report_add_thread(&session->ended,
					&((const struct thread_event *)event)->thread);
	if (err < 0)
		log_error("cannot add process %u to the report: %s", event->tgid, strerror(-err));
}

static void on_attach_error(void *ctx, const struct library *library, int err)
{
	log_error("cannot attach to %s: %s", library->name, strerror(-err));
}

static int session_open(struct session *session)
{
	static const struct manager_handler handler = { on_event, on_attach_error };
	const char *path = session->options->timeline;
	int err;

	if (path) {
		session->timeline = fopen(path, "we");
		if (!session->timeline)
			return -errno;
	}
	err = kernel_new(log_libbpf, &session->kernel);
	if (err < 0)
		return err;
	session->kernel->skel->data->phase_config.nccl_detection_enabled =
		session->options->nccl_detection;
	return manager_new(session->kernel, session->options->only_calls ? getpid() : -1, path,
			   &handler, session, &session->manager);
}

static void session_close(struct session *session)
{
	manager_free(session->manager);
	kernel_free(session->kernel);
	report_done(&session->ended);
	if (session->timeline && fclose(session->timeline))
		log_error("%s: %s", session->options->timeline, strerror(errno));
}

static int session_report(struct session *session, bool is_final)
{
	const struct options *options = session->options;
	struct report report;
	int err = report_take(&session->ended, session->kernel, time_now_ns(), &report);

	if (err < 0)
		return err;
	report.is_final = is_final;
	report.nr_lost_maps = manager_nr_lost_maps(session->manager);
	if (options->json) {
		err = json_print(&report, stdout);
	} else {
		if (options->is_terminal && !is_final)
			fputs(SCREEN_CLEAR, stdout);
		table_print(&report, options->is_terminal, stdout);
		fflush(stdout);
	}
	report_done(&report);
	return err;
}

/* Runs until the command ends; returns its exit status like a shell. */
static int session_follow(struct session *session, pid_t pid)
{
	bool is_live = session->options->json || session->options->is_terminal;
	u64 every = session->options->every_ns, next = time_now_ns() + every;
	int status = 0, err;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		manager_poll(session->manager, POLL_MS);
		if (!is_live || time_now_ns() < next)
			continue;
		next += every;
		err = session_report(session, false);
		if (err < 0)
			log_warning("cannot create a report: %s", strerror(-err));
	}
	manager_poll(session->manager, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* With --json, the output of the command goes to standard error. */
static pid_t command_start(const struct options *options)
{
	pid_t pid = fork();

	if (pid != 0) {
		/* Ctrl-C ends the command; this process still reports. */
		signal(SIGINT, SIG_IGN);
		/* As zerneld does, and not the command. */
		setpriority(PRIO_PROCESS, 0, NICE_OF_UNIT);
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
		return pid;
	}
	if (options->json)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(options->command[0], options->command);
	log_error("%s: %s", options->command[0], strerror(errno));
	_exit(127);
}

static int options_parse(int argc, char **argv, struct options *ret)
{
	static const struct option rows[] = { { "json", no_argument, NULL, 'j' },
					      { "calls", no_argument, NULL, 'c' },
					      { "nccl-detection", no_argument, NULL, 'n' },
					      { "every", required_argument, NULL, 'e' },
					      { "timeline", required_argument, NULL, 't' },
					      {} };
	/* In a guest the output is a file; tools/signals sets this for a terminal. */
	struct options options = {
		.is_terminal = isatty(STDOUT_FILENO) || getenv("SIGNALS_TERMINAL"),
		.every_ns = NSEC_PER_SEC,
	};
	int option;

	while ((option = getopt_long(argc, argv, "+", rows, NULL)) != -1) {
		if (option == 'j')
			options.json = true;
		else if (option == 'c')
			options.only_calls = true;
		else if (option == 'n')
			options.nccl_detection = true;
		else if (option == 'e')
			options.every_ns = strtoull(optarg, NULL, 10) * NSEC_PER_MSEC;
		else if (option == 't')
			options.timeline = optarg;
		else
			return -EINVAL;
	}
	if (optind == argc || !options.every_ns)
		return -EINVAL;
	options.command = argv + optind;
	*ret = options;
	return 0;
}

int main(int argc, char **argv)
{
	struct options options;
	struct session session = { .options = &options };
	pid_t pid;
	int err, status = 1;

	if (options_parse(argc, argv, &options) < 0) {
		fputs("Usage: signals [--json] [--calls] [--nccl-detection] [--every MS] "
		      "[--timeline FILE] -- COMMAND...\n",
		      stderr);
		return 2;
	}
	err = session_open(&session);
	if (err < 0) {
		log_error("cannot load the BPF programs: %s; run as root, on a kernel with BTF",
			  strerror(-err));
		session_close(&session);
		return 1;
	}
	pid = command_start(&options);
	if (pid < 0)
		log_error("cannot fork: %s", strerror(errno));
	else
		status = session_follow(&session, pid);
	err = session_report(&session, true);
	if (err < 0)
		log_error("cannot print the report: %s", strerror(-err));
	session_close(&session);
	return err < 0 ? 1 : status;
}
