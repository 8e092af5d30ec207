/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * zerneld: loads the kernel side, follows ML processes, attaches the scheduler
 * and stays until it is told to go or the kernel takes the scheduler down.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "collect/kernel.h"
#include "daemon/learning.h"
#include "daemon/manager.h"
#include "export/procdb_store.h"

/* How often a running scheduler is looked at: a detach is noticed within this time. */
#define LOOK_INTERVAL_MS 100

/* Restarts in a row, none of which lasted: CPUs that keep coming and going must not keep us busy.
 */
#define MAX_RESTARTS	16
#define LASTING_SECONDS 10

DEFINE_CLEANUP(struct kernel, kernel_free);
DEFINE_CLEANUP(struct manager, manager_free);
DEFINE_CLEANUP(struct learning, learning_free);

enum outcome {
	OUTCOME_STOPPED, /* by a signal */
	OUTCOME_RESTART, /* the kernel asks for a fresh start */
	OUTCOME_FAILED,
};

#define PROFILES_MIN 64
#define PROFILES_MAX (PREDICTIONS_MAX / 2)

struct settings {
	const char *state;
	u32 nr_profiles;
	struct sched_policy policy;
};

static void usage(FILE *out)
{
	fputs("Usage: zerneld [OPTION...]\n"
	      "Runs the zernel scheduler until SIGTERM or SIGINT. Needs root and a kernel\n"
	      "with sched_ext (6.12 or newer).\n"
	      "\n"
	      "  --without RULE,...  leave rules of the policy out, to see what they are worth:\n"
	      "                      feeder, loader, late-loader, spinner, helper, preempt,\n"
	      "                      tier\n"
	      "  --state DIRECTORY   where what was learned is kept (" PROCDB_STATE_DIRECTORY ")\n"
	      "  --profiles N        kinds of tasks to know, 64 to 65536 (4096)\n"
	      "  --help, --version\n",
	      out);
}

static void log_libbpf(const char *text)
{
	log_warning("%s", text);
}

static void explain(int err)
{
	switch (-err) {
	case EPERM:
		log_error("the kernel refuses to load BPF programs: run as root (CAP_BPF, "
			  "CAP_PERFMON, "
			  "CAP_SYS_ADMIN)");
		break;
	case EOPNOTSUPP:
		log_error("this kernel has no sched_ext: use 6.12 or newer with "
			  "CONFIG_SCHED_CLASS_EXT");
		break;
	case EBUSY:
		log_error("another sched_ext scheduler is attached (see "
			  "/sys/kernel/sched_ext/root/ops): "
			  "stop it first");
		break;
	default:
		log_error("cannot start the scheduler: %s (the lines above say where it failed)",
			  strerror(-err));
	}
}

static void report_exit(const struct sched_exit *sched_exit)
{
	if (sched_exit_is_clean(sched_exit)) {
		log_info("scheduler left: %s%s%s", sched_exit->reason, *sched_exit->msg ? ": " : "",
			 sched_exit->msg);
		return;
	}
	log_error("scheduler ejected by the kernel: %s%s%s; the kernel's own scheduler is back",
		  sched_exit->reason, *sched_exit->msg ? ": " : "", sched_exit->msg);
	if (*sched_exit->dump)
		fputs(sched_exit->dump, stderr);
}

/* What the kernel tells is in its maps as well: nothing is kept of it yet. */
static void on_event(void *ctx, const struct event *event)
{
}

static void on_attach_error(void *ctx, const struct library *library, int err)
{
	log_warning("cannot follow calls of %s: %s", library->name, strerror(-err));
}

/* Follows ML processes until a signal of `stop_signals` or the end of the scheduler. */
static const struct sched_exit *follow(struct kernel *kernel, struct manager *manager,
				       struct learning *learning, const sigset_t *stop_signals)
{
	const struct timespec at_once = {};
	const struct sched_exit *sched_exit;

	while (!(sched_exit = kernel_scheduler_exit(kernel))) {
		if (sigtimedwait(stop_signals, NULL, &at_once) > 0)
			return NULL;
		manager_poll(manager, LOOK_INTERVAL_MS);
		learning_poll(learning);
	}
	return sched_exit;
}

/* From one attach of the scheduler to its end. */
static enum outcome run_scheduler(struct kernel *kernel, struct manager *manager,
				  struct learning *learning, const sigset_t *stop_signals)
{
	const struct sched_exit *sched_exit;
	int err = kernel_attach_scheduler(kernel);

	if (err == -ESTALE)
		return OUTCOME_RESTART;
	if (err < 0) {
		explain(err);
		return OUTCOME_FAILED;
	}
	log_info("scheduler attached");

