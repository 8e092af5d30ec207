/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include "answers/choose.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/time.h"
#include "cli/ab/ab.h"
#include "cli/ab/ab_guard.h"
#include "cli/ask.h"
#include "cli/progress.h"
#include "ipc/snapshot_json.h"

/* Sampling interval within a window. */
#define LOOK_NS	    (250 * NSEC_PER_MSEC)
/* Measurement before the first window: the number of steps and the minimum time. */
#define USUAL_STEPS (2 * AB_STEPS_MIN)
#define USUAL_NS    NSEC_PER_SEC
#define PROGRESS_NS (100 * NSEC_PER_MSEC)

struct session {
	const struct ab_options *options;
	const struct term *progress;
	struct ab_report *report;
	struct client *client;
	struct ab_key *keys;
	u32 nr_keys;
	int signal_fd;
	u64 began_ns;
	u64 whole_ns;
};

/* Always returns false: the experiment ends. */
static bool stop(struct session *s, enum ab_end end)
{
	s->report->end = end;
	return false;
}

/* Returns false if a signal arrives. */
static bool nap(struct session *s, u64 ns)
{
	u64 end_ns = time_now_ns() + ns, left_ns = ns;
	struct pollfd poll_fd = { .fd = s->signal_fd, .events = POLLIN };

	while (left_ns > 0) {
		u64 now, part_ns = left_ns < PROGRESS_NS ? left_ns : PROGRESS_NS;

		poll(&poll_fd, 1, (int)((part_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC));
		s->report->signal = signals_next(s->signal_fd);
		if (s->report->signal)
			return stop(s, AB_INTERRUPTED);
		now = time_now_ns();
		left_ns = now < end_ns ? end_ns - now : 0;
		if (s->whole_ns)
			progress_show(s->progress, now - s->began_ns, s->whole_ns, "pair %u of %u",
				      s->report->nr_pairs + 1, s->report->plan.nr_pairs);
		else
			progress_show(s->progress, 0, 1,
				      "measuring the job before the first switch");
	}
	return true;
}

static bool look(struct session *s, struct snapshot **ret)
{
	CLEANUP(client_data_done) struct client_data data = {};

	if (client_request(s->client, "snapshot", NULL, &data, NULL) < 0 ||
	    snapshot_from_value(data.value, ret) < 0)
		return stop(s, AB_ZERNELD_GONE);
	return true;
}

/* Measures the job between the snapshot `since` and now. */
static bool measure(struct session *s, const struct snapshot *since, struct ab_window *ret)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *now = NULL;
	int err;

	if (!look(s, &now))
		return false;
	if (now->sched.state == SCHED_EJECTED)
		return stop(s, AB_EJECTED);
	if (now->sched.actuator != since->sched.actuator)
		return stop(s, AB_MEDDLED);
	err = ab_measure(since, now, s->keys, s->nr_keys, ret);
	if (err == -ESRCH || (err == 0 && ret->nr_processes < s->nr_keys))
		return stop(s, AB_JOB_GONE);
	/* zerneld may return the same snapshot again. */
	if (err < 0 && now->monotonic_ns == since->monotonic_ns) {
		*ret = (struct ab_window){ .nr_processes = s->nr_keys };
		err = 0;
	}
	return err == 0 || stop(s, AB_ZERNELD_GONE);
}

/* All windows in which zerneld acts use the same actuator. */
static bool is_as_expected(struct ab_report *report, const struct snapshot_sched *sched, bool acts)
{
	if (!acts)
		return sched->actuator == ACTUATOR_NONE;
	if (report->actuator == ACTUATOR_NONE)
		report->actuator = sched->actuator;
	return sched->actuator != ACTUATOR_NONE && sched->actuator == report->actuator;
}

static bool run_window(struct session *s, enum ab_mode mode, struct ab_window *ret)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *since = NULL;
	bool acts = mode == AB_WITH, as_found = acts == (s->report->found != ACTUATOR_NONE);
	u64 length_ns = s->report->plan.window_ns - s->report->plan.settle_ns, end_ns;
	struct client_error error = {};
	int err = client_request(s->client, ab_guard_method(acts), NULL, NULL, &error);

	if (err == -EREMOTEIO)
		log_error("zerneld refused %s: %s", ab_guard_method(acts), error.message);
	if (err < 0)
		return stop(s, err == -EREMOTEIO ? AB_REFUSED : AB_ZERNELD_GONE);
	if (!nap(s, s->report->plan.settle_ns) || !look(s, &since))
		return false;
	if (!is_as_expected(s->report, &since->sched, acts))
		return stop(s, since->sched.state == SCHED_EJECTED ? AB_EJECTED : AB_MEDDLED);
	end_ns = time_now_ns() + length_ns;
	for (u64 now = time_now_ns(); now < end_ns; now = time_now_ns()) {
		if (!nap(s, end_ns - now < LOOK_NS ? end_ns - now : LOOK_NS) ||
		    !measure(s, since, ret))
			return false;
		if (!as_found && ab_is_worse(&s->report->usual, ret, s->options->bound_permille)) {
			s->report->slow = *ret;
			return stop(s, AB_TOO_SLOW);
		}
	}
	if (as_found)
		ab_add(&s->report->usual, ret);
	return true;
}

