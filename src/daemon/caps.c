/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/caps.h"
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include "base/cleanup.h"

static const struct {
	cap_value_t value;
	const char *name;
	const char *reason;
} kept[] = {
	{ CAP_BPF, "CAP_BPF",
	  "reads and writes BPF maps, attaches BPF programs, loads them later if the first attempt "
	  "failed" },
	{ CAP_PERFMON, "CAP_PERFMON",
	  "attaches probes to GPU libraries, is notified of every mapping of code" },
	{ CAP_SYS_NICE, "CAP_SYS_NICE",
	  "attaches the scheduler as a real-time task, which a busy machine cannot delay; sets "
	  "nice "
	  "values of threads" },
};
#define NR_KEPT ARRAY_SIZE(kept)

static void cap_free_cleanup(cap_t *caps)
{
	cap_free(*caps);
}

static bool is_kept(cap_value_t value)
{
	for (size_t i = 0; i < NR_KEPT; i++)
		if (kept[i].value == value)
			return true;
	return false;
}

/* Without CAP_SETPCAP, the kernel refuses this. Then the bounding set matters little. */
static void drop_bounding(void)
{
	for (cap_value_t value = 0; cap_get_bound(value) >= 0; value++)
		if (!is_kept(value))
			cap_drop_bound(value);
}

int caps_drop(void)
{
	CLEANUP(cap_free_cleanup) cap_t had = cap_get_proc(), caps = cap_init();

	if (!had || !caps)
		return -errno;
	drop_bounding();
	for (size_t i = 0; i < NR_KEPT; i++) {
		cap_flag_value_t permitted = CAP_CLEAR;

		if (cap_get_flag(had, kept[i].value, CAP_PERMITTED, &permitted) < 0 ||
		    permitted != CAP_SET)
			continue;
		if (cap_set_flag(caps, CAP_PERMITTED, 1, &kept[i].value, CAP_SET) < 0 ||
		    cap_set_flag(caps, CAP_EFFECTIVE, 1, &kept[i].value, CAP_SET) < 0)
			return -errno;
	}
	if (cap_reset_ambient() < 0 || cap_set_proc(caps) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

void caps_print(FILE *out)
{
	for (size_t i = 0; i < NR_KEPT; i++)
		fprintf(out, "%-22s  %s\n", kept[i].name, kept[i].reason);
}
