/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/supervisor.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/sched_ext.h"
#include "base/time.h"
#include "daemon/discovery.h"
#include "daemon/limits.h"
#include "daemon/log_limit.h"
#include "daemon/manager.h"

/*
 * Maximum number of successive short-lived restarts. It bounds the work when CPUs repeatedly go
 * online and offline.
 */
#define MAX_RESTARTS 16
#define LASTING_NS   (10 * NSEC_PER_SEC)
#define ATTACH_TRIES 3
/*
 * With attach=auto, the scheduler stays attached for so long after the last ML process. The time
 * doubles whenever the next one starts soon after the detach: an attach and a detach stop the whole
 * machine for a moment, and any user can start such a process.
 */
#define KEEP_NS	     (60 * NSEC_PER_SEC)
#define KEEP_MAX_NS  (64 * KEEP_NS)
#define SOON_NS	     (10 * KEEP_NS)

struct supervisor {
	struct supervisor_config config;
	struct supervisor_status status;
	struct loop *loop;
	struct learning *learning;
	supervisor_event_fn on_event;
	void *ctx;
	struct kernel *kernel;
	struct manager *manager;
	struct loop_source maps;
	struct limits limits;
	struct nice *nice;
	struct discovery *discovery;
	bool acts;   /* zerneld should act, with whatever actuator */
	bool wanted; /* the scheduler should be attached */
	bool timeline;
	u64 attached_ns;
	u64 used_ns;  /* when there was last an ML process, or a client asked to attach */
	u64 keep_ns;  /* how long the scheduler stays attached after that */
	u64 left_ns;  /* when it was last detached for lack of an ML process */
	u64 retry_ns; /* when to try again; 0: no retry is planned */
	u32 nr_restarts;
	int failure; /* the last error that was logged */
	int nice_failure;
	u64 nice_retry_ns;
	struct log_limit attach_errors;
};

static void log_libbpf(const char *text)
{
	log_warning("%s", text);
}

static const char *explanation(int err)
{
	switch (-err) {
	case EPERM:
	case EACCES:
		return "the kernel refuses BPF or perf events: run as root (CAP_BPF, CAP_PERFMON, "
		       "CAP_SYS_ADMIN)";
	case ENOEXEC:
		return "this kernel refuses a BPF program that zerneld cannot do without: the "
		       "lines "
		       "before say which one, and why";
	case ENOSYS:
		return "this kernel lacks a feature that zerneld cannot do without: run `zernel "
		       "doctor`";
	case EBUSY:
		return "another sched_ext scheduler is attached (see "
		       "/sys/kernel/sched_ext/root/ops): stop it first";
	default: return strerror(-err);
	}
}

static void explain_failure(const struct supervisor *s, int err, char *ret, size_t size)
{
	const struct sched_ext_gap *gap = s->kernel ? kernel_scheduler_gap(s->kernel) : NULL;

	if (err != -EOPNOTSUPP || !gap)
		snprintf(ret, size, "%s", explanation(err));
	else if (gap->kind == SCHED_EXT_NO_OPS)
		snprintf(ret, size,
			 "this kernel has no sched_ext: use Linux 6.12 or newer with "
			 "CONFIG_SCHED_CLASS_EXT");
	else if (gap->kind == SCHED_EXT_REFUSED)
		snprintf(ret, size,
			 "this kernel refuses the programs of the scheduler: see journalctl -u "
			 "zerneld");
	else
		snprintf(ret, size, "the BTF of this kernel %s FUNC %s: run `zernel doctor`",
			 gap->kind == SCHED_EXT_ABSENT ? "lacks" : "shows a hidden parameter of",
			 gap->name);
}

static void set_reason(struct supervisor *s, const char *why)
{
	snapshot_set_text(s->status.reason, sizeof(s->status.reason), why, strlen(why));
	s->status.nr_changes++;
}

/* Logs an error only once while retries fail with the same error. */
static void note_failure(struct supervisor *s, const char *what, int err)
{
	bool again = err != -EOPNOTSUPP;
	char why[SNAPSHOT_TEXT_LEN];

	explain_failure(s, err, why, sizeof(why));
	set_reason(s, why);
	s->status.state = SCHED_OFF;
	s->status.limit = CPU_LIMIT_NONE;
	s->retry_ns = again ? time_now_ns() + s->config.retry_s * NSEC_PER_SEC : 0;
	if (s->failure == err)
		return;
	s->failure = err;
	if (again)
		log_event(LOG_LEVEL_ERROR, "kernel-failed",
			  "cannot %s: %s; trying again every %u s", what, why, s->config.retry_s);
	else
		log_event(LOG_LEVEL_WARNING, "kernel-failed",
			  "cannot %s: %s; zerneld continues without the scheduler", what, why);
}

