/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zernel scheduler on|off: writes a drop-in of zernel.conf, so that the choice outlives a restart,
 * and lets a running zerneld read it.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/socket.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/result.h"
#include "config/config_table.h"

/* The name sorts after drop-ins of administrators that begin with a digit or a capital letter. */
#define DROP_IN	    "zernel-scheduler.conf"
#define WAIT_MS	    20000 /* an attach takes seconds on a busy machine */
#define WAIT_ONE_MS 100

struct choice {
	bool on;
	const char *file; /* NULL: the files of the system */
	const char *socket;
	char path[PATH_MAX]; /* of the drop-in */
};

static int write_drop_in(struct choice *choice)
{
	const char *file = choice->file ? choice->file : CONFIG_FILE;
	char folder[PATH_MAX - sizeof(DROP_IN)], text[160];
	int err, length;

	if ((size_t)snprintf(folder, sizeof(folder), "%s.d", file) >= sizeof(folder))
		return -ENAMETOOLONG;
	snprintf(choice->path, sizeof(choice->path), "%s/" DROP_IN, folder);
	length = snprintf(text, sizeof(text),
			  "# Written by: zernel scheduler %s\n[scheduler]\nattach=%s\n",
			  choice->on ? "on" : "off", choice->on ? "auto" : "no");
	err = mkdir(folder, 0755) < 0 && errno != EEXIST ? -errno : 0;
	if (err == 0)
		err = file_save(&file_ops_system, choice->path, text, (size_t)length, 0644);
	if (err < 0)
		log_error("cannot write %s: %s%s", choice->path, strerror(-err),
			  err == -EACCES || err == -EPERM ? "; run this command with sudo" : "");
	return err;
}

/* A file that is read later can set the same key. */
static int check_effect(const struct choice *choice)
{
	CLEANUP_FREE struct config_origin *origins = calloc(config_nr_keys, sizeof(*origins));
	struct config_problem problem = { .text = "out of memory" };
	char text[sizeof(problem)];
	struct config config;
	int err = -ENOMEM;

	config_default(&config);
	if (origins)
		err = config_load(&config, choice->file, origins, &problem);
	if (err < 0) {
		config_problem_print(&problem, text, sizeof(text));
		log_error("%s; correct the file, then run: zernel scheduler %s", text,
			  choice->on ? "on" : "off");
		return err;
	}
	for (size_t i = 0; i < config_nr_keys; i++) {
		if (strcmp(config_keys[i].section, "scheduler") != 0 ||
		    strcmp(config_keys[i].key, "attach") != 0 ||
		    strcmp(origins[i].file, choice->path) == 0)
			continue;
		log_error("%s:%u sets attach=%s, and is read after %s: remove the line",
			  origins[i].file, origins[i].line, origins[i].value, choice->path);
		return -EEXIST;
	}
	return 0;
}

/* zerneld reads its files again on SIGHUP. */
static int ask_to_reload(const struct client *client)
{
	struct socket_peer peer;
	int err = socket_peer_read(client_fd(client), &peer);

	if (err < 0)
		return err;
	cleanup_fd(&peer.pidfd);
	/* Another user may have made the socket. */
	if (peer.pid <= 1 || (peer.uid != 0 && peer.uid != geteuid()))
		return -EPERM;
	return kill(peer.pid, SIGHUP) < 0 ? -errno : 0;
}

static bool has_settled(const struct choice *choice, const struct snapshot_sched *sched)
{
	bool acts = sched->actuator != ACTUATOR_NONE;

	return choice->on ? acts || sched->reason[0] : !acts;
}

/* Waits until zerneld acts, has a reason not to, or does not act any more. */
static int wait_for_zerneld(const struct choice *choice, struct snapshot **ret)
{
	const struct timespec pause = { .tv_nsec = WAIT_ONE_MS * 1000000L };

	for (int waited = 0;; waited += WAIT_ONE_MS) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
		int err = ask_snapshot(choice->socket, &snapshot);

		if (err < 0)
			return err;
		if (has_settled(choice, &snapshot->sched) || waited >= WAIT_MS) {
			*ret = TAKE_PTR(snapshot);
			return 0;
		}
		nanosleep(&pause, NULL);
	}
}

