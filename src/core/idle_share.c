/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/idle_share.h"

static bool subtract(u64 now, u64 before, u64 *ret)
{
	*ret = now - before;
	return now >= before;
}

bool idle_span_between(const struct snapshot_process *then, const struct snapshot_process *now,
		       struct idle_span *ret)
{
	struct idle_span span = {};

	if (!subtract(now->busy_ns, then->busy_ns, &span.busy_ns) ||
	    !subtract(now->blocked_ns, then->blocked_ns, &span.blocked_ns))
		return false;
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		if (!subtract(now->idle_ns[cause], then->idle_ns[cause], &span.idle_ns[cause]) ||
		    !subtract(now->open_ns[cause], then->open_ns[cause], &span.open_ns[cause]))
			return false;
	*ret = span;
	return true;
}

static u64 scale(u64 value, u64 by, u64 of)
{
	return of ? (u64)((unsigned __int128)value * by / of) : 0;
}

static u64 sum(const u64 causes[static IDLE_CAUSE_NR])
{
	u64 total = 0;

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		total += causes[cause];
	return total;
}

/* The account and the span differ by sleeps whose cause was not known at a snapshot. */
static struct gpu_use_bounds idle_by_counter(const struct idle_share *share, u64 wall_ns,
					     const struct gpu_use_bounds *use)
{
	u64 watched_ns = share->watched_ns;
	u64 over_ns = watched_ns > wall_ns ? watched_ns - wall_ns : 0;
	u64 under_ns = wall_ns > watched_ns ? wall_ns - watched_ns : 0;
	u64 busy_min = use->min_ns > under_ns ? use->min_ns - under_ns : 0;
	u64 busy_max = use->max_ns + over_ns;

	return (struct gpu_use_bounds){
		.min_ns = busy_max < watched_ns ? watched_ns - busy_max : 0,
		.max_ns = busy_min < watched_ns ? watched_ns - busy_min : 0,
	};
}

/*
 * Intersects the range with the bounds of the counter. If they do not meet, the truth lies
 * between them; if they are far apart, it is not known.
 */
static void narrow(struct idle_share *share, const struct gpu_use_bounds *idle)
{
	u64 min = share->min_ns > idle->min_ns ? share->min_ns : idle->min_ns;
	u64 max = share->max_ns < idle->max_ns ? share->max_ns : idle->max_ns;

	if (min > max &&
	    min - max > scale(share->watched_ns, IDLE_SHARE_DISAGREES_PERMILLE, 1000)) {
		share->disagrees = true;
		share->counter_ns = idle->min_ns + (idle->max_ns - idle->min_ns) / 2;
		return;
	}
	share->is_measured = min != share->min_ns || max != share->max_ns;
	share->min_ns = min < max ? min : max;
	share->max_ns = min < max ? max : min;
}

/* Divides the middle of the range by cause. */
static void divide(struct idle_share *share, const u64 idle_ns[static IDLE_CAUSE_NR],
		   const u64 open_ns[static IDLE_CAUSE_NR])
{
	u64 middle_ns = share->min_ns + (share->max_ns - share->min_ns) / 2;
	u64 done_ns = sum(idle_ns), may_ns = sum(open_ns);
	u64 found_ns = middle_ns > done_ns ? middle_ns - done_ns : 0;
	u64 sure_ns = middle_ns < done_ns ? middle_ns : done_ns;

	if (found_ns > may_ns)
		found_ns = may_ns;
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		share->cause_ns[cause] = scale(idle_ns[cause], sure_ns, done_ns) +
					 scale(open_ns[cause], found_ns, may_ns);
	share->launching_ns = scale(open_ns[IDLE_CPU], found_ns, may_ns);
	share->idle_ns = sum(share->cause_ns);
}

struct idle_share idle_share_of(const struct idle_span *span, const struct gpu_use_bounds *use)
{
	struct idle_span may = *span;
	struct idle_share share = { .min_ns = sum(span->idle_ns) };
	u64 *computed_ns = &may.open_ns[IDLE_CPU];

	share.watched_ns = span->busy_ns + share.min_ns + sum(span->open_ns);
	*computed_ns -= span->blocked_ns < *computed_ns ? span->blocked_ns : *computed_ns;
	share.max_ns = share.min_ns + sum(may.open_ns);
	if (use) {
		struct gpu_use_bounds idle = idle_by_counter(&share, span->wall_ns, use);

		narrow(&share, &idle);
	}
	divide(&share, span->idle_ns, may.open_ns);
	return share;
}
