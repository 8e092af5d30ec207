/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/idle.h"

void idle_settle(struct idle_account *account, u64 now)
{
	idle_book(account, now);
	if (account->pending_ns < IDLE_PENDING_NS)
		return;
	account->idle_ns[account->had_data	   ? IDLE_LOADER_OTHER
			 : account->sleeps_on_lock ? IDLE_LOCK
						   : IDLE_OTHER] += account->pending_ns;
	account->pending_ns = 0;
}
