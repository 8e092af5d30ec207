/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel replay: runs other commands on a recording. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/recording.h"
#include "cli/status.h"
#include "cli/why/why_print.h"
#include "ipc/snapshot_json.h"

#define SECONDS_MAX 1e9

struct request {
	const char *path;
	const char *question;
	const char *who; /* for why: a process or a job, or NULL */
	bool json;
	enum colour colour;
	double from_s;
	double to_s;
};

/* The first and the last snapshot of the selected span, as text. */
struct span {
	char *first;
	char *last; /* same as `first` if there is only one snapshot */
	u32 nr;
};

static int answer_status(const struct request *request, const struct span *span)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	struct term term;
	int err;

	if (request->json)
		return puts(span->last) < 0 ? -EIO : 0;
	err = snapshot_from_json(span->last, strlen(span->last), &snapshot);
	if (err < 0)
		return err;
	term = term_open(stdout, request->colour);
	return status_print(snapshot, &term);
}

static int answer_why(const struct request *request, const struct span *span)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *before = NULL, *after = NULL;
	const struct why_options options = { .who = request->who, .json = request->json };
	const struct term term = term_open(stdout, request->colour);
	int err = snapshot_from_json(span->first, strlen(span->first), &before);

	if (err < 0)
		return err;
	err = snapshot_from_json(span->last, strlen(span->last), &after);
	return err < 0 ? err : why_print(before, after, &options, &term);
}

static const struct {
	const char *name;
	int (*answer)(const struct request *request, const struct span *span);
	u32 nr_needed; /* snapshots */
	u32 nr_operands;
} questions[] = {
	{ "status", answer_status, 1, 0 },
	{ "why", answer_why, 2, 1 },
};
#define NR_QUESTIONS ARRAY_SIZE(questions)

static int keep(struct span *span, const struct record_frame *frame)
{
	char *text = strndup(frame->text, frame->length);

	if (!text)
		return -ENOMEM;
	if (span->nr++ == 0) {
		span->first = span->last = text;
		return 0;
	}
	if (span->last != span->first)
		free(span->last);
	span->last = text;
	return 0;
}

static void span_done(struct span *span)
{
	if (span->last != span->first)
		free(span->last);
	free(span->first);
}

/* Reads all frames, also after the span, because the caller reports how the recording ends. */
static int read_span(const struct recording *recording, const struct request *request,
		     struct span *span)
{
	struct record_frame frame;
	u64 begin_ns = 0; /* the first frame is at second 0 */
	int n, err = 0;

	while ((n = record_read(recording->reader, &frame)) > 0) {
		double at_s;

		begin_ns = begin_ns ? begin_ns : frame.time_ns;
		at_s = (double)(s64)(frame.time_ns - begin_ns) / NSEC_PER_SEC;
		if (err == 0 && frame.kind == RECORD_FRAME_SNAPSHOT && at_s >= request->from_s &&
		    at_s <= request->to_s)
			err = keep(span, &frame);
	}
	return n < 0 ? n : err;
}

static int replay(const struct request *request, size_t question)
{
	struct recording recording;
	struct span span = {};
	int err = recording_open(request->path, &recording);

	if (err < 0)
		return -EIO; /* logged already; must differ from the errors of the answers */
	err = read_span(&recording, request, &span);
	if (err == 0)
		recording_tell_ending(&recording);
	if (err == 0 && span.nr < questions[question].nr_needed) {
		log_error(
			"%s has %u snapshots in the selected time, but '%s' needs %u: select more "
			"time with --from and --to, or record again for longer",
			request->path, span.nr, request->question, questions[question].nr_needed);
		err = -ENODATA;
	} else if (err == 0) {
		err = questions[question].answer(request, &span);
		if (err == -EBADMSG)
			log_error("%s contains an invalid snapshot", request->path);
		if (err == -EPROTONOSUPPORT)
			recording_tell_version(&recording);
	} else {
		log_error("cannot read %s: %s", request->path, strerror(-err));
	}
	span_done(&span);
	recording_close(&recording);
	return err;
}

static int parse(struct command_call *call, struct request *ret)
{
	struct request request = { .to_s = SECONDS_MAX };
	int option, err = 0;

	while (err == 0 && (option = command_next(call)) != -1) {
		switch (option) {
		case 'f': err = command_decimal(call, 0, SECONDS_MAX, &request.from_s); break;
		case 't': err = command_decimal(call, 0, SECONDS_MAX, &request.to_s); break;
		default: err = -EINVAL;
		}
	}
	if (err < 0 || command_operands(call, 2, 3) < 0)
		return -EINVAL;
	request.path = call->argv[optind];
	request.question = call->argv[optind + 1];
	request.who = call->argv[optind + 2];
	request.json = call->json;
	request.colour = call->colour;
	*ret = request;
	return 0;
}

static int run(struct command_call *call)
{
	struct request request;
	size_t question = 0;

	if (parse(call, &request) < 0)
		return COMMAND_MISUSED;
	while (question < NR_QUESTIONS && strcmp(questions[question].name, request.question) != 0)
		question++;
	if (question == NR_QUESTIONS) {
		command_misuse(call, "unknown question '%s' for '%s': use status or why",
			       request.question, call->name);
		return COMMAND_MISUSED;
	}
	if (request.who && !questions[question].nr_operands) {
		command_misuse(call, "unexpected operand '%s' after '%s'", request.who,
			       request.question);
		return COMMAND_MISUSED;
	}
	switch (replay(&request, question)) {
	case 0: return EXIT_SUCCESS;
	case -ENOENT: return EXIT_NOBODY;
	default: return EXIT_FAILURE;
	}
}

static const struct command_option command_options[] = {
	{ "from", 'f', "S", "skip everything before second S of the recording" },
	{ "to", 't', "S", "skip everything after second S of the recording" },
	{},
};

static const struct command_status statuses[] = {
	STATUS_SUCCESS,	  STATUS_FAILURE,
	STATUS_USAGE,	  { EXIT_NOBODY, "no matching GPU process, or not enough data yet" },
	{ .help = NULL },
};

const struct command command_replay = {
	.name = "replay",
	.operands = "FILE status|why [PID|JOB]",
	.completion = COMPLETE_FILE,
	.help = "run zernel status or zernel why on a recording",
	.description =
		"`status` prints what `zernel status` would have printed at the end of the\n"
		"recording, and `why` what `zernel why` would have printed for all of it. --from\n"
		"and --to select a span. If the recording is cut off or damaged, the command uses\n"
		"the part before that point and prints a warning.",
	.options = command_options,
	.statuses = statuses,
	.run = run,
};