static void on_kernel_event(void *ctx, const struct event *event)
{
	struct supervisor *s = ctx;

	s->on_event(s->ctx, s->kernel, event);
}

/* Any user can cause an error for each mapping. All of them are counted: library_set_count(). */
static void on_attach_error(void *ctx, const struct library *library, int err)
{
	struct supervisor *s = ctx;
	u64 nr_left_out = 0;

	if (!log_limit_allows(&s->attach_errors, library->owner.uid, time_now_ns(), &nr_left_out))
		return;
	log_warning("cannot attach probes to %s of user %u: %s", library->name, library->owner.uid,
		    strerror(-err));
	if (nr_left_out)
		log_warning("%llu earlier lines about probes were left out", nr_left_out);
}

static void on_scan(void *ctx, pid_t pid, enum library_scan_kind kind)
{
	struct supervisor *s = ctx;

	discovery_want(s->discovery, pid, kind);
}

static void on_scan_all(void *ctx)
{
	struct supervisor *s = ctx;

	discovery_want_all(s->discovery);
}

/* The stack of an out-of-memory error is read in the interpreter, which must be known before. */
static void on_torch(void *ctx, pid_t pid)
{
	struct supervisor *s = ctx;

	discovery_want_python(s->discovery, pid);
}

/*
 * A process without an interpreter, or with an unknown one, does not get one later. After any other
 * failure, the next scan of its libraries asks again.
 */
static void on_python(void *ctx, pid_t pid, int pidfd, int err, const struct python_scan *python)
{
	struct supervisor *s = ctx;
	bool is_known = err == -ENOENT || err == -ENOTSUP;

	if (python && s->kernel)
		is_known =
			kernel_set_python(s->kernel, pidfd,
					  &(struct oom_python){ .runtime = python->runtime,
								.offsets = python->offsets }) == 0;
	if (is_known && s->manager)
		library_set_know_torch(manager_library_set(s->manager), pid);
}

static bool on_is_wanted(void *ctx, pid_t pid)
{
	const struct supervisor *s = ctx;

	return discovery_is_wanted(s->discovery, pid);
}

static void poll_manager(struct supervisor *s)
{
	int err = manager_poll(s->manager, 0);

	discovery_tick(s->discovery, time_now_ns());
	if (err < 0)
		log_warning("cannot read events from the kernel: %s", strerror(-err));
}

static void on_maps(void *ctx, u32 events)
{
	poll_manager(ctx);
}

/* Detaches the scheduler first, so that its last observations are still learned. */
static void unload(struct supervisor *s)
{
	if (!s->kernel)
		return;
	kernel_detach_scheduler(s->kernel);
	learning_detach(s->learning);
	loop_remove(s->loop, &s->maps);
	discovery_set_target(s->discovery, NULL);
	if (s->manager && manager_stop(s->manager) < 0) {
		/* The thread of the manager still uses both, so they are not freed. */
		log_warning("the kernel still attaches or detaches probes: zerneld does not wait");
		s->manager = NULL;
		s->kernel = NULL;
		return;
	}
	s->manager = manager_free(s->manager);
	s->kernel = kernel_free(s->kernel);
}

static void set_device_files(struct supervisor *s)
{
	int nr = manager_set_device_files(s->manager, s->config.device_files);

	if (nr > 0)
		log_warning("%d of the files in device_files of section [gpu] are no character "
			    "devices: %s",
			    nr, s->config.device_files);
}

static int connect_kernel(struct supervisor *s, struct kernel *kernel)
{
	static const struct manager_handler handler = {
		.on_event = on_kernel_event,
		.on_attach_error = on_attach_error,
		.scan = on_scan,
		.scan_all = on_scan_all,
		.is_wanted = on_is_wanted,
		.torch = on_torch,
	};
	int err = manager_new(kernel, -1, s->timeline, &handler, s, &s->manager);

	if (err < 0)
		return err;
	discovery_set_target(s->discovery, manager_library_set(s->manager));
	set_device_files(s);
	err = loop_add(s->loop, &s->maps, manager_fd(s->manager), EPOLLIN);
	if (err < 0)
		return err;
	return learning_attach(s->learning, kernel);
}

