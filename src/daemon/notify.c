/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/notify.h"
#include "base/time.h"

#if HAVE_SYSTEMD
#include <stdint.h>
#include <systemd/sd-daemon.h>
#include <time.h>

u64 notify_watchdog_ns(void)
{
	uint64_t us;

	/* sd_watchdog_enabled(3) recommends half of the interval. */
	return sd_watchdog_enabled(0, &us) > 0 ? us * NSEC_PER_USEC / 2 : 0;
}

void notify_ready(void)
{
	sd_notify(0, "READY=1");
}

void notify_reloading(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", time_now_ns() / NSEC_PER_USEC);
}

void notify_stopping(void)
{
	sd_notify(0, "STOPPING=1");
}

void notify_alive(void)
{
	sd_notify(0, "WATCHDOG=1");
}

void notify_status(const char *text)
{
	sd_notifyf(0, "STATUS=%s", text);
}
#else
u64 notify_watchdog_ns(void)
{
	return 0;
}

void notify_ready(void)
{
}

void notify_reloading(void)
{
}

void notify_stopping(void)
{
}

void notify_alive(void)
{
}

void notify_status(const char *text)
{
}
#endif
