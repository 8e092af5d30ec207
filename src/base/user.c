/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/user.h"
#include <pwd.h>
#include <stdio.h>

#define NO_USER (~0U)

struct user_name user_name(u32 uid)
{
	const struct passwd *user = uid == NO_USER ? NULL : getpwuid(uid);
	struct user_name ret;

	if (user)
		snprintf(ret.text, sizeof(ret.text), "%s", user->pw_name);
	else if (uid == NO_USER)
		snprintf(ret.text, sizeof(ret.text), "-");
	else
		snprintf(ret.text, sizeof(ret.text), "%u", uid);
	return ret;
}