static int load(struct supervisor *s)
{
	struct kernel *kernel = NULL;
	int err = kernel_new(s->failure ? NULL : log_libbpf, &kernel);

	if (err < 0)
		return err;
	s->kernel = kernel;
	s->status.nr_changes++;
	kernel_set_policy(kernel, &s->config.policy);
	kernel_set_phase_config(kernel, &s->config.phase_detection);
	err = connect_kernel(s, kernel);
	if (err < 0)
		unload(s);
	return err;
}

static void report_exit(const struct sched_exit *sched_exit)
{
	const char *colon = *sched_exit->msg ? ": " : "";

	if (sched_exit_is_clean(sched_exit)) {
		log_event(LOG_LEVEL_INFO, "scheduler-left", "scheduler detached: %s%s%s",
			  sched_exit->reason, colon, sched_exit->msg);
		return;
	}
	log_event(LOG_LEVEL_ERROR, "scheduler-ejected",
		  "scheduler ejected by the kernel: %s%s%s; the kernel's own scheduler is back",
		  sched_exit->reason, colon, sched_exit->msg);
	if (*sched_exit->dump)
		log_text(LOG_LEVEL_ERROR, sched_exit->dump);
}

static void note_exit(struct supervisor *s, const struct sched_exit *sched_exit, bool ejected)
{
	char reason[sizeof(sched_exit->reason) + sizeof(sched_exit->msg) + 2];

	snprintf(reason, sizeof(reason), "%s%s%s", sched_exit->reason, *sched_exit->msg ? ": " : "",
		 sched_exit->msg);
	set_reason(s, reason);
	s->status.state = ejected ? SCHED_EJECTED : SCHED_OFF;
	s->status.limit = CPU_LIMIT_NONE;
	s->status.nr_ejected += ejected;
}

/*
 * Detaches the scheduler, which is attached. Returns false if the kernel has ejected it meanwhile:
 * then it stays detached.
 */
static bool end_scheduler(struct supervisor *s)
{
	const struct sched_exit *sched_exit;

	kernel_detach_scheduler(s->kernel);
	sched_exit = kernel_scheduler_exit(s->kernel);
	if (sched_exit)
		report_exit(sched_exit);
	if (sched_exit && !sched_exit_is_clean(sched_exit)) {
		note_exit(s, sched_exit, true);
		s->wanted = false;
		return false;
	}
	s->status.state = SCHED_OFF;
	set_reason(s, "");
	return true;
}

static bool may_not_attach(const struct supervisor *s)
{
	return s->limits.found.limit != CPU_LIMIT_NONE && s->config.attach != CONFIG_ATTACH_YES;
}

/* Detaches the scheduler or leaves it detached, because a cgroup has a CPU limit. */
static void refuse(struct supervisor *s)
{
	bool is_new = s->status.limit != s->limits.found.limit || s->status.state == SCHED_ATTACHED;
	char why[SNAPSHOT_TEXT_LEN];

	if (s->status.state == SCHED_ATTACHED && !end_scheduler(s))
		return;
	limits_explain(&s->limits, why, sizeof(why));
	set_reason(s, why);
	s->status.state = SCHED_OFF;
	s->status.limit = s->limits.found.limit;
	s->retry_ns = 0;
	s->failure = 0;
	if (is_new)
		log_event(LOG_LEVEL_WARNING, "scheduler-refused",
			  "the scheduler is not attached: %s; zerneld attaches it when no limit "
			  "was found for %u s; see attach in zernel.conf(5)",
			  why, s->config.retry_s);
}

/* Shows a limit that has no effect because the operator demands the scheduler. */
static void note_limit(struct supervisor *s)
{
	char limit[SNAPSHOT_TEXT_LEN], why[SNAPSHOT_TEXT_LEN + 16];

	if (s->status.limit == s->limits.found.limit)
		return;
	s->status.limit = s->limits.found.limit;
	limits_explain(&s->limits, limit, sizeof(limit));
	snprintf(why, sizeof(why), "attach=yes: %s", limit);
	set_reason(s, s->status.limit == CPU_LIMIT_NONE ? "" : why);
	if (s->status.limit != CPU_LIMIT_NONE)
		log_event(LOG_LEVEL_WARNING, "limit-ignored",
			  "%s; the scheduler stays attached, and CPU limits may have no effect",
			  why);
}

