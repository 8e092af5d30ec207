/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel doctor: checks whether Zernel can work here, and says what to do if not. */
#include <errno.h>
#include <string.h>
#include "base/macros.h"
#include "cli/command.h"
#include "cli/doctor/doctor.h"
#include "ipc/client.h"
#include "ipc/snapshot_json.h"

/* Differs from the verdicts, which are 0 to 2. */
#define EXIT_NOT_LOOKED 3

static enum zerneld_state zerneld_state(int err)
{
	static const struct {
		int err;
		enum zerneld_state state;
	} states[] = {
		{ 0, ZERNELD_ANSWERS },
		{ -EREMOTEIO, ZERNELD_REFUSES },
		{ -EACCES, ZERNELD_REFUSES },
		{ -ENOENT, ZERNELD_ABSENT },
		{ -ECONNREFUSED, ZERNELD_ABSENT },
		{ -EPROTONOSUPPORT, ZERNELD_OTHER_VERSION },
	};

	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (states[i].err == err)
			return states[i].state;
	return ZERNELD_BROKEN;
}

/* An error here is a finding, not a failure of the command. */
static void ask_zerneld(const char *socket, struct doctor *doctor, struct snapshot **ret)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	struct client_error error = {};
	CLEANUP(client_data_done) struct client_data data = {};
	int err = client_connect(socket, &client);

	if (err == 0)
		err = client_request(client, "snapshot", NULL, &data, &error);
	if (err == 0)
		err = snapshot_from_value(data.value, ret);
	/* What belongs to one user says nothing about the node. */
	if (err == 0 && (*ret)->is_own) {
		*ret = snapshot_free(*ret);
		err = -EACCES;
	}
	doctor->zerneld = zerneld_state(err);
	doctor->snapshot = *ret;
	snprintf(doctor->answer, sizeof(doctor->answer), "%s",
		 err == -EREMOTEIO ? error.message : strerror(-err));
}

static int run(struct command_call *call)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	struct doctor doctor = { .root = "" };
	struct term term;
	const char *socket;
	int verdict;

	if (command_socket(call, 0, &socket) < 0)
		return COMMAND_MISUSED;
	ask_zerneld(socket, &doctor, &snapshot);
	term = term_open(stdout, call->colour);
	verdict = call->json ? doctor_print_json(&doctor, stdout) : doctor_print(&doctor, &term);
	return verdict < 0 ? EXIT_NOT_LOOKED : verdict;
}

static const struct command_option command_options[] = { OPTION_SOCKET, {} };
static const struct command_status statuses[] = {
	{ VERDICT_OK, "every check passed" },
	{ VERDICT_WARNING, "at least one check warns: a part of Zernel does not work" },
	{ VERDICT_FAILURE, "at least one check failed: Zernel or its scheduler cannot work" },
	{ EXIT_NOT_LOOKED, "invalid usage, or the checks could not run" },
	{ .help = NULL },
};

const struct command command_doctor = {
	.name = "doctor",
	.help = "check whether Zernel can work here, and say what to do if not",
	.description =
		"Checks the kernel, sched_ext, BTF, lockdown, capabilities, zerneld, schedulers,\n"
		"GPU runtime libraries, GPUs, the clock and limits. Each line is ok, warning or\n"
		"failure. The line below a warning or a failure says what to do.",
	.options = command_options,
	.statuses = statuses,
	.misuse_status = EXIT_NOT_LOOKED,
	.run = run,
};
