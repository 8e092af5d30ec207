/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/run.h"
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/resource.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/signals.h"
#include "serve/gateway.h"
#include "serve/privileges.h"
#if HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#else
#define sd_notify(unset, state) ((void)(state))
#endif

/* Descriptors other than clients: listeners, zerneld, and descriptors that libraries open. */
#define DESCRIPTORS_SPARE 64

/* Raises the limit of open files for all clients. Returns the number of clients that fit. */
static u32 raise_limit(void)
{
	struct rlimit limit = {};
	rlim_t wanted = CONNECTIONS_MAX + DESCRIPTORS_SPARE;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != wanted) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= wanted)
		return CONNECTIONS_MAX;
	log_warning("the limit of open files is %llu, so fewer clients can connect; raise it "
		    "with ulimit -n or LimitNOFILE=",
		    (unsigned long long)limit.rlim_cur);
	return limit.rlim_cur > DESCRIPTORS_SPARE ? (u32)limit.rlim_cur - DESCRIPTORS_SPARE : 1;
}

static int drop_privileges(const char *user)
{
	int err = privileges_drop(user);

	if (err == -ESRCH)
		log_error("cannot change to user %s: the user does not exist; create it, or choose "
			  "another user with --user",
			  user);
	else if (err == -EPERM)
		log_error("cannot run as root, or cannot drop root privileges; choose an "
			  "unprivileged user with --user");
	else if (err < 0)
		log_error("cannot drop privileges: %s", strerror(-err));
	return err;
}

static void take_signal(struct watch *watch)
{
	struct gateway *gateway = watch->userdata;

	for (int number; (number = signals_next(watch->fd));) {
		if (number == SIGHUP)
			gateway_reload(gateway);
		else
			gateway->stop = true;
	}
}

/* Adds all descriptors to the loop. */
static int watch_all(struct gateway *gateway, int signal_fd, const int *fds, size_t nr,
		     struct watch *watches)
{
	int err;

	watches[nr] = (struct watch){ .fd = signal_fd, .userdata = gateway, .ready = take_signal };
	err = watch_add(gateway, &watches[nr]);
	for (size_t i = 0; i < nr && err == 0; i++) {
		listen_watch(gateway, fds[i], &watches[i]);
		err = watch_add(gateway, &watches[i]);
	}
	if (err == 0)
		err = upstream_new(gateway, &gateway->upstream);
	if (err < 0)
		log_error("cannot set up the event loop: %s", strerror(-err));
	return err;
}

/* Serves until a signal stops it. The watches must exist as long as the loop. */
static int serve(struct gateway *gateway, int signal_fd, const int *fds, size_t nr,
		 struct watch *watches)
{
	int err = gateway_start(gateway);

	if (err < 0)
		return err;
	err = watch_all(gateway, signal_fd, fds, nr, watches);
	if (err < 0)
		return err;
	sd_notify(0, "READY=1");
	while (!gateway->stop)
		uv_run(&gateway->loop, UV_RUN_ONCE);
	log_info("stopping");
	return 0;
}

/*
 * Each snapshot needs some large blocks for a short time. The C library would keep the first of
 * them for later and put the next ones around it. A fixed bound makes it return each to the kernel.
 */
#define LARGE_BLOCK_BYTES (256 << 10)

int serve_run(const struct serve_config *config)
{
	struct gateway gateway = { .config = config, .bodies.metrics = config->metrics };
	struct watch watches[SERVE_ADDRESSES_MAX + 1];
	int fds[SERVE_ADDRESSES_MAX], err;
	CLEANUP_FD int signal_fd = -EBADF;
	size_t nr_fds;

	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	/* Signals are blocked first, so that a signal during startup waits for the loop. */
	err = signals_open(NULL, &signal_fd, NULL);
	if (err < 0) {
		log_error("cannot wait for signals: %s", strerror(-err));
		return err;
	}
	gateway.max_connections = raise_limit();
	err = listen_open(config, fds, &nr_fds);
	if (err < 0)
		return err;
	err = drop_privileges(config->user);
	if (err == 0)
		err = serve(&gateway, TAKE_FD(signal_fd), fds, nr_fds, watches);
	sd_notify(0, "STOPPING=1");
	gateway_end(&gateway);
	return err;
}