static bool run_pair(struct session *s)
{
	enum ab_mode first = ab_first(s->report->seed, s->report->nr_pairs);
	enum ab_mode second = first == AB_WITH ? AB_WITHOUT : AB_WITH;
	struct ab_pair *pair = &s->report->pairs[s->report->nr_pairs];

	return run_window(s, first, &pair->windows[first]) &&
	       run_window(s, second, &pair->windows[second]);
}

/* Measures the job in the initial state of the scheduler. */
static bool learn_usual(struct session *s)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *since = NULL;
	u64 began_ns = time_now_ns(), passed_ns = 0;

	if (!look(s, &since))
		return false;
	while (passed_ns < USUAL_NS || (s->report->usual.steps.count < USUAL_STEPS * s->nr_keys &&
					passed_ns < s->options->total_ns / 4)) {
		if (!nap(s, LOOK_NS) || !measure(s, since, &s->report->usual))
			return false;
		passed_ns = time_now_ns() - began_ns;
	}
	return true;
}

static int choose_subject(struct session *s)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	const struct snapshot_process *process;
	u32 at = 0;

	if (!look(s, &snapshot)) {
		log_error("zerneld does not answer. Run: zernel doctor");
		return -EIO;
	}
	s->report->found = snapshot->sched.actuator;
	if (snapshot->sched.state == SCHED_EJECTED) {
		log_error("the kernel ejected the scheduler (%s). Find the cause, then run: "
			  "systemctl restart zerneld",
			  snapshot->sched.reason);
		return -EPERM;
	}
	s->keys = calloc(snapshot->nr_processes + 1, sizeof(*s->keys));
	if (!s->keys)
		return -ENOMEM;
	while ((process = choose_next(snapshot, s->options->who, &at))) {
		s->keys[s->nr_keys++] =
			(struct ab_key){ .pid = process->pid, .start_ns = process->start_ns };
		snprintf(s->report->subject, sizeof(s->report->subject), "%s",
			 s->nr_keys == 1 ? choose_name(process).text : s->options->who);
	}
	if (s->nr_keys == 0)
		log_error("no process or job '%s' uses a GPU. List them with: zernel status",
			  s->options->who);
	return s->nr_keys ? 0 : -ENOENT;
}

static int make_plan(struct session *s)
{
	u64 step_ns, needed_ns = 0;

	if (s->report->end == AB_INTERRUPTED)
		return -EINTR;
	if (s->report->end != AB_COMPLETE) {
		log_error("%s or zerneld ended before the first switch: start it, then run the "
			  "command again",
			  s->report->subject);
		return -ESRCH;
	}
	if (s->report->usual.steps.count < AB_STEPS_MIN) {
		log_error("zerneld saw too few steps of %s: there is nothing to compare. Check "
			  "that the job runs steps: zernel top",
			  s->report->subject);
		return -ENODATA;
	}
	step_ns = ab_step_ns(&s->report->usual);
	if (ab_plan(s->options->total_ns, step_ns, &s->report->plan, &needed_ns) < 0) {
		log_error("steps of %s need more time: use --minutes %.1f", unit_ns(step_ns).text,
			  (double)needed_ns / 60e9 + 0.1);
		return -ERANGE;
	}
	s->began_ns = time_now_ns();
	s->whole_ns = 2 * s->report->plan.nr_pairs * s->report->plan.window_ns;
	return 0;
}

static int open_session(struct session *s)
{
	int err = ask_connect(s->options->socket, &s->client);

	if (err < 0)
		return err;
	if (!client_may(s->client, "change")) {
		log_error(
			"only root and members of group zernel-admin may switch the scheduler: use "
			"sudo, or ask an administrator to add you to the group");
		return -EACCES;
	}
	return choose_subject(s);
}

static void carry_out(struct session *s)
{
	while (s->report->nr_pairs < s->report->plan.nr_pairs && run_pair(s))
		s->report->nr_pairs++;
	progress_end(s->progress);
}

int ab_run(const struct ab_options *options, const struct term *progress, struct ab_report *ret)
{
	static const int also[] = { SIGQUIT, 0 };
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	CLEANUP_FREE struct ab_key *keys = NULL;
	CLEANUP_FD int signal_fd = -EBADF;
	struct session session = { .options = options, .progress = progress, .report = ret };
	struct ab_guard guard;
	int err = signals_open(also, &signal_fd, NULL);

	/* SIGPIPE must not end the program before the scheduler is restored. */
	signal(SIGPIPE, SIG_IGN);
	*ret = (struct ab_report){ .seed = options->seed };
	session.signal_fd = signal_fd;
	if (err == 0)
		err = open_session(&session);
	client = session.client;
	keys = session.keys;
	if (err == 0) {
		learn_usual(&session);
		progress_end(progress);
		err = make_plan(&session);
	}
	if (err < 0)
		return err;
	err = ab_guard_begin(&guard, options->socket, ret->found != ACTUATOR_NONE);
	if (err < 0)
		return err;
	carry_out(&session);
	/* The kernel or another client changed the state since then: keep that newer state. */
	if (ret->end == AB_EJECTED || ret->end == AB_MEDDLED)
		ab_guard_dismiss(&guard);
	else
		ret->restored = ab_guard_restore(&guard) == 0;
	return 0;
}
