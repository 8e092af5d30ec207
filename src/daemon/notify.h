/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the service manager is told, where there is one. */
#include "abi/types.h"

/* 0 where nobody watches; else how often notify_alive() must be called at least. */
u64 notify_watchdog_ns(void);

void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
void notify_alive(void);
void notify_status(const char *text);
