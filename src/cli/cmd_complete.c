/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zernel complete: prints the pids and jobs that a shell offers for PID|JOB, one per line.
 * Completion scripts pass the words typed so far; only --socket and --ended in them are used. It
 * prints nothing when zerneld does not answer: a message would appear inside the line that the user
 * types.
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/command.h"
#include "ipc/client.h"
#include "ipc/snapshot_json.h"

#define OPTION	   "--socket"
/* The user waits for the completion. */
#define PATIENCE_S 1

/* bash splits --socket=PATH into three words. */
static const char *find_socket(char **words)
{
	const char *socket = PROTOCOL_SOCKET;

	for (; *words; words++) {
		if (strncmp(*words, OPTION "=", sizeof(OPTION)) == 0)
			socket = *words + sizeof(OPTION);
		if (strcmp(*words, OPTION) != 0)
			continue;
		if (words[1] && strcmp(words[1], "=") == 0)
			words++;
		if (words[1])
			socket = *++words;
	}
	return socket;
}

/* zernel why --ended takes ended jobs. */
static const char *find_method(char **words)
{
	for (; *words; words++)
		if (strcmp(*words, "--ended") == 0)
			return "jobs.ended";
	return "snapshot";
}

static int read_snapshot(const char *socket, const char *method, struct snapshot **ret)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	CLEANUP(client_data_done) struct client_data data = {};
	int err = client_connect(socket, &client);

	if (err < 0)
		return err;
	err = client_request(client, method, NULL, &data, NULL);
	return err < 0 ? err : snapshot_from_value(data.value, ret);
}

static void give_up(int number)
{
	_exit(EXIT_SUCCESS);
}

static int run(struct command_call *call)
{
	const struct term term = term_open(stdout, COLOUR_NEVER);
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;

	if (command_next(call) != -1)
		return COMMAND_MISUSED;
	signal(SIGALRM, give_up);
	alarm(PATIENCE_S);
	if (read_snapshot(find_socket(call->argv + optind), find_method(call->argv + optind),
			  &snapshot) < 0)
		return EXIT_SUCCESS;
	for (u32 i = 0; i < snapshot->nr_processes; i++)
		term_print(&term, STYLE_PLAIN, "%u\n", snapshot->processes[i].pid);
	for (u32 i = 0; i < snapshot->nr_jobs; i++)
		term_print(&term, STYLE_PLAIN, "%s\n", snapshot->jobs[i].name);
	return EXIT_SUCCESS;
}

const struct command command_complete = {
	.name = "complete",
	.operands = "-- WORD...",
	.help = "print pids and jobs for completion scripts",
	.run = run,
};
