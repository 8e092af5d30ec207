/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zernel demo: runs a training job on a virtual GPU and competing processes, so that a user
 * without a GPU can try Zernel. This is the lab's scenario "noisy", limited to two CPUs on any
 * machine. All processes that the demo starts end with it.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/command.h"
#include "cli/result.h"
#include "ipc/client.h"

#define SECONDS_DEFAULT 60
#define SECONDS_MAX	86400
#define QUIET_SECONDS	5
#define NR_CPUS		2
#define NR_HOGS		8

/* Paths of the lab's programs relative to this program: in a build tree, and installed. */
static const struct place {
	const char *train, *noise, *libraries;
} places[] = {
	{ "../../lab/train/train", "../../lab/noise/noise", "../../lab/vgpu" },
	{ "../" DEMO_DIR "/train", "../" DEMO_DIR "/noise", "../" DEMO_DIR },
};

struct demo {
	char train[PATH_MAX], noise[PATH_MAX], libraries[PATH_MAX];
	u64 seconds;
	bool json;
	char device[64]; /* file of the virtual GPU; empty: the caller set it and keeps it */
	int signal_fd;	 /* a signal ends the wait */
	sigset_t former_signals; /* signal mask before the demo, for children */
};

static int find_programs(struct demo *demo)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const struct place *place = &places[i];

		if (file_beside_program(place->train, demo->train, sizeof(demo->train)) == 0 &&
		    file_beside_program(place->noise, demo->noise, sizeof(demo->noise)) == 0 &&
		    file_beside_program(place->libraries, demo->libraries,
					sizeof(demo->libraries)) == 0 &&
		    access(demo->train, X_OK) == 0 && access(demo->noise, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

/* The noise is sized for two CPUs. Children inherit the affinity. */
static int stay_on_two_cpus(void)
{
	cpu_set_t all, some;

	CPU_ZERO(&some);
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return -errno;
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < NR_CPUS; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &some);
	return sched_setaffinity(0, sizeof(some), &some) < 0 ? -errno : 0;
}

static void prepare_environment(struct demo *demo)
{
	setenv("LD_LIBRARY_PATH", demo->libraries, 1);
	if (getenv("VGPU_SHM"))
		return;
	snprintf(demo->device, sizeof(demo->device), "/dev/shm/zernel-demo-%d", getpid());
	setenv("VGPU_SHM", demo->device, 1);
}

/* Discards the standard output of the program. */
static int start(const struct demo *demo, const char *const *words, pid_t *ret)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		signals_restore(&demo->former_signals);
		if (!freopen("/dev/null", "w", stdout))
			_exit(EXIT_FAILURE);
		execv(words[0], (char *const *)words);
		_exit(EXIT_FAILURE);
	}
	if (pid < 0)
		return -errno;
	*ret = pid;
	return 0;
}

/* Terminates the process, waits for it, and returns its waitpid() status. */
static int stop(pid_t pid)
{
	int status = 0;

	if (pid <= 0)
		return 0;
	kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* 0: the job ended; -EINTR: a signal asks to stop; -EAGAIN: the job still runs after `seconds`. */
static int wait_for(pid_t job, int signal_fd, int seconds)
{
	struct pollfd poll_fd = { .fd = signal_fd, .events = POLLIN };
	siginfo_t info;

	for (;;) {
		int n = poll(&poll_fd, 1, seconds * 1000), number;

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EAGAIN;
		number = signals_next(signal_fd);
		if (number && number != SIGCHLD)
			return -EINTR;
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)job, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid == job)
			return 0;
	}
}

/* --json: prints the job instead of the text. */
static int print_result(const struct demo *demo, pid_t train)
{
	const struct result_field fields[] = {
		{ "pid", .number = (u64)train },
		{ "seconds", .number = demo->seconds },
		{ "quiet_seconds", .number = QUIET_SECONDS },
		{ "hogs", .number = NR_HOGS },
		{},
	};

	return result_print(fields);
}

