/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/starter.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "base/sandbox.h"
#include "base/socket.h"
#include "daemon/programs.h"

/* The user of a program that has no user of its own on this machine. */
#define NOBODY 65534

struct request {
	u32 program;
	u32 starts; /* 0: it is only killed */
};

struct starter {
	int socket;
	pid_t pid;
};

/* A program, as the process knows it. */
struct running {
	char path[PATH_MAX];
	uid_t uid;
	gid_t gid;
	gid_t groups[16];
	int nr_groups;
	int pidfd;
};

/* Installed, or in a build tree. */
static void find_program(const struct program_row *row, struct running *running)
{
	const char *const places[] = { "../" PROGRAM_DIR "/", row->build_dir };
	char relative[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(relative, sizeof(relative), "%s%s", places[i], row->file);
		if (file_beside_program(relative, running->path, sizeof(running->path)) == 0 &&
		    access(running->path, X_OK) == 0)
			return;
	}
}

static void find_user(const struct program_row *row, struct running *running)
{
	const struct passwd *user = getpwnam(row->user);

	running->uid = user ? user->pw_uid : NOBODY;
	running->gid = user ? user->pw_gid : NOBODY;
	running->nr_groups = ARRAY_SIZE(running->groups);
	if (!user ||
	    getgrouplist(row->user, user->pw_gid, running->groups, &running->nr_groups) < 0)
		running->nr_groups = 0;
}

/* The kernel keeps the permitted set over a change of the user, and the ambient set over an exec.
 */
static int keep_over_exec(u64 mask)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};

	if (sandbox_keep_capabilities(mask) < 0 || syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	for (u32 i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		sets[i].inheritable = sets[i].permitted;
	if (syscall(SYS_capset, &header, sets) < 0)
		return -errno;
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (sets[CAP_TO_INDEX(cap)].permitted & CAP_TO_MASK(cap))
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
	return 0;
}

static int become(const struct program_row *row, const struct running *running)
{
	if (geteuid() != 0)
		return sandbox_keep_capabilities(0);
	/* Before the change of the user, which clears the effective set. */
	sandbox_bound_capabilities(row->capabilities);
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ||
	    setgroups((size_t)running->nr_groups, running->groups) < 0 ||
	    setresgid(running->gid, running->gid, running->gid) < 0 ||
	    setresuid(running->uid, running->uid, running->uid) < 0)
		return -errno;
	return keep_over_exec(row->capabilities);
}

static _Noreturn void run(const struct program_row *row, const struct running *running, int socket)
{
	char *const arguments[] = { (char *)row->file, (char *)row->argument, NULL };

	/* The log belongs to zerneld: the vendor's library must not write to it. */
	if (dup2(socket, STDIN_FILENO) < 0 || close_range(1, ~0U, 0) < 0 ||
	    open("/dev/null", O_RDWR) != STDOUT_FILENO || dup(STDOUT_FILENO) != STDERR_FILENO ||
	    sandbox_limit(row->memory_bytes, row->nr_files) < 0 || become(row, running) < 0)
		_exit(EXIT_FAILURE);
	execv(running->path, arguments);
	_exit(EXIT_FAILURE);
}

static void kill_as(const struct running *running)
{
	(void)syscall(SYS_pidfd_send_signal, running->pidfd, SIGKILL, NULL, 0);
}

/* Only a process of the same user may kill the program: CAP_KILL is not kept. */
static void end(struct running *running)
{
	pid_t child;

	if (running->pidfd < 0)
		return;
	child = geteuid() == 0 ? fork() : -1;
	if (child == 0) {
		if (setresuid(running->uid, running->uid, running->uid) == 0)
			kill_as(running);
		_exit(EXIT_SUCCESS);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	else
		kill_as(running);
	close(running->pidfd);
	running->pidfd = -EBADF;
}

/* Processes that ended meanwhile are reaped here. One that does not end is left alone. */
static void begin(const struct program_row *row, struct running *running, int socket)
{
	pid_t pid = fork();

	if (pid == 0)
		run(row, running, socket);
	running->pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -EBADF;
}

static void serve(void)
{
	struct running running[PROGRAM_NR];
	struct request request;
	int fd;

	/* It ends with zerneld. The programs inherit this. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	for (u32 i = 0; i < PROGRAM_NR; i++) {
		running[i] = (struct running){ .pidfd = -EBADF };
		find_program(&program_rows[i], &running[i]);
		find_user(&program_rows[i], &running[i]);
	}
	if (sandbox_keep_capabilities(PROGRAM_CAPABILITIES) < 0)
		_exit(EXIT_FAILURE);
	while (socket_receive(STDIN_FILENO, 0, &request, sizeof(request), &fd) == sizeof(request)) {
		CLEANUP_FD int end_of_program = fd;

		if (request.program >= PROGRAM_NR)
			continue;
		end(&running[request.program]);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (request.starts)
			begin(&program_rows[request.program], &running[request.program],
			      end_of_program);
	}
	/* The kernel does not send the signal of sandbox_enter() to another user. */
	for (u32 i = 0; i < PROGRAM_NR; i++)
		end(&running[i]);
	_exit(EXIT_SUCCESS);
}

int starter_new(struct starter **ret)
{
	CLEANUP_FREE struct starter *starter = calloc(1, sizeof(*starter));

	if (!starter)
		return -ENOMEM;
	starter->pid = sandbox_fork("zerneld-starter", serve, &starter->socket);
	if (starter->pid < 0)
		return starter->pid;
	*ret = TAKE_PTR(starter);
	return 0;
}

struct starter *starter_free(struct starter *starter)
{
	if (!starter)
		return NULL;
	close(starter->socket);
	/* A stopped process would not notice the closed socket. */
	kill(starter->pid, SIGCONT);
	waitpid(starter->pid, NULL, 0);
	free(starter);
	return NULL;
}

int starter_fd(const struct starter *starter)
{
	return starter->socket;
}

int starter_start(struct starter *starter, enum program program, int *ret_fd)
{
	struct request request = { .program = program, .starts = 1 };
	int sockets[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	err = socket_send(starter->socket, MSG_DONTWAIT, &request, sizeof(request), sockets[1]);
	close(sockets[1]);
	if (err < 0 || fcntl(sockets[0], F_SETFL, O_NONBLOCK) < 0) {
		close(sockets[0]);
		return err < 0 ? err : -errno;
	}
	*ret_fd = sockets[0];
	return 0;
}

void starter_kill(struct starter *starter, enum program program)
{
	struct request request = { .program = program };

	(void)socket_send(starter->socket, MSG_DONTWAIT, &request, sizeof(request), -1);
}