/* Whether there is an ML process, or was one lately. */
static bool is_used(struct supervisor *s)
{
	u64 now = time_now_ns();

	if (library_set_nr_processes(manager_library_set(s->manager)))
		s->used_ns = now;
	return s->config.attach != CONFIG_ATTACH_AUTO ||
	       (s->used_ns && now < s->used_ns + s->keep_ns);
}

/* Without an ML process, the scheduler would cost something and help nobody. */
static void wait_for_use(struct supervisor *s)
{
	if (s->status.state == SCHED_ATTACHED) {
		s->left_ns = time_now_ns();
		if (!end_scheduler(s))
			return;
	}
	s->status.state = SCHED_WAITING;
	s->status.limit = CPU_LIMIT_NONE;
	s->retry_ns = 0;
	s->failure = 0;
	set_reason(s, "no ML process; it is attached when one starts");
	log_event(LOG_LEVEL_INFO, "scheduler-waiting", "the scheduler waits for an ML process");
}

static int attach(struct supervisor *s)
{
	int err = -ESTALE;

	if (kernel_has_scheduler(s->kernel))
		limits_look(&s->limits, kernel_honors_limits(s->kernel));
	if (may_not_attach(s)) {
		refuse(s);
		return -EPERM;
	}
	if (kernel_has_scheduler(s->kernel) && !is_used(s)) {
		wait_for_use(s);
		return 0;
	}
	/* Attaching fails with ESTALE if a CPU goes online or offline meanwhile. */
	for (int i = 0; i < ATTACH_TRIES && err == -ESTALE; i++)
		err = kernel_attach_scheduler(s->kernel);
	if (err < 0) {
		note_failure(s, "attach the scheduler", err);
		return err;
	}
	s->status.state = SCHED_ATTACHED;
	s->status.limit = CPU_LIMIT_NONE;
	set_reason(s, "");
	s->attached_ns = time_now_ns();
	s->retry_ns = 0;
	s->failure = 0;
	log_event(LOG_LEVEL_INFO, "scheduler-attached", "scheduler attached");
	note_limit(s);
	return 0;
}

/* Loads the BPF programs if they are not loaded. Attaches the scheduler if it is wanted. */
static int start(struct supervisor *s)
{
	int err = s->kernel ? 0 : load(s);

	s->retry_ns = 0;
	if (err < 0) {
		note_failure(s, "load the BPF programs", err);
		return err;
	}
	return s->wanted ? attach(s) : 0;
}

static bool uses_scheduler(const struct supervisor *s)
{
	return s->config.actuator == CONFIG_ACTUATOR_AUTO ||
	       s->config.actuator == CONFIG_ACTUATOR_SCHED_EXT;
}

static bool wants_nice(const struct supervisor *s)
{
	return s->acts && (s->config.actuator == CONFIG_ACTUATOR_NICE ||
			   (s->config.actuator == CONFIG_ACTUATOR_AUTO &&
			    s->status.state != SCHED_ATTACHED && s->status.state != SCHED_WAITING));
}

static void act_by_nice(struct supervisor *s)
{
	int err;

	if (time_now_ns() < s->nice_retry_ns)
		return;
	err = nice_act(s->nice, s->kernel, s->config.policy.rules_off);
	if (err < 0 && err != s->nice_failure)
		log_event(LOG_LEVEL_ERROR, "nice-failed",
			  "cannot start the nice actuator: %s; trying again every %u s",
			  strerror(-err), s->config.retry_s);
	s->nice_failure = err;
	s->nice_retry_ns = err < 0 ? time_now_ns() + s->config.retry_s * NSEC_PER_SEC : 0;
}

/* Starts, continues or stops the nice actuator. */
static void tend_nice(struct supervisor *s)
{
	enum snapshot_actuator before = s->status.actuator;

	if (wants_nice(s))
		act_by_nice(s);
	else
		nice_act(s->nice, NULL, 0);
	s->status.actuator = s->status.state == SCHED_ATTACHED ? ACTUATOR_SCHED_EXT
			     : nice_is_acting(s->nice)	       ? ACTUATOR_NICE
							       : ACTUATOR_NONE;
	s->status.nr_changes += s->status.actuator != before;
}

