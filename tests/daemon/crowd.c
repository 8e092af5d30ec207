/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A crowd for the campaign of that name: `crowd PROCESSES THREADS EXECS USERS LIBRARY`. Starts
 * processes with threads that sleep, the first USERS of which map LIBRARY as code. Prints a line,
 * and executes /bin/true EXECS times in a second until its standard input ends. Prints how often it
 * did.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (32 << 10)
#define BATCH_MS    50
#define MAP_BYTES   4096

static void *sleep_forever(void *ctx)
{
	for (;;)
		pause();
	return ctx;
}

/* Returns how many threads it has started. */
static int start_threads(int nr)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int i = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	while (i < nr && pthread_create(&thread, &attributes, sleep_forever, NULL) == 0)
		i++;
	return i;
}

static bool map_as_code(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 &&
	       mmap(NULL, MAP_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
}

static int start_processes(int nr, int nr_threads, int nr_users, const char *library, int pipe_fd)
{
	int i;

	for (i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			int made;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			made = start_threads(nr_threads);
			if (i < nr_users && !map_as_code(library))
				perror(library);
			if (write(pipe_fd, &made, sizeof(made)) != sizeof(made))
				_exit(EXIT_FAILURE);
			sleep_forever(NULL);
		}
	}
	return i;
}

static void execute(int nr)
{
	char *const arguments[] = { "true", NULL };
	char *const environment[] = { NULL };

	for (int i = 0; i < nr; i++) {
		pid_t pid;

		if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environment) == 0)
			waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int nr_processes, nr_threads = 0, fds[2], nr_execs;
	long nr_done = 0;
	time_t begin;

	if (argc != 6 || pipe(fds) < 0)
		return 2;
	nr_execs = atoi(argv[3]) * BATCH_MS / 1000;
	nr_processes =
		start_processes(atoi(argv[1]), atoi(argv[2]), atoi(argv[4]), argv[5], fds[1]);
	for (int i = 0, made; i < nr_processes; i++)
		if (read(fds[0], &made, sizeof(made)) == sizeof(made))
			nr_threads += made;
	printf("%d %d\n", nr_processes, nr_threads);
	fflush(stdout);
	begin = time(NULL);
	while (poll(&input, 1, BATCH_MS) == 0) {
		execute(nr_execs);
		nr_done += nr_execs;
	}
	printf("%ld %ld\n", nr_done, (long)(time(NULL) - begin));
	return EXIT_SUCCESS;
}
