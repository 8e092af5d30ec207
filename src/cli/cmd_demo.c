/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zernel demo: a training job on a virtual GPU and, beside it, other people's work, so that
 * somebody without a GPU sees what zerneld sees. It is the lab's scenario "noisy", on two
 * CPUs whatever the machine has. Everything it starts ends with it.
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

/* Where the lab's programs are, from where this one is: in a build tree, and installed. */
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
	char device[64];	 /* the virtual GPU's file; empty: it is the caller's, and stays */
	int signal_fd;		 /* what ends a wait */
	sigset_t former_signals; /* what was blocked before */
};

static int find_programs(struct demo *demo)
{
	char here[PATH_MAX / 2];
	ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
	char *end;

	if (length < 0)
		return -errno;
	here[length] = '\0';
	end = strrchr(here, '/');
	if (!end)
		return -ENOENT;
	end[1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(demo->train, sizeof(demo->train), "%s%s", here, places[i].train);
		snprintf(demo->noise, sizeof(demo->noise), "%s%s", here, places[i].noise);
		snprintf(demo->libraries, sizeof(demo->libraries), "%s%s", here,
			 places[i].libraries);
		if (access(demo->train, X_OK) == 0 && access(demo->noise, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

/* On more CPUs the noise would be no noise, or a lot. Children inherit it. */
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

/* What it prints on its standard output is of no use to anybody here. */
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

/* By its own number, and waited for. How it ended, as waitpid() has it. */
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

/* Until the job is over or somebody wants it to be: 0, or -EINTR; -EAGAIN: so long it was not. */
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

/* --json: the job, instead of the text for people. */
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
		log_warning("zerneld does not answer on %s, and nobody else would see the job: "
			    "systemctl start zerneld",
			    socket);
	if (demo->json) {
		print_result(demo, train);
		fflush(stdout);
		return;
	}
	printf("A training job runs on a virtual GPU for %llu s. After %d s, %d"
	       " processes that only compute join it.\n"
	       "From another terminal:\n"
	       "  zernel top       what it does, all the time\n"
	       "  zernel why       why its GPU is idle\n"
	       "Ctrl-C ends it.\n",
	       demo->seconds, QUIET_SECONDS, NR_HOGS);
	fflush(stdout);
}

/* Alone at first, so that one sees what the noise does to it. */
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
	/* Ranks and loaders die with their parents; then they are ours. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	close(demo->signal_fd);
	if (demo->device[0])
		unlink(demo->device);
	if (err == 0 && status != 0) {
		log_error("the training job failed");
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
		log_error("the programs of the demo are not there: they come with a build of "
			  "Zernel, or are installed in libexec");
		return EXIT_FAILURE;
	}
	err = stay_on_two_cpus();
	if (err < 0)
		log_warning("cannot stay on two CPUs: %s", strerror(-err));
	prepare_environment(&demo);
	err = play(&demo, socket);
	/* To be ended is what it waits for. */
	return err < 0 && err != -EINTR ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = {
	{ "seconds", 'n', "N", "how long (60)" },
	OPTION_SOCKET,
	{},
};

const struct command command_demo = {
	.name = "demo",
	.help = "a training job on a virtual GPU, to try Zernel with",
	.description = "Needs no GPU. The job runs as the caller, beside processes that take its "
		       "CPUs from it, on\n"
		       "two CPUs at most. A running zerneld sees it as any other; all of it ends "
		       "with the command.",
	.json = "print the pid of the job and its timing as JSON",
	.options = command_options,
	.run = run,
};