static void explain(const struct choice *choice)
{
	if (!choice->on) {
		printf("zerneld only watches, now and after each start. The kernel's own scheduler "
		       "is "
		       "in charge.\n"
		       "written  %s\n"
		       "undo     zernel scheduler on\n",
		       choice->path);
		return;
	}
	printf("zerneld acts, now and after each start: threads that feed a GPU run first. While "
	       "there\n"
	       "is an ML process, it attaches its scheduler, or sets nice values where it cannot "
	       "be "
	       "attached.\n"
	       "written  %s\n"
	       "prove    zernel ab     compares a job with the scheduler and without it\n"
	       "undo     zernel scheduler off\n",
	       choice->path);
}

static int print_json(const struct choice *choice, const struct snapshot *snapshot)
{
	const struct result_field fields[] = {
		{ "attach", choice->on ? "auto" : "no" },
		{ "file", choice->path },
		{ "state",
		  snapshot ? snapshot_sched_state_label(snapshot->sched.state) : "not running" },
		{ "actuator",
		  snapshot ? snapshot_actuator_label(snapshot->sched.actuator) : "none" },
		{ "reason", snapshot ? snapshot->sched.reason : "" },
		{},
	};

	return result_print(fields);
}

static void print_state(const struct choice *choice, const struct snapshot *snapshot)
{
	explain(choice);
	if (!snapshot) {
		printf("now      zerneld is not running: systemctl enable --now zerneld\n");
		return;
	}
	printf("now      scheduler %s, zerneld acts with: %s%s%s\n",
	       snapshot_sched_state_label(snapshot->sched.state),
	       snapshot_actuator_label(snapshot->sched.actuator),
	       snapshot->sched.reason[0] ? "; " : "", snapshot->sched.reason);
}

/* Without zerneld, the choice takes effect when it starts. */
static int apply(const struct choice *choice, struct snapshot **ret)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	int err = client_connect(choice->socket, &client);

	if (err == -ENOENT || err == -ECONNREFUSED)
		return 0;
	if (err < 0) {
		ask_log_failure(choice->socket, err);
		return err;
	}
	err = ask_to_reload(client);
	if (err < 0) {
		log_error("cannot tell zerneld to read its configuration: %s; run: systemctl "
			  "reload zerneld",
			  strerror(-err));
		return err;
	}
	return wait_for_zerneld(choice, ret);
}

static int switch_scheduler(struct command_call *call, bool on)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	struct choice choice = { .on = on, .socket = PROTOCOL_SOCKET };
	int option;

	while ((option = command_next(call)) != -1) {
		switch (option) {
		case 's': choice.socket = optarg; break;
		case 'c': choice.file = optarg; break;
		default: return COMMAND_MISUSED;
		}
	}
	if (command_operands(call, 0, 0) < 0)
		return COMMAND_MISUSED;
	if (write_drop_in(&choice) < 0 || check_effect(&choice) < 0 ||
	    apply(&choice, &snapshot) < 0)
		return EXIT_FAILURE;
	if (call->json)
		return print_json(&choice, snapshot) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	print_state(&choice, snapshot);
	return EXIT_SUCCESS;
}

static int run_on(struct command_call *call)
{
	return switch_scheduler(call, true);
}

static int run_off(struct command_call *call)
{
	return switch_scheduler(call, false);
}

static const struct command_option options[] = {
	{ "config", 'c', "FILE", "write into FILE.d, and read FILE instead of " CONFIG_FILE,
	  COMPLETE_FILE },
	OPTION_SOCKET,
	{},
};

static const struct command command_on = {
	.name = "on",
	.help = "let zerneld act, now and after each start",
	.description = "Sets attach=auto in a drop-in of zernel.conf(5), and lets a running "
		       "zerneld read it.\n"
		       "Prints how to prove the effect, and how to undo it. Needs root.",
	.json = "print the file, the state of the scheduler and the reason as JSON",
	.options = options,
	.run = run_on,
};

static const struct command command_off = {
	.name = "off",
	.help = "let zerneld only watch, now and after each start",
	.description = "Sets attach=no in a drop-in of zernel.conf(5), and lets a running zerneld "
		       "read it.\n"
		       "Needs root.",
	.json = "print the file, the state of the scheduler and the reason as JSON",
	.options = options,
	.run = run_off,
};

static const struct command *const commands[] = { &command_on, &command_off, NULL };

const struct command command_scheduler = {
	.name = "scheduler",
	.operands = "COMMAND",
	.help = "turn the scheduler on or off, also for the next start",
	.commands = commands,
};
