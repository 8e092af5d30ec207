/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/idle.h"

void idle_settle(struct idle_account *account, u64 now)
{
	u32 cause = account->had_data	      ? IDLE_LOADER_OTHER
		    : account->sleeps_on_lock ? IDLE_LOCK
					      : IDLE_OTHER;

	idle_book(account, now);
	if (account->done.pending_ns + account->open.pending_ns < IDLE_PENDING_NS)
		return;
	idle_sums_decide(&account->done, cause);
	idle_sums_decide(&account->open, cause);
}
