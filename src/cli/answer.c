/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/answer.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"

int answer_ask(const struct answer_call *answer, answer_print_fn print, const char *failure)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	int err;

	if (ask_snapshot(answer->socket, &snapshot) < 0)
		return EXIT_FAILURE;
	err = print(snapshot, answer);
	if (err == -ENOENT)
		return EXIT_NOBODY;
	if (err < 0)
		log_error("%s: %s", failure, strerror(-err));
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int answer_run(struct command_call *call, answer_print_fn print, const char *failure)
{
	struct answer_call answer = {};

	if (command_socket(call, 1, &answer.socket) < 0)
		return COMMAND_MISUSED;
	answer.who = call->argv[optind];
	answer.json = call->json;
	answer.term = term_open(stdout, call->colour);
	return answer_ask(&answer, print, failure);
}
