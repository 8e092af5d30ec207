/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/run.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "serve/gateway.h"
#include "serve/privileges.h"
#if HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#else
#define sd_notify(unset, state) ((void)(state))
#endif

/* Descriptors beside those of clients: listeners, zerneld, what libraries open. */
#define DESCRIPTORS_SPARE 64

/* Room for all clients, or as much as this process may have. */
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
	log_warning("only %llu descriptors are allowed, so fewer clients are served",
		    (unsigned long long)limit.rlim_cur);
	return limit.rlim_cur > DESCRIPTORS_SPARE ? (u32)limit.rlim_cur - DESCRIPTORS_SPARE : 1;
}

static int drop_privileges(const char *user)
{
	int err = privileges_drop(user);

	if (err == -ESRCH)
		log_error("cannot become user %s: there is no such user; make it, or name "
			  "another one with --user",
			  user);
	else if (err == -EPERM)
		log_error("cannot run as root or drop what root may do: name an ordinary user "
			  "with --user");
	else if (err < 0)
		log_error("cannot drop privileges: %s", strerror(-err));
	return err;
}

static void take_signal(struct watch *watch)
{
	struct gateway *gateway = watch->userdata;
	struct signalfd_siginfo info;

	while (read(watch->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			gateway_reload(gateway);
		else
			gateway->stop = true;
	}
}

/* Before anybody can know that this process is there: signals wait for the loop. */
static void block_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGHUP);
	sigprocmask(SIG_BLOCK, ret, NULL);
}

static int watch_signals(struct gateway *gateway, const sigset_t *signals, struct watch *ret)
{
	int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	*ret = (struct watch){ .fd = fd, .userdata = gateway, .ready = take_signal };
	return watch_add(gateway, ret);
}

/* All that the loop looks at. */
static int watch_all(struct gateway *gateway, const sigset_t *signals, const int *fds, size_t nr,
		     struct watch *watches)
{
	int err = watch_signals(gateway, signals, &watches[nr]);

	for (size_t i = 0; i < nr && err == 0; i++) {
		listen_watch(gateway, fds[i], &watches[i]);
		err = watch_add(gateway, &watches[i]);
	}
	if (err == 0)
		err = upstream_new(gateway, &gateway->upstream);
	if (err < 0)
		log_error("cannot set up the loop: %s", strerror(-err));
	return err;
}

int serve_run(const struct serve_config *config)
{
	struct gateway gateway = { .config = config };
	struct watch watches[SERVE_ADDRESSES_MAX + 1];
	int fds[SERVE_ADDRESSES_MAX], err;
	sigset_t signals;
	size_t nr_fds;

	block_signals(&signals);
	gateway.max_connections = raise_limit();
	err = listen_open(config, fds, &nr_fds);
	if (err < 0)
		return err;
	err = drop_privileges(config->user);
	if (err == 0)
		err = gateway_start(&gateway);
	if (err == 0)
		err = watch_all(&gateway, &signals, fds, nr_fds, watches);
	if (err == 0)
		sd_notify(0, "READY=1");
	while (err == 0 && !gateway.stop)
		uv_run(&gateway.loop, UV_RUN_ONCE);
	if (err == 0)
		log_info("stopping");
	sd_notify(0, "STOPPING=1");
	gateway_end(&gateway);
	return err;
}
