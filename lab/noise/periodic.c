/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * periodic: a daemon that wakes up at intervals and does a little work. It reports how
 * late its work was done. A turn that ends after the next one is due skips that one, as
 * a daemon with one timer does, so that a single long wait counts once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "truth/summary.h"
#include "work/burn.h"
#include "work/options.h"

#define TURNS_MAX 1000000

struct periodic {
	double seconds;
	u64 work_us;
	u64 period_us;
	struct burn burn;
};

#define AT(field) offsetof(struct periodic, field)

static const struct option_row options[] = {
	{ "seconds", OPTION_DOUBLE, AT(seconds), 0, NULL, "run for this many seconds" },
	{ "work-us", OPTION_U64, AT(work_us), 1, NULL, "CPU time of a turn" },
	{ "period-us", OPTION_U64, AT(period_us), 1, NULL, "time between the starts of two turns" },
};

struct turns {
	u64 nr;
	u64 *woke_late_ns; /* from the due time until it ran */
	u64 *took_ns;	   /* from the due time until the work was done */
};

static void sleep_until(u64 at_ns)
{
	struct timespec ts = { (time_t)(at_ns / NSEC_PER_SEC), (long)(at_ns % NSEC_PER_SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static int turns_new(u64 nr, struct turns *ret)
{
	*ret = (struct turns){
		.woke_late_ns = calloc(nr, sizeof(u64)),
		.took_ns = calloc(nr, sizeof(u64)),
	};
	return ret->woke_late_ns && ret->took_ns ? 0 : -ENOMEM;
}

static void work(const struct periodic *periodic, u64 nr, struct turns *turns)
{
	u64 period = periodic->period_us * NSEC_PER_USEC;
	u64 due = truth_now_ns() + period;
	u64 end = due + (u64)(periodic->seconds * NSEC_PER_SEC);

	while (due < end && turns->nr < nr) {
		u64 now;

		sleep_until(due);
		turns->woke_late_ns[turns->nr] = truth_now_ns() - due;
		burn_ns(&periodic->burn, periodic->work_us * NSEC_PER_USEC);
		now = truth_now_ns();
		turns->took_ns[turns->nr++] = now - due;
		due += period * ((now - due) / period + 1);
	}
}

static void print(const char *name, u64 *values_ns, u64 nr)
{
	struct truth_quantiles of = truth_quantiles_of(values_ns, nr);

	/* The quantiles sort the values. */
	printf(",\"%s\":{\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}", name, of.p50_ms,
	       of.p99_ms, nr ? (double)values_ns[nr - 1] / NSEC_PER_MSEC : 0);
}

int main(int argc, char **argv)
{
	struct periodic periodic = { .seconds = 5, .work_us = 1000, .period_us = 50000 };
	struct turns turns;
	int operands, r;
	u64 nr;

	r = options_parse("periodic [OPTION...]", options, ARRAY_SIZE(options), argc, argv,
			  &periodic, &operands);
	if (r != 0 || operands != argc)
		return r > 0 ? EXIT_SUCCESS : 2;
	nr = (u64)(periodic.seconds * 1e6 / (double)periodic.period_us) + 1;
	if (nr > TURNS_MAX || turns_new(nr, &turns) < 0) {
		fprintf(stderr, "periodic: too many turns\n");
		return EXIT_FAILURE;
	}
	periodic.burn = burn_calibrate();
	work(&periodic, nr, &turns);
	printf("{\"turns\":%" PRIu64, (uint64_t)turns.nr);
	print("woke_late", turns.woke_late_ns, turns.nr);
	print("took", turns.took_ns, turns.nr);
	printf("}\n");
	free(turns.woke_late_ns);
	free(turns.took_ns);
	return EXIT_SUCCESS;
}
