/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/ask.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "answers/choose.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ipc/snapshot_json.h"

/* A watch can begin later, because probes are attached for it. */
#define BEGIN_MS 20000

int ask_log_refusal(int err, const struct client_error *error)
{
	if (err == -EREMOTEIO)
		log_error("zerneld refused the request: %s", error->message);
	else
		log_error("zerneld did not answer: %s. Run: zernel doctor", strerror(-err));
	return err;
}

int ask(struct client *client, const char *method, const char *params, struct client_data *ret)
{
	struct client_error error = {};
	int err = client_request(client, method, params, ret, &error);

	return err < 0 ? ask_log_refusal(err, &error) : err;
}

void ask_log_failure(const char *socket, int err)
{
	if (err == -ENOENT || err == -ECONNREFUSED)
		log_error("zerneld is not running, or uses another socket than %s. Start it with: "
			  "systemctl start zerneld",
			  socket);
	else if (err == -EPROTONOSUPPORT)
		log_error("zerneld at %s " PROTOCOL_UPDATE_BOTH ", then: systemctl restart zerneld",
			  socket);
	else
		log_error("cannot connect to zerneld at %s: %s. Run: zernel doctor", socket,
			  strerror(-err));
}

int ask_connect(const char *socket, struct client **ret)
{
	int err = client_connect(socket, ret);

	if (err < 0)
		ask_log_failure(socket, err);
	return err;
}

/* Uses a new connection. */
static int ask_once(const char *socket, const char *method, struct client_data *ret)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	int err = ask_connect(socket, &client);

	return err < 0 ? err : ask(client, method, NULL, ret);
}

static int read_snapshot(const struct client_data *data, struct snapshot **ret)
{
	int err = snapshot_from_value(data->value, ret);

	if (err < 0)
		log_error("zerneld sent an invalid snapshot: %s. Run: zernel doctor",
			  strerror(-err));
	return err;
}

int ask_snapshot(const char *socket, struct snapshot **ret)
{
	CLEANUP(client_data_done) struct client_data data = {};
	int err = ask_once(socket, "snapshot", &data);

	if (err < 0)
		return err;
	return read_snapshot(&data, ret);
}

int ask_ended(const char *socket, const char *who, struct snapshot **ret)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	CLEANUP(client_data_done) struct client_data data = {};
	CLEANUP_FREE char *params = protocol_ended_params(who);
	struct client_error error = {};
	int err = ask_connect(socket, &client);

	if (err < 0)
		return -ECONNREFUSED;
	err = client_request(client, "jobs.ended", params, &data, &error);
	if (err == -EREMOTEIO && strcmp(error.code, "not-found") == 0)
		return -ENOENT;
	if (err < 0)
		return ask_log_refusal(err, &error);
	return read_snapshot(&data, ret);
}

int ask_print_snapshot(const char *socket)
{
	CLEANUP(client_data_done) struct client_data data = {};
	CLEANUP_FREE char *text = NULL;
	int err = ask_once(socket, "snapshot", &data);

	if (err < 0)
		return err;
	text = yyjson_val_write(data.value, 0, NULL);
	if (!text) {
		log_error("cannot print the snapshot: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	return puts(text) < 0 ? -EIO : 0;
}

int ask_process(const char *socket, const char *who, u32 *ret_pid)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	const struct snapshot_process *process, *other;
	u32 at = 0;

	if (ask_snapshot(socket, &snapshot) < 0)
		return -EIO;
	process = choose_next(snapshot, who, &at);
	if (!process) {
		log_error("no %sprocess launches work on a GPU: run `zernel status` to list them",
			  who ? "matching " : "");
		return -ENOENT;
	}
	other = choose_next(snapshot, who, &at);
	if (other) {
		log_error("several processes launch work on a GPU, among them %s and %s: name one "
			  "by its PID",
			  choose_name(process).text, choose_name(other).text);
		return -EINVAL;
	}
	*ret_pid = process->pid;
	return 0;
}

int ask_watch(const char *socket, const char *method, u32 pid, u64 seconds, struct client_data *ret)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	struct client_error error = {};
	char params[64];
	int err = ask_connect(socket, &client);

	if (err < 0)
		return err;
	snprintf(params, sizeof(params), "{\"pid\":%u,\"seconds\":%llu}", pid, seconds);
	client_wait_longer(client, (u32)seconds * 1000 + BEGIN_MS);
	err = client_request(client, method, params, ret, &error);
	if (err == -EREMOTEIO && strcmp(error.code, "unknown-method") == 0)
		log_error(
			"zerneld at %s does not know the request \"%s\": it is older than this "
			"command. Update both to the same version, then: systemctl restart zerneld",
			socket, method);
	else if (err < 0)
		ask_log_refusal(err, &error);
	return err;
}

/* Opens a connection on which zerneld pushes data at this interval. */
static int ask_for_pushes(const char *socket, const char *method, u32 interval_ms,
			  struct client **ret)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	char params[48];
	int err = ask_connect(socket, &client);

	snprintf(params, sizeof(params), "{\"interval_ms\":%u}", interval_ms);
	if (err < 0)
		return err;
	err = ask(client, method, params, NULL);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(client);
	return 0;
}

int ask_subscribe(const char *socket, u32 interval_ms, struct client **ret)
{
	return ask_for_pushes(socket, "subscribe", interval_ms, ret);
}

int ask_record(const char *socket, u32 interval_ms, struct client **ret)
{
	int err = ask_for_pushes(socket, "record.start", interval_ms, ret);

	if (err < 0)
		return err;
	client_keep_all(*ret);
	return 0;
}
