/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/privileges.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

static int become(const char *name)
{
	const struct passwd *user;

	errno = 0;
	user = getpwnam(name);
	if (!user)
		return errno ? -errno : -ESRCH;
	if (user->pw_uid == 0)
		return -EPERM;
	if (initgroups(name, user->pw_gid) < 0 ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
		return -errno;
	return 0;
}

/* Needs CAP_SETPCAP. A process without it is limited by no_new_privs, which has the same effect. */
static void empty_bounding_set(void)
{
	for (cap_value_t cap = 0; cap_get_bound(cap) >= 0; cap++)
		if (cap_drop_bound(cap) < 0)
			return;
}

static int clear_capabilities(void)
{
	cap_t none = cap_init();
	int err = 0;

	if (!none || cap_set_proc(none) < 0)
		err = -errno;
	cap_free(none);
	return err;
}

int privileges_drop(const char *user)
{
	int err;

	empty_bounding_set();
	if (cap_reset_ambient() < 0)
		return -errno;
	if (geteuid() == 0 || getuid() == 0) {
		err = become(user);
		if (err < 0)
			return err;
	}
	err = clear_capabilities();
	if (err < 0)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}
