/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/answer.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"

int answer_run(struct command_call *call, answer_print_fn print, const char *failure)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	const struct term term = term_open(stdout, call->colour);
	const char *socket;
	int err;

	if (command_socket(call, 1, &socket) < 0)
		return COMMAND_MISUSED;
	if (ask_snapshot(socket, &snapshot) < 0)
		return EXIT_FAILURE;
	err = print(snapshot, call->argv[optind], call->json, &term);
	if (err == -ENOENT)
		return EXIT_NOBODY;
	if (err < 0)
		log_error("%s: %s", failure, strerror(-err));
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
