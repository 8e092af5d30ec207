/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/daemon.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/time.h"
#include "daemon/devices.h"
#include "daemon/notify.h"
#include "daemon/requests.h"
#include "daemon/snapshot_builder.h"
#include "daemon/timeline.h"

/* Interval between two polls of the kernel buffers and of the state of the scheduler. */
#define TICK_MS		100
#define TICKS_IN_SECOND (1000 / TICK_MS)

struct daemon {
	const struct options *options;
	struct starter *starter; /* owned by the caller */
	struct config config;
	struct loop *loop;
	struct learning *learning;
	struct devices *devices; /* NULL: GPUs are not sampled */
	struct snapshot_builder *builder;
	struct discovery *discovery;
	struct supervisor *supervisor;
	struct server *server;
	struct requests requests;
	struct timeline timeline;
	struct lines *lines;
	struct stacks *stacks;
	struct oom_stacks *oom_stacks;
	struct usages *usages;
	struct loop_source signals;
	struct loop_source starter_end;
	bool has_failed;
	struct loop_source timer;
	int signal_fd;
	int timer_fd;
	int measure_fd; /* while it is open, the kernel measures run time */
	int server_err; /* the last error that was logged */
	u64 nr_ticks;
	u64 watchdog_ns;
	u64 alive_ns;
	char status[160];
};

static struct sched_policy policy_of(const struct config *config)
{
	return (struct sched_policy){ .rules_off = config->rules_off,
				      .reserved_percent = config->reserved_percent,
				      .promotion_percent = config->promotion_percent,
				      .daemon_tgid = (u32)getpid() };
}

static void log_problem(const struct config_problem *problem)
{
	char text[sizeof(*problem)];

	config_problem_print(problem, text, sizeof(text));
	log_event(LOG_LEVEL_ERROR, "config", "%s", text);
}

static void reload(struct daemon *d)
{
	struct config_problem problem = {};
	struct config config = d->config;
	struct sched_policy policy;
	const char *late;

	notify_reloading();
	learning_save(d->learning);
	if (options_load_config(d->options, &config, &problem) < 0) {
		server_reload(d->server, d->config.read_own);
		log_problem(&problem);
		log_event(LOG_LEVEL_ERROR, "reload",
			  "reload failed: the previous configuration stays in effect");
		notify_ready();
		return;
	}
	late = config_needs_restart(&d->config, &config);
	if (late)
		log_warning("the new value of %s takes effect when zerneld restarts", late);
	d->config = config;
	server_reload(d->server, config.read_own);
	supervisor_set_retry(d->supervisor, config.retry_s);
	supervisor_set_actuator(d->supervisor, config.actuator);
	supervisor_set_attach(d->supervisor, config.attach);
	supervisor_set_phase_config(d->supervisor, &config.phase_detection);
	supervisor_set_device_files(d->supervisor, config.device_files);
	policy = policy_of(&config);
	supervisor_set_policy(d->supervisor, &policy);
	log_event(LOG_LEVEL_INFO, "reload", "configuration reloaded");
	notify_ready();
}

static void on_signal(void *ctx, u32 events)
{
	struct daemon *d = ctx;

	for (int number; (number = signals_next(d->signal_fd));) {
		if (number == SIGHUP)
			reload(d);
		else
			loop_stop(d->loop);
	}
}

static void tend_server(struct daemon *d)
{
	int err = server_tick(d->server);

	if (err > 0)
		log_event(LOG_LEVEL_WARNING, "socket", "%s was removed: socket recreated",
			  d->config.socket);
	if (err < 0 && err != d->server_err)
		log_event(LOG_LEVEL_ERROR, "socket",
			  "cannot create the socket %s: %s; trying again every second",
			  d->config.socket, strerror(-err));
	/* Most ticks return 0 without a check, so 0 does not clear the error. */
	if (err != 0)
		d->server_err = err < 0 ? err : 0;
}

static void tell_status(struct daemon *d)
{
	const struct supervisor_status *status = supervisor_status(d->supervisor);
	char text[sizeof(d->status)];

	snprintf(text, sizeof(text), "scheduler %s%s%.100s%s",
		 snapshot_sched_state_label(status->state), *status->reason ? ": " : "",
		 status->reason, status->actuator == ACTUATOR_NICE ? "; nice values are set" : "");
	if (strcmp(text, d->status) == 0)
		return;
	strcpy(d->status, text);
	notify_status(text);
}