static void explain(const char *socket, const struct demo *demo, pid_t train)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;

	if (client_connect(socket, &client) < 0)
		log_warning("zerneld does not answer on %s, so no command can show the job. "
			    "Start it with: systemctl start zerneld",
			    socket);
	if (demo->json) {
		print_result(demo, train);
		fflush(stdout);
		return;
	}
	printf("A training job runs on a virtual GPU for %llu s. After %d s, %d"
	       " processes that only compute compete with it.\n"
	       "Run in another terminal:\n"
	       "  zernel top       show what the job does\n"
	       "  zernel why       explain why its GPU is idle\n"
	       "Press Ctrl-C to stop.\n",
	       demo->seconds, QUIET_SECONDS, NR_HOGS);
	fflush(stdout);
}

/* The job runs alone at first, so that the effect of the noise is visible. */
static int run_both(const struct demo *demo, const char *socket, pid_t *ret_train, pid_t *ret_noise)
{
	char seconds[24], hogs[16];
	const char *const noise_words[] = { demo->noise, "hogs", hogs, NULL };
	/* clang-format off */
	const char *const train_words[] = {
		demo->train, "--launches", "20", "--kernel-us", "1000", "--optimizer-us", "1000",
		"--sync", "block", "--loaders", "2", "--load-cpu-us", "14000",
		"--seconds", seconds, NULL,
	};
	/* clang-format on */
	int err;

	snprintf(seconds, sizeof(seconds), "%llu", demo->seconds);
	snprintf(hogs, sizeof(hogs), "%d", NR_HOGS);
	err = start(demo, train_words, ret_train);
	if (err < 0)
		return err;
	explain(socket, demo, *ret_train);
	err = wait_for(*ret_train, demo->signal_fd, QUIET_SECONDS);
	if (err != -EAGAIN)
		return err;
	err = start(demo, noise_words, ret_noise);
	return err < 0 ? err : wait_for(*ret_train, demo->signal_fd, 2 * SECONDS_MAX);
}

static int play(struct demo *demo, const char *socket)
{
	static const int also[] = { SIGCHLD, 0 };
	pid_t noise = 0, train = 0;
	int err = signals_open(also, &demo->signal_fd, &demo->former_signals), status;

	if (err < 0)
		return err;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	err = run_both(demo, socket, &train, &noise);
	status = stop(train);
	stop(noise);
	/* Ranks and loaders end with their parents. The subreaper waits for them. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	close(demo->signal_fd);
	if (demo->device[0])
		unlink(demo->device);
	if (err == 0 && status != 0) {
		log_error("the training job of the demo failed; its messages are above");
		err = -ECHILD;
	}
	return err;
}

static int parse(struct command_call *call, struct demo *demo, const char **ret_socket)
{
	int option, err = 0;

	while (err == 0 && (option = command_next(call)) != -1) {
		switch (option) {
		case 's': *ret_socket = optarg; break;
		case 'n': err = command_number(call, 1, SECONDS_MAX, &demo->seconds); break;
		default: return -EINVAL;
		}
	}
	demo->json = call->json;
	return err < 0 ? err : command_operands(call, 0, 0);
}

static int run(struct command_call *call)
{
	const char *socket = PROTOCOL_SOCKET;
	struct demo demo = { .seconds = SECONDS_DEFAULT };
	int err;

	if (parse(call, &demo, &socket) < 0)
		return COMMAND_MISUSED;
	if (find_programs(&demo) < 0) {
		log_error("the demo programs train and noise are not installed: install them, "
			  "or run zernel from a build directory");
		return EXIT_FAILURE;
	}
	err = stay_on_two_cpus();
	if (err < 0)
		log_warning("cannot limit the demo to two CPUs: %s", strerror(-err));
	prepare_environment(&demo);
	err = play(&demo, socket);
	/* A signal is the usual end of the demo. */
	return err < 0 && err != -EINTR ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = {
	{ "seconds", 'n', "N", "stop after N seconds (default: 60)" },
	OPTION_SOCKET,
	{},
};

const struct command command_demo = {
	.name = "demo",
	.help = "run a training job on a virtual GPU, to try Zernel",
	.description = "Needs no GPU. The job runs as the calling user, on at most two CPUs. After "
		       "some seconds,\n"
		       "processes that only compute compete with it for these CPUs. A running "
		       "zerneld sees the\n"
		       "job like any other job. All processes of the demo end with the command.",
	.json = "print the pid of the job and its timing as JSON",
	.options = command_options,
	.run = run,
};
