/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "property/property.h"

#include "core/idle.h"

#define STEPS 32

/* One random event at `now`. */
static void happen(struct random *r, struct idle_account *account, struct wait_share *share,
		   u64 wait_ns, u64 now)
{
	switch (random_below(r, 9)) {
	case 0: idle_ends(account, now); break;
	case 1: idle_set_gpu(account, random_below(r, IDLE_GPU_NR), now); break;
	case 2: idle_sleeps(account, random_below(r, 2), now); break;
	case 3: idle_set_collective(account, random_below(r, 2), now); break;
	case 4:
		share_book(share, wait_ns, random_below(r, SHARE_NR + 1), now - random_below(r, 50),
			   now);
		break;
	case 5:
		if (account->doing == IDLE_UNDECIDED)
			idle_decide_data(account, share, wait_ns, now);
		break;
	case 6: idle_blocked(account, random_below(r, 50), now); break;
	default: idle_doing(account, random_below(r, IDLE_CAUSE_NR), now); break;
	}
}

static u64 total(const struct idle_account *account)
{
	u64 all = account->busy_ns + account->done.pending_ns + account->open.pending_ns;

	for (u32 i = 0; i < IDLE_CAUSE_NR; i++)
		all += idle_total(account, i);
	return all;
}

/*
 * After any events, the booked time is the time since the first launch, exact to
 * the nanosecond. A reader at any moment sees the same, and sees no cause
 * decrease.
 */
static bool causes_add_up_to_the_elapsed_time_holds(struct random *r)
{
	struct idle_account account = {}, before = {};
	struct wait_share share = {};
	u64 now = 1 + random_below(r, 1000), first = 0, wait_ns = now;

	for (u32 i = 0; i < STEPS; i++) {
		struct idle_account seen;

		now += random_any(r) >> 38;
		if (random_below(r, 4) == 0)
			wait_ns = now;
		happen(r, &account, &share, wait_ns, now);
		if (!first && account.since_ns)
			first = now;
		seen = account;
		idle_settle(&seen, now + random_below(r, 3));
		if (total(&seen) != (first ? seen.since_ns - first : 0))
			return false;
		for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
			if (seen.done.cause_ns[cause] < before.done.cause_ns[cause] ||
			    seen.open.cause_ns[cause] < before.open.cause_ns[cause])
				return false;
		if (seen.blocked_ns < before.blocked_ns ||
		    seen.blocked_ns > seen.open.cause_ns[IDLE_CPU])
			return false;
		before = account;
	}
	return true;
}
PROPERTY(causes_add_up_to_the_elapsed_time, STEPS)

int main(void)
{
	const struct CMUnitTest idle_properties[] = {
		cmocka_unit_test(causes_add_up_to_the_elapsed_time),
	};

	return cmocka_run_group_tests(idle_properties, NULL, NULL);
}
