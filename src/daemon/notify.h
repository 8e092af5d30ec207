/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Notifications to the service manager. Without one, they do nothing. */
#include "abi/types.h"

/* The interval at which notify_alive() must be called; 0 if the watchdog is off. */
u64 notify_watchdog_ns(void);

void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
void notify_alive(void);
void notify_status(const char *text);
