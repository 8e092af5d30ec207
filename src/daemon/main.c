/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zerneld: loads the BPF programs, follows ML processes, attaches the scheduler and answers
 * clients on a Unix socket until a signal stops it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/caps.h"
#include "daemon/daemon.h"

/* Makes the log and the notifications behave as if started from a terminal. */
static void leave_service_manager(void)
{
	unsetenv("JOURNAL_STREAM");
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
}

/* The probes of a library can need 30 descriptors, or 500 before Linux 6.6. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * While khugepaged makes a huge page, the process cannot fault, and khugepaged has the lowest
 * priority: beside CPU hogs, the loop would stop for most of a second. All processes inherit it.
 */
static void refuse_huge_pages(void)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

int main(int argc, char **argv)
{
	CLEANUP(starter_free_cleanup) struct starter *starter = NULL;
	CLEANUP(daemon_free_cleanup) struct daemon *daemon = NULL;
	struct options options;
	int err = options_parse(argc, argv, &options);

	if (err != 0)
		return err < 0 ? 2 : EXIT_SUCCESS;
	log_start_service(options.log_level);
	if (options.foreground)
		leave_service_manager();
	refuse_huge_pages();
	/* First, so that the process has nothing of zerneld: no file, no thread and no memory. */
	err = starter_new(&starter);
	if (err < 0) {
		log_error("cannot start a process: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	raise_file_limit();
	if (daemon_new(&options, starter, &daemon) < 0)
		return EXIT_FAILURE;
	err = caps_drop();
	if (err < 0) {
		log_error("cannot drop capabilities: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	return daemon_run(daemon) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
