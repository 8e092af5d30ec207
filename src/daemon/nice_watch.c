/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/nice_watch.h"
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "base/sandbox.h"

/* The watcher runs at once, also on a busy machine. */
#define WATCHER_NICE (-20)

/* A slot is written before it is in use, so zerneld may be killed at any instant. */
struct slot {
	struct nice_thread thread;
	u32 in_use;
	u32 pad;
};

/* Shared with the watcher. */
struct table {
	/*
	 * zerneld holds it as long as it lives, and the watcher waits for it. The kernel releases
	 * it first when it ends a process. A descriptor would be closed among those of BPF programs
	 * and probes, which can take seconds.
	 */
	pthread_mutex_t alive;
	struct slot slots[NICE_THREADS_MAX];
};

struct nice_watch {
	struct table *table;
	u32 next;
	pid_t pid;
};

static void ignore_signals(void)
{
	static const int ignored[] = { SIGHUP,	SIGINT,	 SIGQUIT, SIGTERM,
				       SIGABRT, SIGUSR1, SIGUSR2, SIGPIPE };

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

static void restore_all(const struct slot *slots)
{
	for (u32 i = 0; i < NICE_THREADS_MAX; i++)
		if (__atomic_load_n(&slots[i].in_use, __ATOMIC_ACQUIRE))
			nice_thread_restore(&slots[i].thread);
}

/* Descriptors of BPF programs would keep them loaded after the end of zerneld. */
static int keep_only(int fd)
{
	if (dup2(fd, STDIN_FILENO) < 0 || close_range(STDIN_FILENO + 1, ~0U, 0) < 0)
		return -errno;
	return 0;
}

/* Uses only system calls, because zerneld may have had other threads during the fork. */
static int watcher_main(struct table *table, int fd)
{
	ignore_signals();
	/* Leave the process group to which a terminal sends signals. */
	setsid();
	prctl(PR_SET_NAME, "zerneld-restore", 0, 0, 0);
	/* Without CAP_SYS_NICE, this fails, and the watcher could not restore anything. */
	if (setpriority(PRIO_PROCESS, 0, WATCHER_NICE) < 0 || keep_only(fd) < 0 ||
	    sandbox_keep_capabilities(SANDBOX_CAP(CAP_SYS_NICE)) < 0 ||
	    write(STDIN_FILENO, "", 1) != 1)
		return EXIT_FAILURE;
	pthread_mutex_lock(&table->alive);
	restore_all(table->slots);
	return EXIT_SUCCESS;
}

static int start(struct nice_watch *watch)
{
	int fds[2], err;
	char byte;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		_exit(watcher_main(watch->table, fds[0]));
	}
	err = pid < 0 ? -errno : 0;
	close(fds[0]);
	watch->pid = pid;
	/* It sends a byte when it is ready. */
	if (err == 0 && file_read_fd(fds[1], &byte, 1) != 1)
		err = -EPERM;
	close(fds[1]);
	return err;
}

/* The thread that calls this must live as long as zerneld. */
static int make_table(struct nice_watch *watch)
{
	pthread_mutexattr_t attributes;

	watch->table = mmap(NULL, sizeof(*watch->table), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (watch->table == MAP_FAILED)
		return -errno;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&watch->table->alive, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return -pthread_mutex_lock(&watch->table->alive);
}

int nice_watch_new(struct nice_watch **ret)
{
	CLEANUP(nice_watch_free_cleanup) struct nice_watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	err = make_table(watch);
	if (err == 0)
		err = start(watch);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(watch);
	return 0;
}

struct nice_watch *nice_watch_free(struct nice_watch *watch)
{
	if (!watch)
		return NULL;
	/* It has nothing left to restore, and would not end by itself while it is stopped. */
	if (watch->pid > 0)
		kill(watch->pid, SIGKILL);
	while (watch->pid > 0 && waitpid(watch->pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (watch->table != MAP_FAILED) {
		pthread_mutex_unlock(&watch->table->alive);
		munmap(watch->table, sizeof(*watch->table));
	}
	free(watch);
	return NULL;
}

bool nice_watch_is_alive(struct nice_watch *watch)
{
	int status, changed;

	if (watch->pid <= 0)
		return false;
	changed = waitpid(watch->pid, &status, WNOHANG | WUNTRACED);
	if (changed < 0 || (changed > 0 && !WIFSTOPPED(status)))
		watch->pid = 0;
	return changed == 0;
}

const struct nice_thread *nice_watch_add(struct nice_watch *watch, const struct nice_thread *thread)
{
	for (u32 i = 0; i < NICE_THREADS_MAX; i++) {
		struct slot *slot = &watch->table->slots[watch->next++ % NICE_THREADS_MAX];

		if (slot->in_use)
			continue;
		slot->thread = *thread;
		__atomic_store_n(&slot->in_use, 1, __ATOMIC_RELEASE);
		return &slot->thread;
	}
	return NULL;
}

void nice_watch_remove(struct nice_watch *watch, const struct nice_thread *thread)
{
	struct slot *slot = container_of(thread, struct slot, thread);

	__atomic_store_n(&slot->in_use, 0, __ATOMIC_RELEASE);
}
