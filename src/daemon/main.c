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
#include "daemon/manager.h"

/* How often a running scheduler is looked at: a detach is noticed within this time. */
#define LOOK_INTERVAL_MS 100

/* Restarts in a row, none of which lasted: CPUs that keep coming and going must not keep us busy.
 */
#define MAX_RESTARTS	16
#define LASTING_SECONDS 10

DEFINE_CLEANUP(struct kernel, kernel_free);
DEFINE_CLEANUP(struct manager, manager_free);

enum outcome {
	OUTCOME_STOPPED, /* by a signal */
	OUTCOME_RESTART, /* the kernel asks for a fresh start */
	OUTCOME_FAILED,
};

static void usage(FILE *out)
{
	fputs("Usage: zerneld [--without RULE,...] [--help] [--version]\n"
	      "Runs the zernel scheduler until SIGTERM or SIGINT. Needs root and a kernel\n"
	      "with sched_ext (6.12 or newer).\n"
	      "\n"
	      "  --without RULE,...  leave rules of the policy out, to see what they are worth:\n"
	      "                      feeder, loader, late-loader, spinner, helper, preempt\n",
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
				       const sigset_t *stop_signals)
{
	const struct timespec at_once = {};
	const struct sched_exit *sched_exit;

	while (!(sched_exit = kernel_scheduler_exit(kernel))) {
		if (sigtimedwait(stop_signals, NULL, &at_once) > 0)
			return NULL;
		manager_poll(manager, LOOK_INTERVAL_MS);
	}
	return sched_exit;
}

static enum outcome run_scheduler(const sigset_t *stop_signals, u32 rules_off)
{
	static const struct manager_handler handler = { on_event, on_attach_error };
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = NULL;
	CLEANUP(manager_free_cleanup) struct manager *manager = NULL;
	const struct sched_exit *sched_exit;
	int err;

	err = kernel_new(log_libbpf, rules_off, &kernel);
	if (err == 0)
		err = manager_new(kernel, -1, false, &handler, NULL, &manager);
	if (err == 0)
		err = kernel_attach_scheduler(kernel);
	if (err < 0) {
		explain(err);
		return OUTCOME_FAILED;
	}
	log_info("scheduler attached");

	sched_exit = follow(kernel, manager, stop_signals);
	if (!sched_exit) {
		kernel_detach_scheduler(kernel);
		sched_exit = kernel_scheduler_exit(kernel);
		if (sched_exit)
			report_exit(sched_exit);
		return OUTCOME_STOPPED;
	}
	report_exit(sched_exit);
	return sched_exit_wants_restart(sched_exit) ? OUTCOME_RESTART : OUTCOME_FAILED;
}

/* Rules by the names a person gives them; the bits to switch them off, or -EINVAL. */
static int parse_rules(char *names, u32 *ret)
{
	static const char *const rules[RULE_NR] = {
		[RULE_LATE_LOADER] = "late-loader", [RULE_FEEDER] = "feeder",
		[RULE_LOADER] = "loader",	    [RULE_SPINNER] = "spinner",
		[RULE_HELPER] = "helper",	    [RULE_KIN] = "kin",
		[RULE_PREEMPT] = "preempt",
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

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "without", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{}
	};
	enum outcome outcome = OUTCOME_RESTART;
	sigset_t stop_signals;
	u32 rules_off = 0;
	int option;

	while ((option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (option) {
		case 'w':
			if (parse_rules(optarg, &rules_off) == 0)
				break;
			usage(stderr);
			return 2;
		case 'h': usage(stdout); return EXIT_SUCCESS;
		case 'V': puts("zerneld " ZERNEL_VERSION); return EXIT_SUCCESS;
		default: usage(stderr); return 2;
		}
	}

	sigemptyset(&stop_signals);
	sigaddset(&stop_signals, SIGINT);
	sigaddset(&stop_signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop_signals, NULL);

	for (int tries = 0; outcome == OUTCOME_RESTART && tries <= MAX_RESTARTS; tries++) {
		time_t started = time(NULL);

		outcome = run_scheduler(&stop_signals, rules_off);
		if (time(NULL) - started >= LASTING_SECONDS)
			tries = 0;
	}
	return outcome == OUTCOME_STOPPED ? EXIT_SUCCESS : EXIT_FAILURE;
}
