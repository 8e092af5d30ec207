/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/limits.h"
#include <stdio.h>
#include <string.h>
#include "base/time.h"

/* Time between two scans. A new limit is found within this time plus that of a scan. */
#define INTERVAL_NS	 (5 * NSEC_PER_SEC)
#define CGROUPS_PER_TICK 128
/* Maximum time of a scan that does not wait for ticks. */
#define LOOK_NS		 (200 * NSEC_PER_MSEC)
#define WHERE_LEN	 48

void limits_done(struct limits *limits)
{
	limits->scan = cpu_limits_scan_free(limits->scan);
}

static void keep_result(struct limits *limits, const struct cpu_limits *found)
{
	limits->found = *found;
	limits->scanned_ns = time_now_ns();
	if (found->limit != CPU_LIMIT_NONE)
		limits->clear_ns = 0;
	else if (!limits->clear_ns)
		limits->clear_ns = limits->scanned_ns;
}

static bool begin(struct limits *limits, bool honors_cpu_max)
{
	struct cpu_limits_config config = { .root = "",
					    .honors_cpu_max = honors_cpu_max,
					    .nr_cgroups_max = CPU_LIMITS_CGROUPS_MAX };
	struct cpu_limits nothing = { .limit = CPU_LIMIT_UNVERIFIED, .where = "out of memory" };

	if (cpu_limits_scan_new(&config, &limits->scan) == 0)
		return true;
	keep_result(limits, &nothing);
	return false;
}

/* Returns true at the end of the scan. */
static bool advance(struct limits *limits)
{
	struct cpu_limits found;

	if (!cpu_limits_scan_step(limits->scan, CGROUPS_PER_TICK, &found))
		return false;
	limits->scan = cpu_limits_scan_free(limits->scan);
	keep_result(limits, &found);
	return true;
}

static bool is_recent(const struct limits *limits)
{
	return limits->scanned_ns && time_now_ns() < limits->scanned_ns + INTERVAL_NS;
}

void limits_look(struct limits *limits, bool honors_cpu_max)
{
	struct cpu_limits late = { .limit = CPU_LIMIT_UNVERIFIED, .where = "too slow" };
	u64 end_ns = time_now_ns() + LOOK_NS;

	/* While the next scan is under way, the last one counts. */
	if (is_recent(limits) || (limits->scan && limits->scanned_ns))
		return;
	limits_done(limits);
	if (!begin(limits, honors_cpu_max))
		return;
	while (!advance(limits)) {
		if (time_now_ns() < end_ns)
			continue;
		keep_result(limits, &late);
		return;
	}
}

void limits_forget(struct limits *limits)
{
	limits->scanned_ns = 0;
}

bool limits_tick(struct limits *limits, bool honors_cpu_max)
{
	if (limits->scan)
		return advance(limits);
	if (is_recent(limits))
		return false;
	return !begin(limits, honors_cpu_max) || advance(limits);
}

bool limits_are_clear(const struct limits *limits, u32 seconds)
{
	return limits->clear_ns && time_now_ns() >= limits->clear_ns + seconds * NSEC_PER_SEC;
}

void limits_explain(const struct limits *limits, char *ret, size_t size)
{
	static const char *const formats[CPU_LIMIT_NR] = {
		[CPU_LIMIT_NONE] = "no cgroup has a CPU limit%s%s",
		[CPU_LIMIT_CPU_MAX] = "cgroup %s%s has a CPU limit (cpu.max) that this kernel "
				      "hides from schedulers",
		[CPU_LIMIT_CGROUP_V1] = "cgroup %s%s has a CPU limit of cgroups v1, which the "
					"scheduler cannot keep",
		[CPU_LIMIT_UNVERIFIED] = "cannot check all cgroups for CPU limits: %s%s",
	};
	const char *where = limits->found.where;
	size_t length = strlen(where);

	/* The end of a path says more than its beginning. */
	snprintf(ret, size, formats[limits->found.limit], length > WHERE_LEN ? "..." : "",
		 length > WHERE_LEN ? where + length - WHERE_LEN + strlen("...") : where);
}