static bool may_restart(struct supervisor *s)
{
	s->nr_restarts = time_now_ns() < s->attached_ns + LASTING_NS ? s->nr_restarts + 1 : 0;
	return s->nr_restarts <= MAX_RESTARTS;
}

/* Called when the kernel has detached the scheduler. Restarts it only if the kernel requests it. */
static void on_scheduler_exit(struct supervisor *s, const struct sched_exit *sched_exit)
{
	bool restart = sched_exit_wants_restart(sched_exit);

	report_exit(sched_exit);
	note_exit(s, sched_exit, !sched_exit_is_clean(sched_exit));
	kernel_detach_scheduler(s->kernel);
	if (restart && may_restart(s)) {
		start(s);
		return;
	}
	s->wanted = restart; /* after too many restarts, try again later */
	s->retry_ns = restart ? time_now_ns() + s->config.retry_s * NSEC_PER_SEC : 0;
}

int supervisor_new(const struct supervisor_config *config, struct loop *loop,
		   struct learning *learning, supervisor_event_fn on_event, void *ctx,
		   struct supervisor **ret)
{
	struct supervisor *s = calloc(1, sizeof(*s));
	struct nice *nice = NULL;

	if (!s || nice_new(&nice) < 0) {
		free(s);
		return -ENOMEM;
	}
	*s = (struct supervisor){
		.config = *config,
		.loop = loop,
		.learning = learning,
		.on_event = on_event,
		.ctx = ctx,
		.nice = nice,
		.discovery = config->discovery,
		.acts = config->attach != CONFIG_ATTACH_NO,
		.keep_ns = KEEP_NS,
		.maps = { .on_event = on_maps, .ctx = s, .fd = -EBADF },
	};
	if (s->discovery)
		discovery_add_python(s->discovery, on_python, s);
	s->wanted = s->acts && uses_scheduler(s);
	start(s);
	tend_nice(s);
	*ret = s;
	return 0;
}

struct supervisor *supervisor_free(struct supervisor *s)
{
	if (!s)
		return NULL;
	supervisor_detach(s);
	nice_free(s->nice);
	unload(s);
	limits_done(&s->limits);
	free(s);
	return NULL;
}

/* Detaches the scheduler when a limit appears, and attaches it some time after the last one. */
static void watch_limits(struct supervisor *s)
{
	if (!s->wanted || !s->kernel || !kernel_has_scheduler(s->kernel) ||
	    !limits_tick(&s->limits, kernel_honors_limits(s->kernel)))
		return;
	if (may_not_attach(s))
		refuse(s);
	else if (s->status.state == SCHED_ATTACHED)
		note_limit(s);
	else if (s->status.limit != CPU_LIMIT_NONE &&
		 limits_are_clear(&s->limits, s->config.retry_s))
		start(s);
	else if (s->status.limit != CPU_LIMIT_NONE)
		set_reason(s, "no CPU limit is left: zerneld waits for retry_s seconds");
}

static u64 keep_after(const struct supervisor *s, u64 now)
{
	if (!s->left_ns || now >= s->left_ns + SOON_NS)
		return KEEP_NS;
	return s->keep_ns < KEEP_MAX_NS ? 2 * s->keep_ns : KEEP_MAX_NS;
}

static void watch_use(struct supervisor *s)
{
	if (!s->kernel)
		return;
	if (s->status.state == SCHED_WAITING && is_used(s)) {
		s->keep_ns = keep_after(s, time_now_ns());
		start(s);
	} else if (s->status.state == SCHED_ATTACHED && !is_used(s))
		wait_for_use(s);
}

void supervisor_tick(struct supervisor *s)
{
	const struct sched_exit *sched_exit = NULL;

	if (s->kernel)
		poll_manager(s);
	learning_poll(s->learning);
	if (s->kernel && s->status.state == SCHED_ATTACHED)
		sched_exit = kernel_scheduler_exit(s->kernel);
	if (sched_exit)
		on_scheduler_exit(s, sched_exit);
	else if (s->retry_ns && time_now_ns() >= s->retry_ns)
		start(s);
	watch_limits(s);
	watch_use(s);
	tend_nice(s);
}

struct kernel *supervisor_kernel(const struct supervisor *s)
{
	return s->kernel;
}

struct library_set *supervisor_library_set(const struct supervisor *s)
{
	return s->manager ? manager_library_set(s->manager) : NULL;
}

