/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the gateway remembers, and the answer to "why is the GPU idle" from it. */
#include <errno.h>
#include <string.h>
#include "answers/why.h"
#include "base/cleanup.h"
#include "ipc/snapshot_json.h"
#include "serve/past.h"

/* Snapshots arrive faster if a client asks for it. Their timing varies. */
#define KEEP_NS	      (900 * NSEC_PER_MSEC)
/* The text of more processes would be too large. */
#define PROCESSES_MAX 512

int past_start(struct past *past)
{
	int err = rank_history_new(RANK_HISTORY_BYTES_MAX, &past->history);

	if (err < 0)
		return err;
	return record_keep_new(PAST_RECORDING_BYTES, PAST_SECONDS_MAX * NSEC_PER_SEC,
			       &past->recording);
}

void past_clear(struct past *past)
{
	past->history = rank_history_free(past->history);
	past->recording = record_keep_free(past->recording);
}

void past_interrupt(struct past *past)
{
	past->is_new = true;
}

static int keep(struct past *past, const struct snapshot *snapshot)
{
	struct record_info info = {
		.time_ms = snapshot->time_ms,
		.monotonic_ns = snapshot->monotonic_ns,
		.interval_ms = 1000,
	};
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err;

	if (snapshot->nr_processes > PROCESSES_MAX)
		return -E2BIG;
	err = snapshot_to_json(snapshot, &text, &length);
	if (err < 0)
		return err;
	strcpy(info.host, snapshot->host);
	strcpy(info.version, snapshot->version);
	strcpy(info.kernel, snapshot->kernel);
	past->kept_ns = snapshot->monotonic_ns;
	return record_keep_snapshot(past->recording, &info, text, length);
}

int past_add(struct past *past, const struct snapshot *snapshot)
{
	int err;

	if (!past->history)
		return 0;
	if (past->is_new || !past->since_ns)
		past->since_ns = snapshot->monotonic_ns;
	err = rank_history_add(past->history, snapshot);
	if (past->is_new || snapshot->monotonic_ns - past->kept_ns >= KEEP_NS) {
		int keep_err = keep(past, snapshot);

		err = err < 0 ? err : keep_err;
	}
	past->is_new = false;
	return err;
}

int past_add_events(struct past *past, const char *text)
{
	return past->recording ? record_keep_events(past->recording, text, strlen(text)) : 0;
}

int past_snapshot(struct past *past, const struct snapshot *now, u32 seconds, struct snapshot **ret)
{
	u64 ns = seconds * NSEC_PER_SEC;
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err;

	if (!past->recording)
		return -ENODATA;
	err = record_keep_find(past->recording, now->monotonic_ns > ns ? now->monotonic_ns - ns : 0,
			       past->since_ns, &text, &length);
	return err < 0 ? err : snapshot_from_json(text, length, ret);
}

int past_why(struct past *past, const struct snapshot *now, u32 seconds, char **ret,
	     size_t *ret_length)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *before = NULL;
	CLEANUP(why_free_cleanup) struct why *why = NULL;
	int err = past_snapshot(past, now, seconds, &before);

	if (err < 0)
		return err;
	if (before->monotonic_ns >= now->monotonic_ns)
		return -ENODATA;
	err = why_new(before, now, NULL, &why);
	return err < 0 ? err : why_to_json(why, ret, ret_length);
}