static void on_second(struct daemon *d)
{
	if (d->devices)
		devices_tick(d->devices, supervisor_kernel(d->supervisor),
			     snapshot_builder_last(d->builder));
	snapshot_builder_tick(d->builder);
	tell_status(d);
}

static void on_tick(void *ctx, u32 events)
{
	struct daemon *d = ctx;
	u64 now_ns = time_now_ns();

	loop_timer_read(d->timer_fd);
	supervisor_tick(d->supervisor);
	lines_tick(d->lines);
	tend_server(d);
	if (d->nr_ticks++ % TICKS_IN_SECOND == 0)
		on_second(d);
	if (d->watchdog_ns && now_ns >= d->alive_ns + d->watchdog_ns) {
		d->alive_ns = now_ns;
		notify_alive();
	}
}

static struct daemon *daemon_of(struct requests *requests)
{
	return container_of(requests, struct daemon, requests);
}

static bool on_prepare(void *ctx)
{
	return snapshot_builder_prepare(daemon_of(ctx)->builder);
}

static struct message *on_snapshot(void *ctx, u32 uid)
{
	return snapshot_builder_message(daemon_of(ctx)->builder, uid);
}

static int on_record_begin(void *ctx, u64 *ret_position)
{
	struct daemon *d = daemon_of(ctx);
	int err = timeline_open(&d->timeline, ret_position);

	if (err < 0)
		return err;
	if (d->timeline.nr_readers == 1)
		supervisor_set_timeline(d->supervisor, true);
	return 0;
}

static void on_record_end(void *ctx)
{
	struct daemon *d = daemon_of(ctx);

	timeline_close(&d->timeline);
	if (d->timeline.nr_readers == 0)
		supervisor_set_timeline(d->supervisor, false);
}

static struct message *on_events(void *ctx, u64 *position)
{
	return timeline_read(&daemon_of(ctx)->timeline, position);
}

static void on_kernel_event(void *ctx, struct kernel *kernel, const struct event *event)
{
	struct daemon *d = ctx;

	snapshot_builder_on_event(d->builder, kernel, event);
	timeline_add(&d->timeline, event);
}

/* Clients that wait for a snapshot of this time get it now. */
static void on_sample(void *ctx)
{
	struct daemon *d = ctx;

	server_resume(d->server);
}

static int open_server(struct daemon *d)
{
	static const struct server_ops ops = { .request = requests_answer,
					       .prepare = on_prepare,
					       .snapshot = on_snapshot,
					       .record_begin = on_record_begin,
					       .record_end = on_record_end,
					       .events = on_events };
	struct server_config config = {
		.path = d->config.socket,
		.version = ZERNEL_VERSION,
		.snapshot_version = SNAPSHOT_VERSION,
		.read_own = d->config.read_own,
	};
	int err = server_new(&config, d->loop, &ops, &d->requests, &d->server);

	if (err == -EADDRINUSE)
		log_error("another zerneld answers on %s: stop it first", d->config.socket);
	else if (err < 0)
		log_error("cannot create the socket %s: %s", d->config.socket, strerror(-err));
	return err;
}

/*
 * zerneld has no capability to start another one, so it could not start a process again that ended.
 * A new zerneld can, and the kernel's scheduler acts meanwhile.
 */
static void on_starter_end(void *ctx, u32 events)
{
	struct daemon *d = ctx;

	log_event(LOG_LEVEL_ERROR, "starter-ended",
		  "the process zerneld-starter ended: zerneld ends too, to be started again by the "
		  "service manager");
	d->has_failed = true;
	loop_stop(d->loop);
}

static int open_sources(struct daemon *d)
{
	int err = signals_open(NULL, &d->signal_fd, NULL);

	if (err < 0)
		return err;
	d->signals = (struct loop_source){ .on_event = on_signal, .ctx = d };
	err = loop_add(d->loop, &d->signals, d->signal_fd, EPOLLIN);
	if (err < 0)
		return err;
	err = loop_timer_open(TICK_MS, &d->timer_fd);
	if (err < 0)
		return err;
	d->timer = (struct loop_source){ .on_event = on_tick, .ctx = d };
	err = loop_add(d->loop, &d->timer, d->timer_fd, EPOLLIN);
	if (err < 0)
		return err;
	d->starter_end = (struct loop_source){ .on_event = on_starter_end, .ctx = d };
	return loop_add(d->loop, &d->starter_end, starter_fd(d->starter), EPOLLIN);
}