u64 supervisor_nr_lost_maps(const struct supervisor *s)
{
	return s->kernel ? manager_nr_lost_maps(s->manager) : 0;
}

struct library_counts supervisor_libraries(const struct supervisor *s)
{
	return s->kernel ? manager_libraries(s->manager) : (struct library_counts){};
}

const struct supervisor_status *supervisor_status(const struct supervisor *s)
{
	return &s->status;
}

struct nice_counts supervisor_nice(const struct supervisor *s)
{
	return nice_counts(s->nice);
}

static int act(struct supervisor *s)
{
	int err;

	if (s->config.actuator == CONFIG_ACTUATOR_NONE) {
		set_reason(s, "actuator=none: zerneld only watches");
		return -EPERM;
	}
	s->acts = true;
	s->wanted = uses_scheduler(s);
	if (s->status.state == SCHED_ATTACHED)
		return 0;
	s->nr_restarts = 0;
	s->nice_retry_ns = 0;
	limits_forget(&s->limits);
	err = start(s);
	tend_nice(s);
	if (s->status.actuator != ACTUATOR_NONE)
		return 0;
	return err < 0 ? err : s->nice_failure;
}

int supervisor_attach(struct supervisor *s)
{
	s->used_ns = time_now_ns();
	return act(s);
}

void supervisor_detach(struct supervisor *s)
{
	bool had_reason = s->status.limit != CPU_LIMIT_NONE || s->status.state == SCHED_WAITING;

	s->acts = false;
	s->wanted = false;
	s->status.limit = CPU_LIMIT_NONE;
	if (s->kernel)
		s->retry_ns = 0;
	if (s->status.state == SCHED_ATTACHED)
		end_scheduler(s);
	else if (had_reason)
		set_reason(s, "");
	if (s->status.state == SCHED_WAITING)
		s->status.state = SCHED_OFF;
	tend_nice(s);
}

void supervisor_set_actuator(struct supervisor *s, enum config_actuator actuator)
{
	bool acts = s->acts;

	if (actuator == s->config.actuator)
		return;
	s->config.actuator = actuator;
	/* A reload does not attach an ejected scheduler again. */
	if (s->status.state == SCHED_EJECTED ||
	    (s->status.state == SCHED_ATTACHED && uses_scheduler(s))) {
		tend_nice(s);
		return;
	}
	supervisor_detach(s);
	set_reason(s, "");
	if (acts && actuator != CONFIG_ACTUATOR_NONE)
		act(s);
	s->acts = acts;
}

void supervisor_set_attach(struct supervisor *s, enum config_attach attach)
{
	enum config_attach before = s->config.attach;

	s->config.attach = attach;
	if (attach == before)
		return;
	if (attach == CONFIG_ATTACH_NO)
		supervisor_detach(s);
	else if (s->status.state == SCHED_ATTACHED && may_not_attach(s))
		refuse(s);
	else if (before == CONFIG_ATTACH_NO || s->wanted)
		act(s);
	/* Also with actuator=none, which may change later. */
	s->acts |= before == CONFIG_ATTACH_NO;
}

void supervisor_set_timeline(struct supervisor *s, bool wanted)
{
	s->timeline = wanted;
	s->status.nr_changes++;
	if (s->kernel)
		kernel_set_timeline(s->kernel, wanted);
}

void supervisor_set_policy(struct supervisor *s, const struct sched_policy *policy)
{
	s->config.policy = *policy;
	s->status.nr_changes++;
	if (s->kernel)
		kernel_set_policy(s->kernel, policy);
}

const struct sched_policy *supervisor_policy(const struct supervisor *s)
{
	return &s->config.policy;
}

void supervisor_set_phase_config(struct supervisor *s, const struct phase_config *config)
{
	s->config.phase_detection = *config;
	s->status.nr_changes++;
	if (s->kernel)
		kernel_set_phase_config(s->kernel, config);
}

const struct phase_config *supervisor_phase_config(const struct supervisor *s)
{
	return &s->config.phase_detection;
}

void supervisor_set_device_files(struct supervisor *s, const char *files)
{
	snprintf(s->config.device_files, sizeof(s->config.device_files), "%s", files);
	if (s->kernel)
		set_device_files(s);
}

void supervisor_set_retry(struct supervisor *s, u32 retry_s)
{
	s->config.retry_s = retry_s;
}
