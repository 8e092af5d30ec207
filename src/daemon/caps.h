/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What zerneld may still do once it runs. */
#include <stdio.h>

/*
 * Gives up, for good, every capability that is not in the table, also for programs it
 * might be made to start. What it never had it does not get.
 */
int caps_drop(void);

/* The table: each capability that stays, and the reason. */
void caps_print(FILE *out);
