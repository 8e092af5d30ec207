/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/why/why_lines.h"
#include <errno.h>
#include <unistd.h>
#include "answers/choose.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/ask.h"

#define METHOD "lines"

/* Stacks are of one process. Logs why it is not known which one is meant. */
static int choose_one(const struct why_lines_request *request, u32 *ret_pid)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	const struct snapshot_process *process, *other;
	u32 at = 0;
	int err = ask_snapshot(request->socket, &snapshot);

	if (err < 0)
		return -EIO;
	process = choose_next(snapshot, request->who, &at);
	if (!process) {
		log_error("no %sprocess launches work on a GPU: run `zernel status` to list them",
			  request->who ? "matching " : "");
		return -ENOENT;
	}
	other = choose_next(snapshot, request->who, &at);
	if (other) {
		log_error("several processes launch work on a GPU, among them %s and %s: name one "
			  "by its PID",
			  choose_name(process).text, choose_name(other).text);
		return -EINVAL;
	}
	*ret_pid = process->pid;
	return 0;
}

static int ask_lines(const struct why_lines_request *request, u32 pid, struct client_data *ret)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	struct client_error error = {};
	char params[64];
	int err = ask_connect(request->socket, &client);

	if (err < 0)
		return err;
	snprintf(params, sizeof(params), "{\"pid\":%u,\"seconds\":%llu}", pid, request->seconds);
	/* zerneld replies when it has watched for that long. */
	client_wait_longer(client, (u32)request->seconds * 1000);
	err = client_request(client, METHOD, params, ret, &error);
	if (err == -EREMOTEIO && strcmp(error.code, "unknown-method") == 0)
		log_error("zerneld at %s cannot sample stacks: it is older than this command. "
			  "Update both to the same version, then: systemctl restart zerneld",
			  request->socket);
	else if (err < 0)
		ask_log_refusal(err, &error);
	return err;
}

int why_lines(const struct why_lines_request *request)
{
	CLEANUP(client_data_done) struct client_data data = {};
	CLEANUP(lines_free_cleanup) struct lines *lines = NULL;
	const struct term term = term_open(stdout, request->colour);
	u32 pid = 0;
	int err;

	if (request->format == LINES_PPROF && isatty(STDOUT_FILENO)) {
		log_error("the format of pprof is not text: redirect the output to a file");
		return -EINVAL;
	}
	err = choose_one(request, &pid);
	if (err == 0)
		err = ask_lines(request, pid, &data);
	if (err < 0)
		return err;
	err = lines_read(yyjson_obj_get(data.value, "lines"), &lines);
	if (err < 0) {
		log_error("zerneld sent invalid stacks: %s. Run: zernel doctor", strerror(-err));
		return -EPROTO;
	}
	err = lines_print(lines, request->format, &term);
	if (err == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		err = -EIO;
	if (err < 0)
		log_error("cannot print the stacks: %s", strerror(-err));
	return err;
}