static int open_kernel(struct daemon *d)
{
	struct supervisor_config config = {
		.discovery = d->discovery,
		.policy = policy_of(&d->config),
		.phase_detection = d->config.phase_detection,
		.attach = d->config.attach,
		.actuator = d->config.actuator,
		.retry_s = d->config.retry_s,
	};

	memcpy(config.device_files, d->config.device_files, sizeof(config.device_files));

	if (d->config.measure_run_time && kernel_measure_run_time(&d->measure_fd) < 0)
		log_warning("cannot measure the CPU time of BPF programs: the kernel refused");
	return supervisor_new(&config, d->loop, d->learning, on_kernel_event, d, &d->supervisor);
}

static void connect_parts(struct daemon *d)
{
	struct snapshot_sources sources = {
		.supervisor = d->supervisor,
		.discovery = d->discovery,
		.learning = d->learning,
		.devices = d->devices,
		.oom_stacks = d->oom_stacks,
		.loop_turns = loop_turns(d->loop),
	};

	snapshot_builder_set_sources(d->builder, &sources);
	d->requests = (struct requests){ .supervisor = d->supervisor,
					 .learning = d->learning,
					 .builder = d->builder,
					 .lines = d->lines,
					 .stacks = d->stacks,
					 .oom_stacks = d->oom_stacks,
					 .usages = d->usages };
}

static int open_parts(struct daemon *d)
{
	int err = loop_new(&d->loop);

	/*
	 * Signals come first, so that an early signal is not lost. Then the socket, which shows
	 * whether another zerneld runs.
	 */
	if (err < 0)
		return err;
	err = open_sources(d);
	if (err < 0)
		return err;
	err = open_server(d);
	if (err < 0)
		return err;
	err = learning_new(d->config.state_directory, d->config.nr_profiles, &d->learning);
	if (err < 0)
		return err;
	if (d->config.sample_gpus)
		err = devices_new(d->starter, d->loop, on_sample, d, &d->devices);
	if (err < 0)
		return err;
	err = snapshot_builder_new(ZERNEL_VERSION, &d->builder);
	if (err < 0)
		return err;
	err = discovery_new(d->starter, d->loop, &d->discovery);
	if (err < 0)
		return err;
	err = open_kernel(d);
	if (err < 0)
		return err;
	err = lines_new(d->supervisor, d->discovery, &d->lines);
	if (err < 0)
		return err;
	err = stacks_new(d->supervisor, d->discovery, &d->stacks);
	if (err < 0)
		return err;
	err = oom_stacks_new(&d->oom_stacks);
	if (err < 0)
		return err;
	err = usages_new(d->supervisor, &d->usages);
	if (err < 0)
		return err;
	connect_parts(d);
	return 0;
}

int daemon_new(const struct options *options, struct starter *starter, struct daemon **ret)
{
	CLEANUP(daemon_free_cleanup) struct daemon *d = calloc(1, sizeof(*d));
	struct config_problem problem = {};
	int err;

	if (!d)
		return -ENOMEM;
	d->options = options;
	d->starter = starter;
	d->signal_fd = d->timer_fd = d->measure_fd = -EBADF;
	err = options_load_config(options, &d->config, &problem);
	if (err < 0) {
		log_problem(&problem);
		return err;
	}
	d->watchdog_ns = notify_watchdog_ns();
	err = open_parts(d);
	if (err < 0) {
		log_error("cannot start: %s", strerror(-err));
		return err;
	}
	*ret = TAKE_PTR(d);
	return 0;
}

struct daemon *daemon_free(struct daemon *d)
{
	if (!d)
		return NULL;
	server_free(d->server);
	lines_free(d->lines);
	stacks_free(d->stacks);
	usages_free(d->usages);
	supervisor_free(d->supervisor);
	discovery_free(d->discovery);
	snapshot_builder_free(d->builder);
	oom_stacks_free(d->oom_stacks);
	devices_free(d->devices);
	learning_free(d->learning);
	cleanup_fd(&d->signal_fd);
	cleanup_fd(&d->timer_fd);
	cleanup_fd(&d->measure_fd);
	loop_free(d->loop);
	free(d);
	return NULL;
}

int daemon_run(struct daemon *d)
{
	const struct hist *turns = loop_turns(d->loop);
	int err;

	notify_ready();
	err = loop_run(d->loop);
	notify_stopping();
	log_event(LOG_LEVEL_INFO, "loop", "%llu loop iterations, p99 %llu us, longest %llu us",
		  turns->count, hist_quantile(turns, 990) / NSEC_PER_USEC,
		  turns->max / NSEC_PER_USEC);
	return d->has_failed ? -ECHILD : err;
}
