/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/log_limit.h"

bool log_limit_allows(struct log_limit *limit, u32 uid, u64 now_ns, u64 *ret_left_out)
{
	u32 at = 0, free_row = LOG_LIMIT_USERS;

	while (at < LOG_LIMIT_USERS && (!limit->users[at].logged_ns || limit->users[at].uid != uid))
		at++;
	for (u32 i = 0; i < LOG_LIMIT_USERS && at == LOG_LIMIT_USERS; i++)
		if (!limit->users[i].logged_ns ||
		    now_ns >= limit->users[i].logged_ns + LOG_LIMIT_NS)
			free_row = i;
	if (at == LOG_LIMIT_USERS && free_row == LOG_LIMIT_USERS) {
		limit->nr_left_out++;
		return false;
	}
	if (at == LOG_LIMIT_USERS) {
		/* What was left out of another user is not forgotten. */
		at = free_row;
		limit->nr_left_out += limit->users[at].nr_left_out;
		limit->users[at].uid = uid;
	} else if (now_ns < limit->users[at].logged_ns + LOG_LIMIT_NS) {
		limit->users[at].nr_left_out++;
		return false;
	} else {
		limit->nr_left_out += limit->users[at].nr_left_out;
	}
	limit->users[at].logged_ns = now_ns;
	limit->users[at].nr_left_out = 0;
	*ret_left_out = limit->nr_left_out;
	limit->nr_left_out = 0;
	return true;
}
