/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/user.h"
#include <pwd.h>
#include <stdio.h>
#include "core/snapshot.h"

struct user_name user_name(u32 uid)
{
	const struct passwd *user = uid == SNAPSHOT_UID_UNKNOWN ? NULL : getpwuid(uid);
	struct user_name ret;

	if (user)
		snprintf(ret.text, sizeof(ret.text), "%s", user->pw_name);
	else if (uid == SNAPSHOT_UID_UNKNOWN)
		snprintf(ret.text, sizeof(ret.text), "-");
	else
		snprintf(ret.text, sizeof(ret.text), "%u", uid);
	return ret;
}
