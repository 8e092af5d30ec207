/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/units.h"
#include <stdio.h>
#include <time.h>

struct unit {
	double size;
	const char *name;
};

/* Uses the largest unit that is not above the value. The last unit is the base unit. */
static struct unit_text in_units(double value, const struct unit *units)
{
	struct unit_text ret;
	const struct unit *unit = units;

	while (unit[1].name && value < unit->size)
		unit++;
	snprintf(ret.text, sizeof(ret.text), "%.*f%s%s", unit->size > 1 && value > 0 ? 1 : 0,
		 value / unit->size, *unit->name ? " " : "", unit->name);
	return ret;
}

struct unit_text unit_bytes(u64 bytes)
{
	static const struct unit units[] = { { 1099511627776.0, "TiB" },
					     { 1073741824.0, "GiB" },
					     { 1048576.0, "MiB" },
					     { 1024.0, "KiB" },
					     { 1.0, "B" },
					     {} };

	return in_units((double)bytes, units);
}

struct unit_text unit_ns(u64 ns)
{
	static const struct unit units[] = {
		{ 3600e9, "h" }, { 60e9, "min" }, { 1e9, "s" }, { 1e6, "ms" },
		{ 1e3, "us" },	 { 1.0, "ns" },	  {},
	};

	return in_units((double)ns, units);
}

struct unit_text unit_count(u64 number)
{
	static const struct unit units[] = { { 1e9, "G" }, { 1e6, "M" }, { 1.0, "" }, {} };

	return in_units((double)number, units);
}

struct unit_text unit_age(u64 seconds)
{
	static const struct {
		u64 seconds;
		const char *name;
	} units[] = {
		{ 86400, "d" },
		{ 3600, "h" },
		{ 60, "min" },
		{ 1, "s" },
	};
	struct unit_text ret;
	u32 i = 0;

	while (i < 3 && seconds < 2 * units[i].seconds)
		i++;
	snprintf(ret.text, sizeof(ret.text), "%llu %s", seconds / units[i].seconds, units[i].name);
	return ret;
}

struct unit_text unit_local_time(u64 ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct unit_text ret = {};
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(ret.text, sizeof(ret.text), "%F %T", &tm);
	return ret;
}