	sched_exit = follow(kernel, manager, learning, stop_signals);
	kernel_detach_scheduler(kernel);
	if (sched_exit) {
		report_exit(sched_exit);
		return sched_exit_wants_restart(sched_exit) ? OUTCOME_RESTART : OUTCOME_FAILED;
	}
	sched_exit = kernel_scheduler_exit(kernel);
	if (sched_exit)
		report_exit(sched_exit);
	return OUTCOME_STOPPED;
}

/* Loads once; a CPU that comes or goes costs no more than another attach. */
static enum outcome run(const struct settings *settings, struct learning *learning,
			const sigset_t *stop_signals)
{
	static const struct manager_handler handler = { on_event, on_attach_error };
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = NULL;
	CLEANUP(manager_free_cleanup) struct manager *manager = NULL;
	enum outcome outcome = OUTCOME_RESTART;
	int err;

	err = kernel_new(log_libbpf, &kernel);
	if (err == 0)
		err = manager_new(kernel, -1, false, &handler, NULL, &manager);
	if (err == 0)
		err = learning_attach(learning, kernel);
	if (err < 0) {
		explain(err);
		return OUTCOME_FAILED;
	}
	kernel_set_policy(kernel, &settings->policy);
	for (int tries = 0; outcome == OUTCOME_RESTART && tries <= MAX_RESTARTS; tries++) {
		time_t started = time(NULL);

		outcome = run_scheduler(kernel, manager, learning, stop_signals);
		if (time(NULL) - started >= LASTING_SECONDS)
			tries = 0;
	}
	learning_detach(learning);
	return outcome;
}

/* Rules by the names a person gives them; the bits to switch them off, or -EINVAL. */
static int parse_rules(char *names, u32 *ret)
{
	static const char *const rules[RULE_NR] = {
		[RULE_LATE_LOADER] = "late-loader", [RULE_FEEDER] = "feeder",
		[RULE_LOADER] = "loader",	    [RULE_SPINNER] = "spinner",
		[RULE_HELPER] = "helper",	    [RULE_KIN] = "kin",
		[RULE_PREEMPT] = "preempt",	    [RULE_TIER] = "tier",
	};
	u32 bits = 0, i;

	for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		for (i = 0; i < RULE_NR && strcmp(name, rules[i]) != 0; i++)
			;
		if (i == RULE_NR)
			return -EINVAL;
		bits |= 1U << i;
	}
	*ret = bits;
	return 0;
}

static int parse_number(const char *text, u32 min, u32 max, u32 *ret)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		return -EINVAL;
	*ret = (u32)value;
	return 0;
}

/* 0 to go on, -EINVAL when it makes no sense, 1 when there is nothing more to do. */
static int parse_options(int argc, char **argv, struct settings *settings)
{
	static const struct option options[] = {
		{ "without", required_argument, NULL, 'w' },
		{ "state", required_argument, NULL, 's' },
		{ "profiles", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{}
	};
	int option, err = 0;

	while (err == 0 && (option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (option) {
		case 'w': err = parse_rules(optarg, &settings->policy.rules_off); break;
		case 's': settings->state = optarg; break;
		case 'p':
			err = parse_number(optarg, PROFILES_MIN, PROFILES_MAX,
					   &settings->nr_profiles);
			break;
		case 'h': usage(stdout); return 1;
		case 'V': puts("zerneld " ZERNEL_VERSION); return 1;
		default: err = -EINVAL;
		}
	}
	if (err < 0)
		usage(stderr);
	return err;
}

int main(int argc, char **argv)
{
	CLEANUP(learning_free_cleanup) struct learning *learning = NULL;
	struct settings settings = {
		.state = PROCDB_STATE_DIRECTORY,
		.nr_profiles = PROCDB_CONFIG_DEFAULT.capacity,
		.policy = SCHED_POLICY_DEFAULT,
	};
	sigset_t stop_signals;
	int err = parse_options(argc, argv, &settings);

	if (err != 0)
		return err < 0 ? 2 : EXIT_SUCCESS;
	sigemptyset(&stop_signals);
	sigaddset(&stop_signals, SIGINT);
	sigaddset(&stop_signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop_signals, NULL);

	err = learning_new(settings.state, settings.nr_profiles, &learning);
	if (err < 0) {
		explain(err);
		return EXIT_FAILURE;
	}
	return run(&settings, learning, &stop_signals) == OUTCOME_STOPPED ? EXIT_SUCCESS
									  : EXIT_FAILURE;
}
